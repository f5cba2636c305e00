package carry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// ways lead from open to each status.
func ways() map[bead.Status][]bead.Status {
	return map[bead.Status][]bead.Status{
		bead.Open:       nil,
		bead.Hooked:     {bead.Hooked},
		bead.InProgress: {bead.Hooked, bead.InProgress},
		bead.Done:       {bead.Hooked, bead.InProgress, bead.Done},
		bead.Merged:     {bead.Hooked, bead.InProgress, bead.Done, bead.Merged},
		bead.Closed:     {bead.Hooked, bead.InProgress, bead.Closed},
		bead.Failed:     {bead.Hooked, bead.InProgress, bead.Failed},
		bead.Blocked:    {bead.Hooked, bead.InProgress, bead.Failed, bead.Blocked},
		bead.Cancelled:  {bead.Cancelled},
	}
}

// What a person may do with a bead, from every status; a refusal touches nothing.
func TestInterventions(t *testing.T) {
	y := newYard(t, "")
	for name, c := range map[string]struct {
		do   func(id state.BeadID) error
		from []bead.Status
		to   bead.Status
	}{
		"unsling": {func(id state.BeadID) error { _, err := Unsling(t.Context(), y.Rig, id, "human"); return err },
			[]bead.Status{bead.Hooked, bead.InProgress}, bead.Open},
		"cancel": {func(id state.BeadID) error { return Cancel(t.Context(), y.Rig, id, "no more", "human") },
			[]bead.Status{bead.Open, bead.Hooked, bead.InProgress, bead.Done, bead.Failed, bead.Blocked}, bead.Cancelled},
		"reopen": {func(id state.BeadID) error { return Reopen(t.Context(), y.Rig, id, "again", "human") },
			[]bead.Status{bead.Blocked, bead.Failed, bead.Cancelled, bead.Closed}, bead.Open},
	} {
		for from, way := range ways() {
			id := y.add()
			y.become(id, way...)
			before := y.bead(id)
			err := c.do(id)
			after := y.bead(id)
			if !slices.Contains(c.from, from) {
				if !errors.Is(err, state.ErrConflict) || after.Gen != before.Gen {
					t.Errorf("%s of a bead that is %s: %v, bead %+v", name, from, err, after)
				}
				continue
			}
			if err != nil || after.Status != c.to {
				t.Errorf("%s of a bead that is %s: %v, it is %s", name, from, err, after.Status)
			}
			if c.to == bead.Open && (after.AssignmentID != "" || after.CloseReason != "") || c.to == bead.Cancelled && after.CloseReason != "no more" {
				t.Errorf("%s of a bead that is %s left %+v", name, from, after)
			}
		}
		if err := c.do("tt-none1"); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("%s of nothing: %v", name, err)
		}
	}
}

// slung is a bead on alpha's hook, activated or not.
func (y *yard) slung(active bool) (state.BeadID, state.AssignmentID) {
	y.Helper()
	id := y.add()
	rec, err := Sling(y.Context(), y.Rig, id, alpha, "mayor")
	y.must(err)
	if active {
		_, err = y.Hooks.Activate(y.Context(), alpha, rec.AssignmentID, "ses-1", y.now())
		y.must(err)
		_, err = y.Beads.Update(y.Context(), string(id), func(b *bead.Bead) error { return b.Become(bead.InProgress, "", y.now()) })
		y.must(err)
	}
	return id, rec.AssignmentID
}

