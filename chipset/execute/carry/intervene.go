package carry

import (
	"context"
	"errors"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// Step is one move of a bead by the mayor or a person, with what goes along.
type Step struct {
	Bead state.BeadID
	// Assignment, when not empty, makes the step a compare-and-swap on it.
	Assignment state.AssignmentID
	// From are the statuses in which the step is right.
	From   []bead.Status
	To     bead.Status
	Reason string
	By     state.AgentID
	// Change does more to the bead in the same write, or is nil.
	Change func(b *bead.Bead)
}

// Move carries a step out: the bead is swapped first, then the hook that still
// names the assignment it had is cleared. Durable when it returns nil. A crash
// in between leaves a hook that names an assignment its bead no longer has,
// which the mayor clears. A dispatch of the bead that is on its way is waited
// for, so that it does not go on with what was taken back.
func Move(ctx context.Context, r *rig.Rig, s Step) (bead.Bead, error) {
	lock, err := r.Tree.Lock(ctx, state.LockDispatch, string(s.Bead), dispatch.Dir)
	if err != nil {
		return bead.Bead{}, err
	}
	defer lock.Unlock()
	return move(ctx, r, s)
}

// move is Move with the dispatch lock held.
func move(ctx context.Context, r *rig.Rig, s Step) (bead.Bead, error) {
	now := r.Clock.Now()
	var before bead.Bead
	after, err := r.Beads.Update(ctx, string(s.Bead), func(b *bead.Bead) error {
		before = *b
		if s.Assignment != "" && b.AssignmentID != s.Assignment {
			return b.CheckAssignment(s.Assignment, s.From...)
		}
		if !contains(s.From, b.Status) {
			return state.Conflictf("bead "+string(b.ID), "is %s", b.Status)
		}
		reason := s.Reason
		if s.To == bead.Open {
			reason = "" // close_reason says why a bead is closed
		}
		if err := b.Become(s.To, reason, now); err != nil {
			return err
		}
		if s.Change != nil {
			s.Change(b)
		}
		return nil
	})
	if err != nil {
		return after, err
	}
	r.Emit(event.Event{Type: "bead." + string(s.To), Agent: s.By, Bead: s.Bead, Assignment: before.AssignmentID,
		From: string(before.Status), To: string(s.To), Text: s.Reason})
	if before.AssignmentID == "" || s.To == bead.Done {
		return after, nil
	}
	return after, ReleaseHook(ctx, r, before.Assignee, before.AssignmentID, s.By)
}

func contains(list []bead.Status, s bead.Status) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// ReleaseHook clears a hook if it still names the assignment. A hook that
// names another one, or none, is left alone.
func ReleaseHook(ctx context.Context, r *rig.Rig, id state.AgentID, a state.AssignmentID, by state.AgentID) error {
	if id == "" {
		return nil
	}
	h, err := r.Hooks.Get(string(id))
	if errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrCorrupt) {
		return nil // the witness reports it; the bead is what counts
	}
	if err != nil || h.Assignment() != a {
		return err
	}
	_, err = r.Hooks.Clear(ctx, id, a, r.Clock.Now())
	if errors.Is(err, state.ErrConflict) {
		return nil // somebody was faster
	}
	if err == nil {
		r.Emit(event.Event{Type: "hook.cleared", Agent: by, Bead: h.WorkItem.BeadID, Assignment: a, Subject: string(id),
			From: string(h.Status), To: string(hook.Empty)})
	}
	return err
}

