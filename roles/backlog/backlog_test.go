package backlog

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
)

var (
	noon     = state.At(time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC))
	statuses = []bead.Status{bead.Open, bead.Open, bead.Open, bead.Hooked, bead.InProgress, bead.Done, bead.Failed, bead.Blocked,
		bead.Merged, bead.Closed, bead.Cancelled}
)

func beadID(n int) state.BeadID { return state.BeadID(fmt.Sprintf("gt-%d", n)) }

const most = 12

func anyBead(t *rapid.T) bead.Bead {
	which := rapid.IntRange(0, most)
	b := bead.Bead{ID: beadID(which.Draw(t, "bead")), Status: rapid.SampledFrom(statuses).Draw(t, "status"),
		Priority:  rapid.SampledFrom([]bead.Priority{bead.P1, bead.P2, bead.P3}).Draw(t, "priority"),
		CreatedAt: state.At(noon.Add(-time.Duration(rapid.IntRange(0, 300).Draw(t, "age")) * time.Minute)), Gen: int64(rapid.IntRange(1, 9).Draw(t, "gen"))}
	for range rapid.IntRange(0, 2).Draw(t, "blockers") {
		b.BlockedBy = append(b.BlockedBy, beadID(which.Draw(t, "by")))
	}
	if rapid.IntRange(0, 2).Draw(t, "cooling") == 0 {
		at := state.At(noon.Add(time.Duration(rapid.IntRange(-2, 2).Draw(t, "until")) * time.Minute))
		b.ReadyAt = &at
	}
	return b
}

func names(seq func(func(*bead.Bead) bool)) []state.BeadID {
	list := []state.BeadID{}
	for b := range seq {
		list = append(list, b.ID)
	}
	return list
}

// plain is what a Backlog stands for: lists that are looked at as a whole.
type plain struct {
	beads   map[state.BeadID]bead.Bead
	convoys map[state.ConvoyID]convoy.Convoy
}

func (p *plain) list() []bead.Bead {
	var all []bead.Bead
	for _, b := range p.beads {
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b bead.Bead) int { return cmpString(a.ID, b.ID) })
	return all
}

func cmpString(a, b state.BeadID) int {
	if a < b {
		return -1
	}
	return 1
}

// look is everything that can be asked.
func (p *plain) look() look {
	all := p.list()
	l := look{Failed: []state.BeadID{}, Out: []state.BeadID{}, Ready: []state.BeadID{}, Loose: []state.BeadID{}, Convoys: map[state.ConvoyID]int{}}
	listed := map[state.BeadID]bool{}
	for _, c := range p.convoys {
		for _, id := range c.BeadIDs {
			listed[id] = true
		}
		if c.CompletedAt == nil {
			l.Convoys[c.ID] = 0
			for _, id := range c.BeadIDs {
				if b, ok := p.beads[id]; ok && b.Status.Landed() {
					l.Convoys[c.ID]++
				}
			}
		}
	}
	for _, b := range all {
		switch b.Status {
		case bead.Failed:
			l.Failed = append(l.Failed, b.ID)
		case bead.Hooked, bead.InProgress:
			l.Out = append(l.Out, b.ID)
		}
		if !b.Status.Finished() && b.Status != bead.Blocked {
			l.Unfinished++
		}
		if at := b.ReadyAt; b.Status == bead.Open && at != nil && at.After(noon.Time) && (l.Next.IsZero() || at.Before(l.Next.Time)) {
			l.Next = *at
		}
	}
	for _, b := range Ready(all, noon) {
		l.Ready = append(l.Ready, b.ID)
		if !listed[b.ID] {
			l.Loose = append(l.Loose, b.ID)
		}
	}
	return l
}

type look struct {
	Failed, Out, Ready, Loose []state.BeadID
	Unfinished                int
	Next                      state.Time
	Convoys                   map[state.ConvoyID]int
}

func lookAt(l *Backlog) look {
	found := look{Failed: names(l.Failed()), Out: names(l.Out()), Ready: names(l.Ready(noon)), Loose: names(l.Loose(noon)),
		Unfinished: l.Unfinished(), Next: l.NextReady(noon), Convoys: map[state.ConvoyID]int{}}
	for c := range l.Convoys() {
		found.Convoys[c.ID] = c.Landed
	}
	return found
}

