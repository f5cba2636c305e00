package execute

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// gone is the error for a bead that is no longer done under its request's assignment.
type gone struct {
	request state.MergeID
	cause   error
}

func (e *gone) Error() string { return string(e.request) + ": " + e.cause.Error() }
func (e *gone) Unwrap() error { return e.cause }

// land advances the target, all under the locks of the beads: one that was
// taken away meanwhile never lands, and one that lands can't be taken away
// half-way. A stack lands whole, in one step of the target, or not at all.
func (r *Refinery) land(ctx context.Context, q *mergequeue.Request, a refinery.Land) (refinery.Result, error) {
	target, err := r.target(ctx, q)
	if err != nil {
		return refinery.Result{}, err
	}
	l := &flow.Landing{By: r.ID, Land: a}
	err = r.carryLanding(ctx, l, flow.Layers(a), target)
	var lost *gone
	var refused *git.RefusedError
	switch {
	case err == nil && l.Lost != "":
		return refinery.Result{Kind: refinery.Taken, Request: l.Lost}, nil
	case err == nil:
		return refinery.Result{Kind: refinery.Landed}, nil
	case errors.As(err, &lost):
		// Taken away, unless it landed and only the requests do not say so yet.
		return r.takenUnlessLanded(ctx, l.Layers, target, lost.request)
	case errors.Is(err, git.ErrMoved):
		return refinery.Result{Kind: refinery.Moved, Text: err.Error()}, nil
	case errors.As(err, &refused):
		return inTheWay(refused), nil
	case errors.Is(err, errHalfWay):
		return refinery.Result{}, errors.Join(err, r.repairCheckout(ctx, &l.Layers[0].Request, target))
	}
	return refinery.Result{}, err
}

// inTheWay is the result of a landing that a checkout of the target refuses.
func inTheWay(refused *git.RefusedError) refinery.Result {
	text := refused.Path + ": " + refused.Cause()
	if output := strings.TrimSpace(refused.Output); output != refused.Cause() {
		text += "\n\n" + output
	}
	return refinery.Result{Kind: refinery.InTheWay, Text: text, Whole: refused.Whole}
}

// carryLanding carries a landing out.
func (r *Refinery) carryLanding(ctx context.Context, l *flow.Landing, stack []refinery.Layer, target git.Branch) error {
	read := func() error {
		l.Layers = l.Layers[:0]
		for _, s := range stack {
			layer := flow.Layer{Candidate: s.Candidate}
			var err error
			if layer.Request, err = r.Rig.Queue.Get(string(s.Request)); errors.Is(err, state.ErrNotFound) {
				layer.Request.ID = s.Request // its announcement is refused
			} else if err != nil {
				return err
			}
			layer.Bead, err = r.Rig.Beads.Get(string(layer.Request.BeadID))
			if err != nil && !errors.Is(err, state.ErrNotFound) && !errors.Is(err, state.ErrBadID) {
				return err
			}
			l.Layers = append(l.Layers, layer)
		}
		return nil
	}
	return carry.Run(ctx, l, read, func(ctx context.Context, e flow.Effect) error {
		switch e := e.(type) {
		case flow.MoveTarget:
			return r.mergeBeads(ctx, e.Beads, func() error { return r.move(ctx, &e.Last, target, e.Land) })
		case flow.SyncTarget:
			return r.Rig.Git.Sync(ctx)
		case flow.MergeBead:
			return r.finishBead(ctx, e, target)
		case flow.MarkMerged:
			return r.merged(ctx, e)
		case flow.RequestChange:
			return r.only(ctx, e)
		}
		return fmt.Errorf("no way to carry out %T", e)
	})
}

// mergeBeads locks the beads of all requests, makes sure that they are still
// done, runs move, and then makes them merged. It fails with a *gone.
func (r *Refinery) mergeBeads(ctx context.Context, all []flow.MergeBead, move func() error) error {
	if len(all) == 0 {
		return move()
	}
	e := all[0]
	_, err := r.Rig.Beads.By(r.ID, "").UpdateThen(ctx, string(e.BeadID), func(b *bead.Bead) error {
		if err := b.CheckAssignment(e.Assignment, bead.Done); err != nil {
			return &gone{e.MR, err}
		}
		return b.Become(bead.Merged, "", r.Now())
	}, func() error { return r.mergeBeads(ctx, all[1:], move) })
	var lost *gone
	if errors.Is(err, state.ErrNotFound) && !errors.As(err, &lost) {
		return &gone{e.MR, err}
	}
	return err
}

