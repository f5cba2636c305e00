package carry

import (
	"context"
	"errors"

	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// Move carries out a step and its consequences: it changes the bead first, then
// clears the hook if it still names the bead's assignment, then supersedes its merge request
// if the step says so. All of it is durable when Move returns nil. It waits for a running dispatch of
// the bead, so that the dispatch does not continue with a bead that was
// taken back. Errors: ErrConflict, ErrNotFound.
func Move(ctx context.Context, r *rig.Rig, s flow.Step) (bead.Bead, error) {
	lock, err := r.Tree.Lock(ctx, state.LockDispatch, string(s.BeadID), dispatch.Dir)
	if err != nil {
		return bead.Bead{}, err
	}
	defer lock.Unlock()
	return (&carrier{Rig: r}).move(ctx, s)
}

// move is Move with the dispatch lock held.
func (c *carrier) move(ctx context.Context, s flow.Step) (bead.Bead, error) {
	b, err := c.Beads.Get(string(s.BeadID))
	if err != nil {
		return b, err
	}
	i := &flow.Intervention{Step: s, Assignment: b.AssignmentID, Assignee: b.Assignee}
	read := func() (err error) {
		if !i.Taken {
			return nil
		}
		if i.Hooked, err = c.hooked(i.Assignee); err != nil || !s.Supersede {
			return err
		}
		i.Request, err = c.requestOf(i.Assignment)
		return err
	}
	if b.Status == s.To {
		err = c.resume(i, read)
	}
	if err == nil {
		err = c.run(ctx, i, read)
	}
	if err == nil {
		err = i.Refusal
	}
	if err != nil {
		return b, err
	}
	return c.Beads.Get(string(s.BeadID))
}

// resume makes an intervention whose bead is changed already continue with the consequences, if an earlier run
// failed before them. The bead's dispatch record has the assignment.
func (c *carrier) resume(i *flow.Intervention, read func() error) error {
	rec, err := c.Dispatch.Get(string(i.Step.BeadID))
	if errors.Is(err, state.ErrNotFound) || err == nil && i.Step.Assignment != "" && i.Step.Assignment != rec.AssignmentID {
		return nil
	}
	if err != nil {
		return err
	}
	before := *i
	i.Assignment, i.Assignee, i.Taken = rec.AssignmentID, rec.AgentID, true
	if err := read(); err != nil {
		return err
	}
	if i.Next() == (flow.Done{}) {
		*i = before // nothing is left: the step itself returns the error
	}
	return nil
}

// Unsling takes a slung bead back: it is open again, and its polecat stops the worker
// and saves the work. ErrConflict if the bead is not slung.
func Unsling(ctx context.Context, r *rig.Rig, id state.BeadID, by state.AgentID) (bead.Bead, error) {
	return Move(ctx, r, flow.Unsling(id, by))
}

// Cancel gives a bead up. Its polecat stops the worker, and its merge
// request will not land. ErrConflict if it has landed.
func Cancel(ctx context.Context, r *rig.Rig, id state.BeadID, reason string, by state.AgentID) error {
	_, err := Move(ctx, r, flow.Cancel(id, reason, by))
	return err
}

// Reopen reopens a bead that waits for a person, was given up, or
// was closed with nothing to land. Its count of charged attempts starts at zero. ErrConflict for a bead
// that has landed, or is being worked on.
func Reopen(ctx context.Context, r *rig.Rig, id state.BeadID, reason string, by state.AgentID) error {
	before, err := r.Beads.Get(string(id))
	if err != nil {
		return err
	}
	_, err = Move(ctx, r, flow.Reopen(id, before.AssignmentID, reason, by))
	return err
}

// TakeBack reopens a bead that is assigned but on no hook: its hook
// was cleared or completed by hand, so nobody would ever finish it. A bead that
// is on its hook after all, or whose dispatch is running, is left alone.
func TakeBack(ctx context.Context, r *rig.Rig, a mayor.TakeBack, by state.AgentID) error {
	lock, err := r.Tree.Lock(ctx, state.LockDispatch, string(a.Bead), dispatch.Dir)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if lost, err := HangsNowhere(r, a.Bead, a.Agent, a.Assignment); err != nil || !lost {
		return err
	}
	_, err = (&carrier{Rig: r}).move(ctx, flow.TakeBack(a, by))
	return err
}

// HangsNowhere reports whether an agent's hook does not name an assignment of
// the agent's, and never will again.
func HangsNowhere(r *rig.Rig, id state.BeadID, agent state.AgentID, a state.AssignmentID) (bool, error) {
	rec, err := r.Dispatch.Get(string(id)) // read before the hook, which is set before the dispatch is confirmed
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return false, err
	}
	h, err := r.Hooks.Get(string(agent))
	return err == nil && flow.MayTakeBack(&rec, h.Assignment(), a), err
}

