package execute

import (
	"context"
	"errors"

	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

// do carries one action out. A step's failure is its result; the failure of another
// action is an error, and the decision is made again.
func (r *Refinery) do(ctx context.Context, a roles.Action) error {
	switch a := a.(type) {
	case refinery.CheckOut:
		return r.step(ctx, a.Request, r.checkOut)
	case refinery.RebaseOnto:
		return r.step(ctx, a.Request, func(ctx context.Context, q *mergequeue.Request) (refinery.Result, error) {
			return r.rebase(ctx, q, a)
		})
	case refinery.RunTest:
		return r.step(ctx, a.Request, func(ctx context.Context, q *mergequeue.Request) (refinery.Result, error) {
			return r.startTest(ctx, q, a)
		})
	case refinery.Land:
		return r.step(ctx, a.Request, func(ctx context.Context, q *mergequeue.Request) (refinery.Result, error) {
			return r.land(ctx, q, a)
		})
	}
	return r.other(ctx, a)
}

// step runs one step on the request as it is now. One that is over, because a
// person dropped it, is taken.
func (r *Refinery) step(ctx context.Context, id state.MergeID, run func(context.Context, *mergequeue.Request) (refinery.Result, error)) error {
	q, err := r.Rig.Queue.Get(string(id))
	if err == nil && !q.Status.Live() {
		r.got = refinery.Result{Kind: refinery.Taken}
		return nil
	}
	if err == nil {
		r.diverged = refinery.Divergence{}
		r.got, err = run(ctx, &q)
	}
	if err == nil {
		r.got.Diverged = r.diverged
		return nil
	}
	if r.got = (refinery.Result{}); ctx.Err() != nil || errors.Is(err, state.ErrNoTree) {
		return err
	}
	r.prepared = false // whatever it was, make sure of the worktree again
	r.got = refinery.Result{Kind: refinery.Trouble, Text: err.Error()}
	return nil
}

func (r *Refinery) other(ctx context.Context, a roles.Action) error {
	switch a := a.(type) {
	case refinery.StopTest:
		r.stopTest(abortGrace)
		return nil
	case refinery.MarkConflicted:
		return r.markConflicted(ctx, a)
	case refinery.Requeue:
		return r.only(ctx, flow.Requeued{Requeue: a})
	case refinery.Hold:
		return r.hold(ctx, a)
	case refinery.LeaveOut:
		return r.leaveOut(a)
	case refinery.SetWaiting:
		return r.only(ctx, flow.Waits{SetWaiting: a})
	case refinery.Retire:
		return r.retire(ctx, a.Request)
	case refinery.Notify:
		return r.notify(ctx, a.Request)
	case refinery.RecordDepth:
		return r.recordDepth(a)
	case refinery.KnowTip:
		return r.knowTip(git.Branch(a.Target), git.Hash(a.Tip))
	case refinery.ForgetDepth:
		err := r.Rig.Tree.Remove(depthRecord)
		r.deep = r.deep && err != nil
		return err
	case refinery.QueueBlocked:
		r.Rig.Events.Tell(event.QueueBlocked(r.ID, a.Request, a.Reason))
		r.Say("the merge queue is blocked by %s: %s", a.Request, wording.FirstLine(a.Reason))
		return nil
	case refinery.QueueUnblocked:
		r.Rig.Events.Tell(event.QueueUnblocked(r.ID))
		r.Say("the merge queue is moving again")
		return nil
	}
	return r.base.do(ctx, a)
}

// warn tells the log of something odd about a request.
func (r *Refinery) warn(q *mergequeue.Request, text string) {
	r.Rig.Events.Tell(event.Warning(r.ID, event.Work{Bead: q.BeadID, Assignment: q.AssignmentID}, string(q.ID), text))
}

// change carries out one change of a request. Durable when it returns nil.
func (r *Refinery) change(ctx context.Context, e flow.RequestChange) (mergequeue.Request, error) {
	return r.Rig.Queue.By(r.ID, "").Update(ctx, string(e.Request()), func(q *mergequeue.Request) error { return e.Change(q, r.Now()) })
}

// only is change for who needs no more than its error.
func (r *Refinery) only(ctx context.Context, e flow.RequestChange) error {
	_, err := r.change(ctx, e)
	return err
}

// advance records the stage that a merging request comes to, before the stage
// is begun. A request that is no longer merging is an ErrConflict.
func (r *Refinery) advance(ctx context.Context, q *mergequeue.Request, e flow.Advance) error {
	updated, err := r.change(ctx, e)
	if err == nil {
		*q = updated
	}
	return err
}

func (r *Refinery) markConflicted(ctx context.Context, a refinery.MarkConflicted) error {
	q, err := r.change(ctx, flow.Conflicted{MarkConflicted: a, By: r.ID})
	if err == nil && q.Status == mergequeue.Conflicted {
		r.Say("%s did not land (%s): %s", q.BeadID, a.Failure, wording.Reason(a.Reason))
	}
	return err
}

func (r *Refinery) hold(ctx context.Context, a refinery.Hold) error {
	q, err := r.change(ctx, flow.Held{Hold: a})
	if err == nil && q.IsHeld() {
		r.Say("%s is waiting for you: it changes %s", q.BeadID, q.Held.Summary())
	}
	return err
}

func (r *Refinery) leaveOut(a refinery.LeaveOut) error {
	q, err := r.Rig.Queue.GetCached(string(a.Request))
	if err != nil {
		return nil //nolint:nilerr // gone: there is nothing to tell
	}
	r.Rig.Events.Tell(event.RequestLeftOut(r.ID, q.Told(), "it waits for its own turn: "+a.Reason))
	return nil
}

// errStillDone is how retire finds out that its bead came back.
var errStillDone = errors.New("the bead is done under this assignment")

// retire ends a request whose bead is no longer done under its assignment. The
// bead's lock is held, because a retry puts bead and request back together.
func (r *Refinery) retire(ctx context.Context, id state.MergeID) error {
	q, err := r.Rig.Queue.Get(string(id))
	if err != nil {
		return err
	}
	_, err = r.Rig.Beads.Update(ctx, string(q.BeadID), func(b *bead.Bead) error {
		e, over := flow.EndOf(&q, b)
		if !over {
			return errStillDone
		}
		if err := r.end(ctx, e); err != nil {
			return err
		}
		return state.ErrUnchanged
	})
	switch {
	case errors.Is(err, errStillDone):
		return nil
	case errors.Is(err, state.ErrNotFound):
		e, _ := flow.EndOf(&q, nil)
		return r.end(ctx, e)
	}
	return err
}

func (r *Refinery) end(ctx context.Context, e flow.Ended) error {
	before, err := r.Rig.Queue.Get(string(e.MR))
	if err != nil {
		return err
	}
	q, err := r.change(ctx, e)
	if err == nil && before.Status != q.Status {
		r.Say("%s is %s: %s", e.MR, e.To, e.Reason)
	}
	return err
}