// move advances remote and branch. Durable when it returns nil. git.ErrMoved means that
// somebody else moved the branch: what the remote took by then has landed all the same,
// and the next round finds that out (see landed).
func (r *Refinery) move(ctx context.Context, last *mergequeue.Request, target git.Branch, a refinery.Land) error {
	if err := r.guard(ctx); err != nil {
		return err
	}
	onto, candidate := git.Hash(a.Onto), git.Hash(a.Candidate)
	local := onto
	if a.Push {
		var err error
		if local, err = r.behind(ctx, target, onto, candidate); err != nil {
			return err
		}
		if err := r.push(ctx, target, candidate); err != nil {
			return err
		}
	}
	r.keepObjects(ctx, candidate)
	_, out, err := r.Rig.Git.CheckedOutAt(ctx, target)
	if err != nil {
		return err
	}
	err = r.Rig.Git.Advance(ctx, target, local, candidate)
	var refused *git.RefusedError
	switch {
	case err == nil:
		r.last = &landing{bead: last.BeadID, mr: last.ID, target: target, from: local, to: candidate, at: r.Now().Time, elsewhere: !out}
		return r.Rig.Git.Sync(ctx)
	case errors.Is(err, git.ErrMoved), errors.As(err, &refused):
		return err
	}
	return fmt.Errorf("%w: %w", errHalfWay, err)
}

// errHalfWay is returned by move when git failed while it wrote: a checkout of
// the target may hold some files of the candidate.
var errHalfWay = errors.New("the merge was interrupted")

// behind is where the branch stands that follows the remote: it may lag behind the
// tip that was tested, but must have nothing of its own, unless it has diverged from
// what the rig itself pushed.
func (r *Refinery) behind(ctx context.Context, target git.Branch, onto, candidate git.Hash) (git.Hash, error) {
	local, found, err := r.Rig.Git.ResolveRef(ctx, target.Ref())
	switch {
	case err != nil:
		return "", err
	case !found:
		return "", fmt.Errorf("the target branch %s is gone", target)
	case local == onto, local == candidate:
		return local, nil
	}
	lags, err := r.Rig.Git.IsAncestor(ctx, local, onto)
	if err == nil && !lags {
		lags, err = carry.LandedBeyond(ctx, r.Rig, target, local, onto)
	}
	if err == nil && !lags {
		err = fmt.Errorf("%s: %w", target, git.ErrMoved)
	}
	return local, err
}

// noteDivergence takes note of a branch that has commits which the remote lacks, and
// lacks what the remote holds. The person is told with the result of the step.
func (r *Refinery) noteDivergence(ctx context.Context, target git.Branch, there git.Hash) error {
	local, found, err := r.Rig.Git.ResolveRef(ctx, target.Ref())
	if err != nil || !found {
		return err
	}
	fork, err := r.Rig.Git.MergeBase(ctx, local, there)
	if errors.Is(err, git.ErrUnrelated) {
		fork, err = git.Hash("unrelated"), nil
	}
	if err != nil || fork == local || fork == there {
		return err // one follows the other
	}
	checkout, _, err := r.Rig.Git.CheckedOutAt(ctx, target)
	r.diverged = refinery.Divergence{Fork: string(fork), Target: string(target), Remote: r.Rig.Def.Merge.Remote, Checkout: checkout}
	return err
}

// push makes the remote hold the candidate, and asks it whether it does.
func (r *Refinery) push(ctx context.Context, target git.Branch, candidate git.Hash) error {
	ctx, cancel := context.WithTimeout(ctx, networkTime)
	defer cancel()
	remote := r.Rig.Def.Merge.Remote
	for range 2 {
		err := carry.Push(ctx, r.Rig, candidate, target)
		var rejected *git.RejectedError
		if errors.As(err, &rejected) && !rejected.ByHook {
			return fmt.Errorf("push to %s: %w: %s", remote, git.ErrMoved, rejected.Reason)
		}
		if err != nil {
			if rejected != nil {
				return fmt.Errorf("%s refuses the push to %s: %s: %s", remote, target, rejected.Reason, lastLines(rejected.Output, tailLines))
			}
			return err
		}
		there, _, err := r.Rig.Git.RemoteHash(ctx, remote, target)
		if err != nil {
			return err
		}
		if there == candidate {
			return nil
		}
	}
	return fmt.Errorf("%s took the push of %s to %s, but does not hold it: %w", remote, candidate.Short(), target, git.ErrMoved)
}

// merged records that the candidate is on the target.
func (r *Refinery) merged(ctx context.Context, e flow.MarkMerged) error {
	q, err := r.Rig.Queue.GetCached(string(e.MR))
	if err != nil {
		return err
	}
	if q.HeldBefore() {
		if e.Held, e.Unknown, err = r.heldAs(ctx, &q); err != nil {
			return err
		}
	}
	if q, err = r.change(ctx, e); err != nil {
		return err
	}
	r.Say("%s has landed: %s", q.BeadID, q.Landed())
	r.spent = append(r.spent, q)
	return nil
}

// heldAs returns the commit that had brought the work of a request to its target
// before the rebase, or why that is not known.
func (r *Refinery) heldAs(ctx context.Context, q *mergequeue.Request) (held, unknown string, err error) {
	if q.Head == q.Base {
		return "", "its branch has no commits of its own", nil
	}
	h, found, err := r.Rig.Git.BroughtBy(ctx, git.Hash(q.Head), git.Hash(q.Onto))
	switch {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case err != nil: // no reason to hold up the queue: the target has the work
		return "", fmt.Sprintf("%s held it already; as which commit is not known: %v", q.TargetBranch, err), nil
	case !found:
		return "", q.TargetBranch + " held it already, in commits with other changes", nil
	}
	return string(h), "", nil
}