// Whatever changes in whatever order, a backlog answers as the lists would.
func TestBacklogIsTheLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plain{map[state.BeadID]bead.Bead{}, map[state.ConvoyID]convoy.Convoy{}}
		l := New()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			cv := state.ConvoyID(fmt.Sprintf("cv-%d", rapid.IntRange(0, 2).Draw(t, "convoy")))
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				id := beadID(rapid.IntRange(0, most).Draw(t, "gone"))
				delete(p.beads, id)
				l.Remove(id)
			case 1:
				c := convoy.Convoy{ID: cv}
				for range rapid.IntRange(1, 4).Draw(t, "members") {
					c.BeadIDs = append(c.BeadIDs, beadID(rapid.IntRange(0, most).Draw(t, "member")))
				}
				p.convoys[cv] = c
				l.PutConvoy(c)
			case 2:
				if c, ok := p.convoys[cv]; ok {
					at := noon
					c.CompletedAt = &at
					p.convoys[cv] = c
					l.PutConvoy(c)
				}
			case 3:
				delete(p.convoys, cv)
				l.RemoveConvoy(cv)
			default:
				b := anyBead(t)
				p.beads[b.ID] = b
				l.Put(b)
			}
		}
		if diff := cmp.Diff(p.look(), lookAt(l)); diff != "" {
			t.Fatalf("the lists say (-), the backlog (+):\n%s", diff)
		}
	})
}

// Sync brings a backlog from any state to that of a list.
func TestSync(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var before, after plain
		for _, p := range []*plain{&before, &after} {
			*p = plain{map[state.BeadID]bead.Bead{}, map[state.ConvoyID]convoy.Convoy{}}
			for range rapid.IntRange(0, most).Draw(t, "beads") {
				b := anyBead(t)
				p.beads[b.ID] = b
			}
		}
		l := New(before.list()...)
		l.PutConvoy(convoy.Convoy{ID: "cv-old", BeadIDs: []state.BeadID{beadID(0), beadID(1)}})
		after.convoys["cv-new"] = convoy.Convoy{ID: "cv-new", BeadIDs: []state.BeadID{beadID(1), beadID(2)}}
		l.Sync(after.list())
		l.SyncConvoys([]convoy.Convoy{after.convoys["cv-new"]})
		if diff := cmp.Diff(after.look(), lookAt(l)); diff != "" {
			t.Fatalf("the lists say (-), the backlog (+):\n%s", diff)
		}
	})
}

// Whatever is older or of higher priority is never behind what is both younger
// and of lower priority, and a wait of AgeStep a rank makes up for priority.
func TestReadyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var beads []bead.Bead
		for i := range rapid.IntRange(0, 12).Draw(t, "beads") {
			b := anyBead(t)
			b.ID, b.Status, b.BlockedBy, b.ReadyAt = beadID(i), bead.Open, nil, nil
			beads = append(beads, b)
		}
		l := New(beads...)
		ready := slices.Collect(l.Ready(noon))
		if len(ready) != len(beads) {
			t.Fatalf("%d of %d are ready", len(ready), len(beads))
		}
		for i := range ready {
			for _, later := range ready[i+1:] {
				first := ready[i]
				switch {
				case later.Priority.Rank() < first.Priority.Rank() && !later.CreatedAt.After(first.CreatedAt.Time):
					t.Fatalf("%s is behind %s", later.ID, first.ID)
				case first.CreatedAt.Sub(later.CreatedAt.Time) > 2*AgeStep:
					t.Fatalf("%s starves behind %s", later.ID, first.ID)
				}
			}
		}
	})
}

func TestNextReady(t *testing.T) {
	at := func(d time.Duration) *state.Time { s := state.At(noon.Add(d)); return &s }
	l := New(bead.Bead{ID: "a", Status: bead.Open}, bead.Bead{ID: "b", Status: bead.Open, ReadyAt: at(-time.Hour)})
	if got := l.NextReady(noon); !got.IsZero() {
		t.Errorf("nothing cools down, but the next is %s", got)
	}
	l.Put(bead.Bead{ID: "c", Status: bead.Open, ReadyAt: at(2 * time.Minute)})
	l.Put(bead.Bead{ID: "d", Status: bead.Open, ReadyAt: at(time.Minute)})
	l.Put(bead.Bead{ID: "e", Status: bead.Cancelled, ReadyAt: at(time.Second)})
	if got := l.NextReady(noon); !got.Equal(noon.Add(time.Minute)) {
		t.Errorf("the next is %s, want in a minute", got)
	}
	set := bead.Bead{ID: "d", Status: bead.Open, ReadyAt: at(time.Minute), UpdatedAt: *at(time.Second)}
	l.Put(set)
	if got := l.NextReady(noon); !got.Equal(noon.Add(2 * time.Minute)) {
		t.Errorf("the clock was set back, and the next is %s, want in two minutes", got)
	}
	if got := Ready([]bead.Bead{set}, noon); len(got) != 1 {
		t.Errorf("the clock was set back, and %d beads are ready", len(got))
	}
}