// Supersede marks a merge request as replaced by a rework. A finished request
// is left alone. It is durable when it returns nil.
func Supersede(ctx context.Context, r *rig.Rig, mr state.MergeID, id state.BeadID, by state.AgentID) error {
	return (&carrier{Rig: r}).do(ctx, flow.Supersede{MR: mr, BeadID: id, By: by})
}

// Retry puts a request that could not land back in its place in the queue, and
// ends the wait of one that waits. A bead that was blocked under its
// assignment is done again. No attempt is charged. A request that is
// on its way already is not an error. Errors: ErrNotFound; ErrConflict if the request is
// finished, or a rework has replaced it. It is durable when it returns nil.
func Retry(ctx context.Context, r *rig.Rig, id state.MergeID, by state.AgentID) (mergequeue.Request, error) {
	c := &carrier{Rig: r}
	q, err := r.Queue.Get(string(id))
	if err != nil {
		return q, err
	}
	switch q.Status {
	case mergequeue.Pending, mergequeue.Merging:
		return c.changeRequest(ctx, flow.StopWaiting{MR: id, By: by})
	case mergequeue.Conflicted:
	case mergequeue.Merged, mergequeue.Superseded, mergequeue.Dropped:
		return q, state.Conflictf("merge request "+string(id), "is %s: there is nothing to try again", q.Status)
	}
	_, err = c.changeBeadThen(ctx, flow.Revive{MR: q, By: by}, func() (err error) {
		q, err = c.changeRequest(ctx, flow.PutBack{MR: id, By: by})
		return err
	})
	return q, err
}

// Drop gives a request up: it blocks the bead first, so that nothing lands in
// between, then drops the request. A bead that is no longer done under the
// request's assignment stays as it is. Errors: ErrNotFound; ErrConflict if
// the request is merged or superseded. It is durable when it returns nil.
func Drop(ctx context.Context, r *rig.Rig, id state.MergeID, reason string, by state.AgentID) (mergequeue.Request, error) {
	c := &carrier{Rig: r}
	q, err := r.Queue.Get(string(id))
	if err != nil {
		return q, err
	}
	switch q.Status {
	case mergequeue.Dropped:
		return q, nil
	case mergequeue.Merged, mergequeue.Superseded:
		return q, state.Conflictf("merge request "+string(id), "is %s already", q.Status)
	case mergequeue.Pending, mergequeue.Merging, mergequeue.Conflicted:
	}
	block, drop := flow.Drop(&q, reason, by)
	if err := c.do(ctx, block); err != nil && !errors.Is(err, state.ErrConflict) && !errors.Is(err, state.ErrNotFound) {
		return q, err
	}
	return c.changeRequest(ctx, drop)
}

// Allow lets a request land that is held for this change of protected files, and no other
// change. Errors: ErrNotFound; ErrConflict if it is held for another change by now, or not held. It is durable when
// it returns nil.
func Allow(ctx context.Context, r *rig.Rig, id state.MergeID, change string) (mergequeue.Request, error) {
	return (&carrier{Rig: r}).changeRequest(ctx, flow.Allow{MR: id, Held: change})
}

// Deny sends the work of a held request back with a reason: its bead is open again. Errors: ErrNotFound;
// ErrConflict if it is not held. It is durable when it returns nil.
func Deny(ctx context.Context, r *rig.Rig, id state.MergeID, reason string, by state.AgentID) error {
	q, err := r.Queue.Get(string(id))
	if err == nil && !q.IsHeld() {
		err = state.Conflictf("merge request "+string(id), "is not held")
	}
	if err == nil {
		_, err = Move(ctx, r, flow.Deny(&q, reason, by))
	}
	return err
}

// requestOf returns the merge request of an assignment, or nil.
func (c *carrier) requestOf(a state.AssignmentID) (*mergequeue.Request, error) {
	all, _, err := c.Queue.Select(func(q *mergequeue.Request) bool { return q.AssignmentID == a })
	if err != nil {
		return nil, err
	}
	return mergequeue.Find(all, a), nil
}
