package execute

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/handoff"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
)

// In pull mode a polecat claims nothing beyond max_parallel, and nothing that is paused.
func TestPolecatClaimsWithinLimits(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "dispatch: {strategy: auto_claim, max_parallel: 1}\n")
	next := func() state.BeadID {
		t.Helper()
		h := k.hook()
		id, err := k.p.nextReady(&polecat.Facts{Now: k.rig.Clock.Now(), Hook: &h})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	first, err := k.rig.Beads.Add(bead.Bead{Title: "one"}, "tt", k.rig.Clock.Now())
	must(err)
	if got := next(); got != first.ID {
		t.Errorf("with room for one: %q", got)
	}
	pauses := func(do func(p *pause.Pause) error) { must(k.rig.Pauses.Change(t.Context(), pause.Rig, do)) }
	rules := pause.Rules{Wait: func(fault.Kind, int) time.Duration { return time.Hour }, Longest: time.Hour, Most: 1}
	pauses(func(p *pause.Pause) error {
		return p.Fail(pause.Try{At: k.rig.Clock.Now(), BeadID: "tt-1", Assignment: "as-1"}, fault.New(fault.TargetGone, "main is gone"), rules)
	})
	if got := next(); got != "" {
		t.Errorf("while the rig is paused: %q", got)
	}
	pauses(func(p *pause.Pause) error { return p.Lift(k.rig.Clock.Now()) })
	second, err := k.rig.Beads.Add(bead.Bead{Title: "two"}, "tt", k.rig.Clock.Now())
	must(err)
	_, err = k.rig.Beads.Update(t.Context(), string(second.ID), func(b *bead.Bead) error {
		b.Status, b.Assignee, b.AssignmentID, b.Branch = bead.Hooked, "polecat-bravo", "as-2", "polecat/x"
		return nil
	})
	must(err)
	if got := next(); got != "" {
		t.Errorf("while another polecat has one: %q", got)
	}
}

// The session on the hook changes only once what the earlier one left is saved, and that is said once.
func TestPolecatSavesBeforeItResumes(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	a := k.dead()
	item := *k.hook().WorkItem
	resume := func() error { return k.p.do(t.Context(), polecat.Resume{Item: item, Session: "ses-next"}) }
	k.spoilt(handoff.Dir, func() {
		if err := resume(); err == nil || k.hook().WorkItem.Session != deadSession {
			t.Errorf("nothing is saved (%v), and the hook names %s", err, k.hook().WorkItem.Session)
		}
	})
	if err := resume(); err != nil || k.hook().WorkItem.Session != "ses-next" {
		t.Errorf("%v; the hook names %s", err, k.hook().WorkItem.Session)
	}
	if err := k.p.save(t.Context(), a, item.BeadID, deadSession, "again"); err != nil {
		t.Error(err)
	}
	if notes, _, err := k.rig.Handoffs.List(alpha); err != nil || len(notes) != 1 {
		t.Errorf("%d hand-offs, %v", len(notes), err)
	}
}

// A worker that has reported its end has a while to come to it: what it writes meanwhile is its work.
func TestPolecatLetsAWorkerEnd(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	k.rig.Def.Worker.Grace = time.Minute
	rec := k.sling("echo x > x.txt; sleep 0.3; echo late > late.txt")
	k.until("the worker works", k.working("x.txt"))
	_, won, err := carry.Publish(t.Context(), k.rig, retire.Record{AssignmentID: rec.AssignmentID, AgentID: alpha, Session: k.hook().WorkItem.Session, Outcome: retire.Done})
	if err != nil || !won {
		t.Fatal(won, err)
	}
	k.until("it is retired", k.retired(rec.AssignmentID))
	if files := k.git("ls-tree", "--name-only", "polecat/"+string(rec.BeadID)); files != "README\nlate.txt\nx.txt" {
		t.Errorf("the branch holds %q", files)
	}
}

// An end that was published for an assignment which was taken away has lost: its record is closed, and nothing lands. Nothing is
// begun for such an assignment either, and the ends of other polecats are theirs.
func TestPolecatOfWhatWasTakenAway(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	a := k.dead()
	item := *k.hook().WorkItem
	_, won, err := carry.Publish(t.Context(), k.rig, retire.Record{AssignmentID: a, AgentID: alpha, Session: deadSession, Outcome: retire.Done})
	if err != nil || !won {
		t.Fatal(won, err)
	}
	if _, err := carry.Unsling(t.Context(), k.rig, item.BeadID, "mayor"); err != nil {
		t.Fatal(err)
	}
	if err := k.p.do(t.Context(), polecat.Start{Item: item}); !errors.Is(err, state.ErrConflict) || k.p.worker != nil {
		t.Errorf("started: %v", err)
	}
	if err := k.p.do(t.Context(), polecat.Abandon{Assignment: a, Bead: item.BeadID, Session: deadSession}); err != nil {
		t.Error(err)
	}
	queue, _, err := k.rig.Queue.Queue()
	if rec := k.record(a); rec.Stage != retire.Stale || len(queue) > 0 || err != nil {
		t.Errorf("its record is %s, %d requests: %v", rec.Stage, len(queue), err)
	}
	other := retire.Record{AssignmentID: "as-other", AgentID: "polecat-bravo", BeadID: item.BeadID, Outcome: retire.Fail, Reason: "no", Stage: retire.Published}
	if err := k.rig.Retire.Create("as-other", other); err != nil {
		t.Fatal(err)
	}
	k.start()
	if rec := k.record("as-other"); rec.Stage != retire.Published {
		t.Errorf("the end of another polecat is %s", rec.Stage)
	}
}

// A polecat whose hook is gone waits for whoever puts it back.
func TestPolecatWithoutAHook(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	if err := os.Remove(k.rig.Tree.Abs(k.rig.Hooks.Path(string(alpha)))); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := k.p.Tick(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := k.rig.Hooks.Get(string(alpha)); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("somebody made one: %v", err)
	}
}
