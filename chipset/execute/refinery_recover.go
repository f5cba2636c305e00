package execute

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/repair"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// finishInterrupted looks at a request that was being landed when its process
// ended. It reports true when the target holds the candidate: then bead and
// request are merged now. Otherwise nothing of the try is left in a checkout.
func (r *Refinery) finishInterrupted(ctx context.Context, q *mergequeue.Request, target git.Branch) (bool, error) {
	if q.Stage == mergequeue.StageMerge || q.Stage == mergequeue.StagePush {
		if err := r.repairCheckout(ctx, q, target); err != nil {
			return false, err
		}
	}
	landed, err := r.landed(ctx, q, target)
	if err != nil || !landed {
		return false, err
	}
	return true, r.finish(ctx, q, target)
}

// landed reports whether the target holds the candidate. What the remote holds has
// landed too: the branch here follows it first, if it has no commits of its own.
func (r *Refinery) landed(ctx context.Context, q *mergequeue.Request, target git.Branch) (bool, error) {
	candidate, err := git.ParseHash(q.Candidate)
	if err != nil {
		return false, err
	}
	if _, found, err := r.Rig.Git.ResolveCommit(ctx, q.Candidate); err != nil || !found {
		return false, err // the power went before the rebase was durable
	}
	local, found, err := r.Rig.Git.ResolveRef(ctx, target.Ref())
	if err != nil || !found {
		return false, err
	}
	if held, err := r.Rig.Git.IsAncestor(ctx, candidate, local); err != nil || held {
		return held, err
	}
	remote := r.Rig.Def.Merge.Remote
	if q.Stage != mergequeue.StagePush || remote == "" {
		return false, nil
	}
	netCtx, cancel := context.WithTimeout(ctx, networkTime)
	defer cancel()
	there, err := r.Rig.Git.Fetch(netCtx, remote, target)
	if errors.Is(err, git.ErrNoRemoteBranch) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if held, err := r.Rig.Git.IsAncestor(ctx, candidate, there); err != nil || !held {
		return false, err
	}
	err = r.Rig.Git.Advance(ctx, target, local, there)
	if errors.Is(err, git.ErrMoved) { // the person committed here before it could follow
		err = r.noteDivergence(ctx, target, there)
	}
	return true, err
}

// finish makes a landed request's end known.
func (r *Refinery) finish(ctx context.Context, q *mergequeue.Request, target git.Branch) error {
	return r.carryLanding(ctx, &flow.Landing{By: r.ID, Landed: true}, []refinery.Layer{{Request: q.ID, Candidate: q.Candidate}}, target)
}

// finishBead makes the bead of a landed request merged. One that was taken away in
// the meantime keeps what was decided for it: the log says that its work landed.
func (r *Refinery) finishBead(ctx context.Context, e flow.MergeBead, target git.Branch) error {
	_, err := r.Rig.Beads.By(r.ID, "").Update(ctx, string(e.BeadID), func(b *bead.Bead) error { return e.Change(b, r.Now()) })
	if errors.Is(err, state.ErrConflict) || errors.Is(err, state.ErrNotFound) {
		r.warn(&mergequeue.Request{ID: e.MR, BeadID: e.BeadID, AssignmentID: e.Assignment},
			"its work is on "+string(target)+" although the bead was taken away: "+err.Error())
	}
	return err
}

// takenUnlessLanded answers a bead that is no longer done when its work was to
// land: what the target holds nevertheless, is finished.
func (r *Refinery) takenUnlessLanded(ctx context.Context, stack []flow.Layer, target git.Branch, lost state.MergeID) (refinery.Result, error) {
	for i := range stack {
		landed, err := r.landed(ctx, &stack[i].Request, target)
		var refused *git.RefusedError
		switch {
		case errors.As(err, &refused):
			return inTheWay(refused), nil
		case err != nil:
			return refinery.Result{}, err
		case !landed && i > 0:
			return refinery.Result{Kind: refinery.Moved}, nil
		case !landed:
			return refinery.Result{Kind: refinery.Taken, Request: lost}, nil
		}
		if err := r.finish(ctx, &stack[i].Request, target); err != nil {
			return refinery.Result{}, err
		}
	}
	return refinery.Result{Kind: refinery.Landed}, nil
}

// repairCheckout takes back what an interrupted fast-forward had written into a
// person's checkout of the target.
func (r *Refinery) repairCheckout(ctx context.Context, q *mergequeue.Request, target git.Branch) error {
	candidate, err := git.ParseHash(q.LandingCommit())
	if err != nil {
		return err
	}
	local, found, err := r.Rig.Git.ResolveRef(ctx, target.Ref())
	if err != nil || !found || local == candidate {
		return err
	}
	if forward, err := r.Rig.Git.IsAncestor(ctx, local, candidate); err != nil || !forward {
		return nil //nolint:nilerr // the candidate is gone, or the person has gone on from here
	}
	repaired, err := repair.Advance(ctx, r.Rig.Git, target, local, candidate, false)
	if errors.Is(err, git.ErrLocked) && r.lockIsOurs(ctx, q, target) {
		repaired, err = repair.Advance(ctx, r.Rig.Git, target, local, candidate, true)
	}
	if err == nil && len(repaired.Restored) > 0 {
		r.Say("restored %d files in %s that an interrupted merge had changed", len(repaired.Restored), repaired.Checkout)
	}
	return err
}

// repairCheckouts is repairCheckout for whatever was being landed. What keeps it from
// being done is told when the request is checked out, which tries again.
func (r *Refinery) repairCheckouts(ctx context.Context) error {
	open, _, err := r.Rig.Queue.Unfinished()
	if err != nil {
		return err
	}
	for i := range open {
		q := &open[i]
		if q.Status != mergequeue.Merging || q.Stage != mergequeue.StageMerge && q.Stage != mergequeue.StagePush {
			continue
		}
		if target, err := r.target(ctx, q); err == nil {
			_ = r.repairCheckout(ctx, q, target)
		}
	}
	return ctx.Err()
}

// lockIsOurs vouches that the locks in the target's checkout are those of the
// git that this request's interrupted landing ran: they are younger than its
// stage, and no git lives that could hold them. Where the system does not tell
// which processes live, nothing is vouched for, and the person is asked.
func (r *Refinery) lockIsOurs(ctx context.Context, q *mergequeue.Request, target git.Branch) bool {
	checkout, locks, err := r.Rig.Git.AdvanceLocks(ctx, target)
	if err != nil {
		return false
	}
	for _, lock := range locks {
		if info, err := os.Lstat(lock); err == nil && info.ModTime().Before(q.UpdatedAt.Add(-time.Second)) {
			return false
		}
	}
	return r.Rig.Git.NoneRunning(checkout)
}