func TestMoveFreesTheHook(t *testing.T) {
	for _, active := range []bool{false, true} {
		y := newYard(t, "")
		id, as := y.slung(active)
		_, err := Move(t.Context(), y.Rig, flow.Step{BeadID: id, Assignment: "as-other", From: []bead.Status{bead.Hooked, bead.InProgress}, To: bead.Open, By: "mayor"})
		if !errors.Is(err, state.ErrConflict) || y.hook(alpha).Assignment() != as {
			t.Errorf("a move under another assignment: %v, hook %+v", err, y.hook(alpha))
		}
		_, err = Move(t.Context(), y.Rig, flow.Step{BeadID: id, Assignment: as, From: []bead.Status{bead.Failed}, To: bead.Open, By: "mayor"})
		if !errors.Is(err, state.ErrConflict) || y.hook(alpha).Assignment() != as {
			t.Errorf("a move from another status: %v, hook %+v", err, y.hook(alpha))
		}
		y.must(Cancel(t.Context(), y.Rig, id, "no", "human"))
		if h := y.hook(alpha); h.Status != hook.Empty {
			t.Errorf("active %v: the hook is %+v", active, h)
		}
		if err := Cancel(t.Context(), y.Rig, id, "no", "human"); !errors.Is(err, state.ErrConflict) {
			t.Errorf("cancelled twice: %v", err)
		}
	}
}