// TakeBack makes a bead open again that is assigned, but hangs on no hook: it
// was cleared or completed by hand, and nobody would ever finish it. One whose
// hook names it after all, or whose dispatch is on its way, is left alone.
func TakeBack(ctx context.Context, r *rig.Rig, id state.BeadID, a state.AssignmentID, by state.AgentID) error {
	lock, err := r.Tree.Lock(ctx, state.LockDispatch, string(id), dispatch.Dir)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	rec, err := r.Dispatch.Get(string(id))
	if err == nil && rec.AssignmentID == a && rec.Stage != dispatch.Confirmed {
		return nil // its healing decides
	}
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	b, err := r.Beads.Get(string(id))
	if err != nil {
		return err
	}
	h, err := r.Hooks.Get(string(b.Assignee))
	if err != nil || h.Assignment() == a {
		return err
	}
	_, err = move(ctx, r, Step{Bead: id, Assignment: a, From: []bead.Status{bead.Hooked, bead.InProgress}, To: bead.Open, By: by,
		Reason: "the hook of " + string(b.Assignee) + " no longer names it"})
	return err
}

// Unsling takes a slung bead back: it is open again, and its worker is stopped
// by its polecat, which saves the work. ErrConflict when it is not slung.
func Unsling(ctx context.Context, r *rig.Rig, id state.BeadID, by state.AgentID) (bead.Bead, error) {
	return Move(ctx, r, Step{Bead: id, From: []bead.Status{bead.Hooked, bead.InProgress}, To: bead.Open, By: by, Reason: "taken back by " + string(by)})
}

// Cancel gives a bead up. A worker on it is stopped by its polecat; a merge
// request of it will not land. ErrConflict when it has landed.
func Cancel(ctx context.Context, r *rig.Rig, id state.BeadID, reason string, by state.AgentID) error {
	_, err := Move(ctx, r, Step{Bead: id, To: bead.Cancelled, By: by, Reason: reason,
		From: []bead.Status{bead.Open, bead.Hooked, bead.InProgress, bead.Done, bead.Failed, bead.Blocked}})
	return err
}

// Reopen makes a bead open again that waits for a person, was given up, or
// finished with nothing to land. Its charges start anew. ErrConflict for one
// that has landed, or is on its way.
func Reopen(ctx context.Context, r *rig.Rig, id state.BeadID, reason string, by state.AgentID) error {
	before, err := r.Beads.Get(string(id))
	if err != nil {
		return err
	}
	_, err = Move(ctx, r, Step{Bead: id, To: bead.Open, By: by, Reason: "", Assignment: before.AssignmentID,
		From: []bead.Status{bead.Blocked, bead.Failed, bead.Cancelled, bead.Closed},
		Change: func(b *bead.Bead) {
			b.Attempts, b.Conflicts, b.Restarts = 0, 0, 0
			if reason != "" {
				b.ReworkNotes = append(b.ReworkNotes, "reopened by "+string(by)+": "+reason)
			}
		}})
	if err != nil {
		return err
	}
	return SupersedeOf(ctx, r, id, before.AssignmentID, by)
}

// SupersedeOf retires the live merge request of an assignment that its bead
// has left behind.
func SupersedeOf(ctx context.Context, r *rig.Rig, id state.BeadID, a state.AssignmentID, by state.AgentID) error {
	if a == "" {
		return nil
	}
	all, _, err := r.Queue.All()
	if err != nil {
		return err
	}
	mr := mergequeue.Find(all, a)
	if mr == nil || !mr.Status.Live() {
		return nil
	}
	return Supersede(ctx, r, mr.ID, id, by)
}

// Supersede marks a merge request whose place a rework takes. One that is over
// already is left alone. Durable when it returns nil.
func Supersede(ctx context.Context, r *rig.Rig, mr state.MergeID, id state.BeadID, by state.AgentID) error {
	done := false
	_, err := r.Queue.Update(ctx, string(mr), func(m *mergequeue.Request) error {
		if !m.Status.Live() {
			return state.ErrUnchanged
		}
		done = true
		return m.Become(mergequeue.Superseded, r.Clock.Now())
	})
	if err == nil && done {
		r.Emit(event.Event{Type: "mr.superseded", Agent: by, Bead: id, Subject: string(mr)})
	}
	return err
}
