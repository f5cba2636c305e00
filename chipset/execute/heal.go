package execute

import (
	"context"
	"errors"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// HealPolecat does for a polecat without a process what its next start would do
// first: it ends what is left of its workers, saves what they left in the
// worktree, and finishes its pipelines. The agent's liveness lock is held
// meanwhile, so that it can't start in between. A polecat that runs is an
// *rig.ClaimedError.
func HealPolecat(ctx context.Context, a Agent) error {
	return a.Rig.Substitute(ctx, a.ID, a.Session, func() error {
		p := NewPolecat(a)
		defer p.Close()
		return p.Recover(ctx)
	})
}

// RescueWorktree mends the worktree of a polecat without a process, and saves
// what it holds of an assignment that its hook does not name any more. It frees
// nothing. A polecat that runs is an *rig.ClaimedError.
func RescueWorktree(ctx context.Context, a Agent) error {
	return a.Rig.Substitute(ctx, a.ID, a.Session, func() error {
		lock, err := a.Rig.Tree.Lock(ctx, state.LockGit, "worktrees")
		if err != nil {
			return err
		}
		defer lock.Unlock()
		_, err = carry.SaveWork(ctx, a.Rig, a.ID, "Work found in the worktree of "+string(a.ID))
		return err
	})
}

// HealMerges does for a refinery without a process what its next start would do
// with the request that it was landing: one that the target holds is merged,
// every other one waits for its turn again. A refinery that runs is an
// *rig.ClaimedError.
func HealMerges(ctx context.Context, a Agent) error {
	return a.Rig.Substitute(ctx, a.ID, a.Session, func() error {
		r := NewRefinery(a)
		defer r.Close()
		if err := r.Recover(ctx); err != nil {
			return err
		}
		return r.healMerges(ctx)
	})
}

func (r *Refinery) healMerges(ctx context.Context) error {
	all, _, err := r.Rig.Queue.Queue()
	if err != nil {
		return err
	}
	var failed []error
	var open []*mergequeue.Request
	for i := range all {
		if all[i].Status == mergequeue.Merging || all[i].Status == mergequeue.Merged {
			done, err := r.healMerge(ctx, &all[i])
			failed = append(failed, err)
			if err == nil && !done {
				open = append(open, &all[i])
			}
		}
	}
	slices.Reverse(open) // of a stack, the oldest is the last to be pending again
	for _, q := range open {
		failed = append(failed, r.backToPending(ctx, q))
	}
	return errors.Join(failed...)
}

// healMerge finishes a request that has landed, and reports whether that is so.
func (r *Refinery) healMerge(ctx context.Context, q *mergequeue.Request) (bool, error) {
	if q.Status == mergequeue.Merged {
		b, err := r.Rig.Beads.Get(string(q.BeadID))
		if err != nil || b.CheckAssignment(q.AssignmentID, bead.Done) != nil {
			return true, nil //nolint:nilerr // its bead knows, or is another finding
		}
		if !q.HeldBefore() {
			q.Candidate = q.MergedSHA // what landed, whatever else was tried
		}
	}
	target, _, err := carry.TargetTip(ctx, r.Rig)
	if err != nil {
		return false, err
	}
	if q.Candidate != "" {
		if landed, err := r.finishInterrupted(ctx, q, target); err != nil || landed {
			return landed, err
		}
	}
	if q.Status == mergequeue.Merged {
		return false, state.Conflictf("merge request "+string(q.ID), "is merged, but %s does not hold it", target)
	}
	return false, nil
}

func (r *Refinery) backToPending(ctx context.Context, q *mergequeue.Request) error {
	_, err := r.Rig.Queue.By(r.ID, "").Update(ctx, string(q.ID), func(now *mergequeue.Request) error {
		if now.Status != mergequeue.Merging {
			return state.ErrUnchanged
		}
		return now.Become(mergequeue.Pending, r.Now())
	})
	return err
}