// A hook that has other work by now is left alone.
func TestReleaseHookOfOtherWork(t *testing.T) {
	y := newYard(t, "")
	_, as := y.slung(true)
	for _, err := range []error{
		ReleaseHook(t.Context(), y.Rig, alpha, "as-other", "mayor"),
		ReleaseHook(t.Context(), y.Rig, bravo, as, "mayor"),
		ReleaseHook(t.Context(), y.Rig, "polecat-zulu", as, "mayor"),
		ReleaseHook(t.Context(), y.Rig, "", as, "mayor"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if h := y.hook(alpha); h.Status != hook.Active || h.Assignment() != as {
		t.Errorf("the hook is %+v", h)
	}
}

func TestReopenForgivesAndSupersedes(t *testing.T) {
	y := newYard(t, "")
	id, as := y.slung(true)
	y.become(id, bead.Done)
	head := strings.Repeat("a", 40)
	mr, err := y.Queue.Submit(t.Context(), mergequeue.Request{BeadID: id, AssignmentID: as, AgentID: alpha, SourceBranch: "b", TargetBranch: "main", Head: head}, y.now())
	y.must(err)
	y.become(id, bead.Blocked)
	y.set(id, func(b *bead.Bead) { b.Attempts, b.Conflicts, b.Restarts = 3, 2, 1 })
	for range 2 {
		err := Reopen(t.Context(), y.Rig, id, "try the other way", "human")
		if q, _ := y.Queue.Get(string(mr.ID)); q.Status != mergequeue.Superseded {
			t.Fatalf("the request is %s, %v", q.Status, err)
		}
	}
	b := y.bead(id)
	if b.Attempts+b.Conflicts+b.Restarts != 0 || len(b.ReworkNotes) != 1 || b.ReworkNotes[0] != "reopened by human: try the other way" {
		t.Errorf("bead %+v", b)
	}
	if h := y.hook(alpha); h.Status != hook.Empty {
		t.Errorf("hook %+v", h)
	}
	// What is over stays as it is.
	y.must(Supersede(t.Context(), y.Rig, mr.ID, id, "mayor"))
}

func TestTakeBack(t *testing.T) {
	y := newYard(t, "")
	id, as := y.slung(true)
	take := mayor.TakeBack{Bead: id, Assignment: as, Agent: alpha, ReadyAt: state.At(y.now().Add(time.Hour))}
	y.must(TakeBack(t.Context(), y.Rig, take, "mayor"))
	if b := y.bead(id); b.Status != bead.InProgress {
		t.Errorf("its hook names it, but it is %s", b.Status)
	}
	_, err := y.Hooks.Clear(t.Context(), alpha, as, y.now())
	y.must(err)
	if err := TakeBack(t.Context(), y.Rig, mayor.TakeBack{Bead: id, Assignment: "as-other", Agent: alpha}, "mayor"); !errors.Is(err, state.ErrConflict) {
		t.Errorf("under another assignment: %v", err)
	}
	y.must(TakeBack(t.Context(), y.Rig, take, "mayor"))
	if b := y.bead(id); b.Status != bead.Open || b.AssignmentID != "" {
		t.Errorf("lost forever: %+v", b)
	}
	if b := y.bead(id); b.Unended != 1 || b.ReadyAt == nil || !b.ReadyAt.Equal(take.ReadyAt.Time) {
		t.Errorf("it may come back at once, forever: %+v", b)
	}

	// A dispatch on its way has a bead without a hook for a moment.
	id = y.add()
	_, err = (&carrier{Rig: y.Rig, step: stopAt(2, new([]string))}).sling(t.Context(), id, alpha, "mayor")
	if !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	y.must(TakeBack(t.Context(), y.Rig, mayor.TakeBack{Bead: id, Assignment: y.bead(id).AssignmentID, Agent: alpha}, "mayor"))
	if b := y.bead(id); b.Status != bead.Hooked {
		t.Errorf("taken from its dispatch: %+v", b)
	}
}

// A person takes back while the polecat activates, again and again: in the end
// the bead is open, and the hook is empty, whoever was faster. The polecat, that
// sees its bead gone, does not go on.
func TestUnslingRacesActivation(t *testing.T) {
	y := newYard(t, "")
	for range 20 {
		id, as := y.slung(false)
		mine, yours := y.another(), y.another()
		var both sync.WaitGroup
		both.Go(func() {
			if _, err := Unsling(t.Context(), mine, id, "human"); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() { activate(t, yours, id, as) })
		both.Wait()
		if b, h := y.bead(id), y.hook(alpha); b.Status != bead.Open || h.Status != hook.Empty {
			t.Fatalf("bead %s under %q, hook %s", b.Status, b.AssignmentID, h.Status)
		}
	}
}

func activate(t *testing.T, r *rig.Rig, id state.BeadID, as state.AssignmentID) {
	_, err := r.Hooks.Activate(t.Context(), alpha, as, "ses-1", r.Clock.Now())
	if err == nil {
		_, err = r.Beads.Update(t.Context(), string(id), func(b *bead.Bead) error { return b.Become(bead.InProgress, "", r.Clock.Now()) })
	}
	if err != nil && !errors.Is(err, state.ErrConflict) {
		t.Error(err)
	}
}

// What is being slung can't be taken back in the middle: that waits.
func TestUnslingWaitsForSling(t *testing.T) {
	y := newYard(t, "")
	id := y.add()
	_, err := (&carrier{Rig: y.Rig, step: func(effect string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		if _, err := Unsling(ctx, y.another(), id, "human"); !errors.Is(err, state.ErrLockTimeout) {
			t.Errorf("after %s: %v, want to wait", effect, err)
		}
		return nil
	}}).sling(t.Context(), id, alpha, "mayor")
	y.must(err)
	y.whole(id, alpha)
}

// A person takes back while the bead is being slung: it is slung whole and then
// taken back whole, or not taken back at all.
func TestUnslingRacesSling(t *testing.T) {
	y := newYard(t, "")
	for range 20 {
		id := y.add()
		mine, yours := y.another(), y.another()
		taken := false
		var both sync.WaitGroup
		both.Go(func() {
			_, err := Sling(t.Context(), mine, id, alpha, "mayor")
			if err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			_, err := Unsling(t.Context(), yours, id, "human")
			if taken = err == nil; err != nil && !errors.Is(err, state.ErrConflict) {
				t.Error(err)
			}
		})
		both.Wait()
		if !taken {
			if !y.whole(id, alpha) {
				t.Fatal("neither slung nor taken back")
			}
			_, err := Unsling(t.Context(), y.Rig, id, "human")
			y.must(err)
		}
		if b, h := y.bead(id), y.hook(alpha); b.Status != bead.Open || h.Status != hook.Empty {
			t.Fatalf("taken %v: bead %s, hook %+v", taken, b.Status, h)
		}
	}
}
