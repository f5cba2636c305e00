package witness

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// TestNothingTwice: whatever happens to the rig, the clock and the witness
// itself, a mail goes out at most once for each rise of an incident, and at most one
// incident is open for each thing that is wrong (the world checks that).
func TestNothingTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		s := script{world: w}
		w.add("mayor", "mayor", true)
		w.add("refinery", "refinery", true)
		w.add("polecat-alpha", "polecat", true)
		w.add("polecat-bravo", "polecat", true)
		w.disk = Disk{Free: 50 << 30, Total: 100 << 30}
		steps := rapid.IntRange(10, 120).Draw(rt, "steps")
		for n := range steps {
			disturb(rt, &s, n)
			limit := -1
			if rapid.IntRange(0, 9).Draw(rt, "crash") == 0 {
				limit = rapid.IntRange(0, 3).Draw(rt, "after")
			}
			before := copied(w.state)
			facts := w.facts()
			if !cmp.Equal(Decide(w.state, facts), Decide(w.state, facts), cmp.Comparer(sameInstant)) {
				rt.Fatalf("the same facts lead to different decisions")
			}
			if !maps.Equal(before.Watches, copied(w.state).Watches) || !maps.Equal(before.Lasting, copied(w.state).Lasting) {
				rt.Fatalf("Decide changed its argument")
			}
			w.tick(limit)
		}
		for mail, times := range w.sent {
			if times > 1 {
				rt.Fatalf("the mail of %s was sent %d times", mail, times)
			}
		}
		if len(w.sent) > w.rises {
			rt.Fatalf("%d mails for %d rises", len(w.sent), w.rises)
		}
	})
}

func sameInstant(a, b state.Time) bool { return a.Equal(b.Time) }

func disturb(rt *rapid.T, s *script, n int) {
	who := state.AgentID(rapid.SampledFrom([]string{"polecat-alpha", "polecat-bravo"}).Draw(rt, "who"))
	a := s.agent(who)
	id := state.BeadID("gt-" + strings.TrimPrefix(string(who), "polecat-"))
	switch rapid.IntRange(0, 13).Draw(rt, "what") {
	case 0:
		as := state.AssignmentID(fmt.Sprintf("as-%d", n))
		s.work(who, rapid.SampledFrom([]hook.Status{hook.Pending, hook.Active, hook.Active}).Draw(rt, "status"), id, as, "ses-1")
		s.putBead(bead.Bead{ID: id, Title: "a title", Status: bead.InProgress, AssignmentID: as, Restarts: rapid.IntRange(0, 4).Draw(rt, "restarts")})
	case 1:
		s.hang(hook.Hook{AgentID: who, Status: hook.Empty, LastActivity: s.now})
	case 2:
		a.Hook.LastActivity = s.now
	case 3:
		a.Hook.LastActivity = state.At(s.now.Add(time.Hour))
	case 4:
		a.Alive = !a.Alive
	case 5:
		s.agent("mayor").Alive = !s.agent("mayor").Alive
	case 6:
		a.Corrupt = rapid.SampledFrom([]string{"", "the file is empty"}).Draw(rt, "corrupt")
	case 7:
		s.state = State{}
	case 8:
		s.now = state.At(s.now.Add(time.Duration(rapid.IntRange(-7200, 7200).Draw(rt, "jump")) * time.Second))
	case 9:
		s.respond(who, a.Hook.Assignment(), rapid.SampledFrom([]string{"progress: yes", "running"}).Draw(rt, "says"))
	case 10:
		s.disk.Free = uint64(rapid.IntRange(0, 2048).Draw(rt, "free")) << 20
	case 11:
		s.putBead(bead.Bead{ID: "gt-queue", Title: "a title", Status: bead.Done, AssignmentID: "as-q"})
		s.putRequest(mergequeue.Request{ID: "mr-gt-queue", BeadID: "gt-queue", AssignmentID: "as-q", UpdatedAt: s.now,
			Status: rapid.SampledFrom([]mergequeue.Status{mergequeue.Pending, mergequeue.Merging, mergequeue.Conflicted, mergequeue.Merged}).Draw(rt, "mr")})
	default:
		for range rapid.IntRange(1, 40).Draw(rt, "patrols") {
			s.pass(s.policy.Patrol)
			s.tick(-1)
		}
	}
	s.pass(time.Duration(rapid.IntRange(0, 60).Draw(rt, "seconds")) * time.Second)
}

// TestThousandPatrols: everything is wrong at once and stays so.
func TestThousandPatrols(t *testing.T) {
	w := newWorld(t)
	s := script{world: w}
	w.add("mayor", "mayor", true)
	w.add("refinery", "refinery", false)
	for n, id := range []state.AgentID{"polecat-alpha", "polecat-bravo", "polecat-carol", "polecat-delta"} {
		w.add(id, "polecat", n != 1)
		b := state.BeadID(fmt.Sprintf("gt-%d", n))
		as := state.AssignmentID(fmt.Sprintf("as-%d", n))
		w.work(id, []hook.Status{hook.Active, hook.Active, hook.Pending, hook.Active}[n], b, as, "ses-1")
		s.putBead(bead.Bead{ID: b, Title: "a title", Status: bead.InProgress, AssignmentID: as})
	}
	w.agent("polecat-delta").Corrupt = "the file is empty"
	w.disk = Disk{Free: 1 << 20, Total: 1 << 40}
	s.do("bead gt-done done as=as-q")
	s.do("request mr-gt-done conflicted as=as-q | conflict")
	s.do("mayor-mail | look at this")
	for n := range 1000 {
		if n%97 == 0 {
			w.state = State{}
		}
		w.tick(-1)
		s.pass(w.policy.Patrol)
	}
	// alpha, carol and the mayor: alert, then critical; bravo: alert, then critical; delta, disk,
	// blocked queue: once.
	if want := 4*2 + 3; len(w.sent) != want {
		t.Errorf("%d mails, want %d: %v", len(w.sent), want, w.sent)
	}
	if got := len(w.open()); got != 7 {
		t.Errorf("%d open incidents, want 7", got)
	}
	for _, i := range w.open() {
		if i.Severity.Rank() >= incident.Alert.Rank() && i.EscalatedAt == nil {
			t.Errorf("%s was never told", i.ID)
		}
	}
	if w.nudged > 10 {
		t.Errorf("%d nudges", w.nudged)
	}
}

func copied(s State) State {
	s.Watches, s.Lasting, s.Lived = maps.Clone(s.Watches), maps.Clone(s.Lasting), maps.Clone(s.Lived)
	return s
}
