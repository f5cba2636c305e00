package backlog

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
)

// A backlog that follows the changes of the store is the one that looks at all of it.
func TestFollow(t *testing.T) {
	open := func(n int, status bead.Status) bead.Bead {
		return bead.Bead{ID: beadID(n), Status: status, Priority: bead.P2, CreatedAt: noon, Gen: 1}
	}
	l := New()
	l.Put(open(9, bead.Open))
	l.Follow(state.Changes[bead.Bead]{All: true, Values: []bead.Bead{open(1, bead.Open), open(2, bead.Open)}})
	l.Follow(state.Changes[bead.Bead]{Values: []bead.Bead{open(2, bead.Hooked), open(3, bead.Failed)}})
	l.Follow(state.Changes[bead.Bead]{Removed: []string{string(beadID(1))}})
	want := New()
	want.Sync([]bead.Bead{open(2, bead.Hooked), open(3, bead.Failed)})
	if diff := cmp.Diff(lookAt(want), lookAt(l), cmp.AllowUnexported(look{})); diff != "" {
		t.Error(diff)
	}
	if l.Len() != 2 || l.Get(beadID(1)) != nil {
		t.Errorf("%d beads, the removed one is %+v", l.Len(), l.Get(beadID(1)))
	}
	// A time to wait that is new, later or gone is a change.
	soon, late := state.At(noon.Add(time.Minute)), state.At(noon.Add(time.Hour))
	for _, at := range []*state.Time{&soon, &late, nil} {
		b := open(4, bead.Open)
		b.ReadyAt = at
		l.Follow(state.Changes[bead.Bead]{Values: []bead.Bead{b}})
		next := l.NextReady(noon)
		if at == nil && !next.IsZero() || at != nil && !next.Equal(at.Time) {
			t.Errorf("ready at %v, want %v", next, at)
		}
	}
}

// Beads of a convoy that is gone are loose again, and may travel in the next.
func TestConvoyGone(t *testing.T) {
	l := New()
	b := bead.Bead{ID: beadID(1), Status: bead.Open, Priority: bead.P2, CreatedAt: noon, Gen: 1}
	l.Put(b)
	c := convoy.Convoy{ID: "cv-1", Name: "one", BeadIDs: []state.BeadID{b.ID}}
	l.PutConvoy(c)
	if got := l.Convoy("cv-1"); got.Name != "one" || len(names(l.Loose(noon))) != 0 {
		t.Errorf("convoy %+v, loose %v", got, names(l.Loose(noon)))
	}
	l.RemoveConvoy("cv-1")
	if got := l.Convoy("cv-1"); got.ID != "" || len(names(l.Loose(noon))) != 1 {
		t.Errorf("gone, but %+v, loose %v", got, names(l.Loose(noon)))
	}
	b.Status, b.Gen = bead.Merged, 2
	l.Put(b) // nobody counts it for what is gone
}
