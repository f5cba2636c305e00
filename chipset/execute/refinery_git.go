package execute

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// networkTime bounds one conversation with the remote: while the work is
// pushed, its bead is locked.
const networkTime = time.Minute

// target is the branch that a request lands on.
func (r *Refinery) target(ctx context.Context, q *mergequeue.Request) (git.Branch, error) {
	if q.TargetBranch != "" {
		return git.ParseBranch(q.TargetBranch)
	}
	return r.Rig.Target(ctx)
}

// checkOut begins a request. One that an earlier process left in merging may
// have landed: then it is finished and not begun again.
func (r *Refinery) checkOut(ctx context.Context, q *mergequeue.Request) (refinery.Result, error) {
	r.restoreObjects(ctx, event.Work{})
	target, err := r.target(ctx, q)
	badTarget := errors.Is(err, git.ErrBadBranch)
	if err != nil && !badTarget {
		return refinery.Result{}, err
	}
	if q.Status == mergequeue.Merging && q.Candidate != "" && !badTarget {
		landed, err := r.finishInterrupted(ctx, q, target)
		if err != nil {
			return refinery.Result{}, err
		}
		if landed {
			return refinery.Result{Kind: refinery.Landed}, nil
		}
	}
	b, err := r.Rig.Beads.Get(string(q.BeadID))
	if errors.Is(err, state.ErrNotFound) || err == nil && b.CheckAssignment(q.AssignmentID, bead.Done) != nil {
		return refinery.Result{Kind: refinery.Taken}, nil
	}
	if err != nil {
		return refinery.Result{}, err
	}
	if badTarget {
		target = ""
	}
	onto, err := r.beginOnTip(ctx, q, target)
	switch {
	case errors.Is(err, state.ErrConflict):
		return refinery.Result{Kind: refinery.Taken}, nil
	case err != nil:
		return refinery.Result{}, err
	case badTarget:
		return refinery.Result{Kind: refinery.Refused, Text: fmt.Sprintf("its target %q is not a branch", q.TargetBranch)}, nil
	}
	if why, err := r.examine(ctx, q, onto); err != nil {
		return refinery.Result{}, err
	} else if why != "" {
		return refinery.Result{Kind: refinery.Refused, Text: why}, nil
	}
	if err := r.prepare(ctx, onto); err != nil {
		return refinery.Result{}, err
	}
	return refinery.Result{Kind: refinery.CheckedOut, Onto: string(onto)}, nil
}

// beginOnTip begins a request and finds the tip of its target, if it has one.
// Here the tip is at hand, and one record tells both that the request is begun
// and what it is rebased on; a remote may take its time to answer. ErrConflict
// is returned for a request that can't be begun any more.
func (r *Refinery) beginOnTip(ctx context.Context, q *mergequeue.Request, target git.Branch) (git.Hash, error) {
	if target == "" || r.Rig.Def.Merge.Remote != "" {
		if err := r.begin(ctx, q, ""); err != nil || target == "" {
			return "", err
		}
		return r.tip(ctx, target)
	}
	onto, tipErr := r.tip(ctx, target)
	if err := r.begin(ctx, q, onto); err != nil {
		return "", err
	}
	return onto, tipErr
}

// begin marks a request as merging, in the stage checkout, or rebase when it is
// known already what onto.
func (r *Refinery) begin(ctx context.Context, q *mergequeue.Request, onto git.Hash) error {
	return r.only(ctx, flow.Begin{MR: q.ID, Onto: string(onto)})
}

// tip is the commit to rebase on. With a remote it is the remote's, or the local
// one where that only has more: the push then includes it. A branch that has diverged
// from what the rig itself pushed is left to the person, and the remote's tip is taken.
func (r *Refinery) tip(ctx context.Context, target git.Branch) (git.Hash, error) {
	local, found, err := r.Rig.Git.ResolveRef(ctx, target.Ref())
	if err == nil && !found {
		err = fmt.Errorf("the target branch %s does not exist", target)
	}
	remote := r.Rig.Def.Merge.Remote
	if err != nil || remote == "" {
		return local, err
	}
	netCtx, cancel := context.WithTimeout(ctx, networkTime)
	defer cancel()
	there, err := r.Rig.Git.Fetch(netCtx, remote, target)
	if errors.Is(err, git.ErrNoRemoteBranch) {
		return local, nil
	}
	if err != nil || there == local {
		return there, err
	}
	if behind, err := r.Rig.Git.IsAncestor(ctx, local, there); err != nil || behind {
		return there, err
	}
	if ahead, err := r.Rig.Git.IsAncestor(ctx, there, local); err != nil || ahead {
		return local, err
	}
	if ours, err := carry.LandedBeyond(ctx, r.Rig, target, local, there); err != nil || ours {
		return there, errors.Join(err, r.noteDivergence(ctx, target, there))
	}
	// The first line names no commit: each new tip would be told as a trouble of its own.
	return "", fmt.Errorf("%s and %s/%s have diverged: nothing can land before you run git pull --rebase %s %s\n\n%s here is at %s, %s/%s at %s",
		target, remote, target, remote, target, target, local.Short(), remote, target, there.Short())
}

// examine refuses what may not land whatever the tests say.
func (r *Refinery) examine(ctx context.Context, q *mergequeue.Request, onto git.Hash) (string, error) {
	head, err := git.ParseHash(q.Head)
	if err != nil {
		return fmt.Sprintf("its head %q is not a commit", q.Head), nil
	}
	why, err := carry.RefusedPaths(ctx, r.Rig, onto, head)
	if err != nil {
		// Only now it is worth a question whether the commit is there at all.
		if _, found, lookErr := r.Rig.Git.ResolveCommit(ctx, q.Head); lookErr == nil && !found {
			return fmt.Sprintf("its head %s does not exist", head.Short()), nil
		}
		return "", err
	}
	if why != "" {
		why = "its branch " + why
	}
	return why, nil
}

// prepare makes sure of the worktree once per process, and again after trouble.
func (r *Refinery) prepare(ctx context.Context, at git.Hash) error {
	if r.prepared {
		return nil
	}
	// Two processes must not make worktrees of one repository at the same time.
	lock, err := r.Rig.Tree.Lock(ctx, state.LockGit, "worktrees")
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := carry.MendCandidates(ctx, r.Rig, r.ID); err != nil {
		return err
	}
	if err := r.Rig.Git.PrepareDetached(ctx, r.worktree, at); err != nil {
		return err
	}
	r.prepared = true
	return nil
}

func (r *Refinery) rebase(ctx context.Context, q *mergequeue.Request, a refinery.RebaseOnto) (refinery.Result, error) {
	head, err := git.ParseHash(q.Head)
	if err != nil {
		return refinery.Result{}, err
	}
	if a.Stacked {
		if why, err := r.examine(ctx, q, git.Hash(a.Onto)); err != nil {
			return refinery.Result{}, err
		} else if why != "" {
			return refinery.Result{Kind: refinery.Refused, Text: why}, nil
		}
	} else if q.Status != mergequeue.Merging || q.Stage != mergequeue.StageRebase || q.Onto != a.Onto || q.Waiting != "" {
		if err := r.advance(ctx, q, flow.Advance{MR: q.ID, Onto: a.Onto}); err != nil {
			return takenOr(err)
		}
	}
	if err := r.prepare(ctx, git.Hash(a.Onto)); err != nil {
		return refinery.Result{}, err
	}
	r.at = ""
	candidate, err := r.Rig.Git.In(r.worktree).Rebase(ctx, head, git.Hash(a.Onto), string(r.ID))
	if gitRefused(err) && r.checkOutAnew(ctx, git.Hash(a.Onto)) == nil {
		candidate, err = r.Rig.Git.In(r.worktree).Rebase(ctx, head, git.Hash(a.Onto), string(r.ID))
		if gitRefused(err) {
			return refinery.Result{Kind: refinery.Refused, Text: "git can check out what it was to land on, but not its branch: " + err.Error()}, nil
		}
	}
	var conflict *git.ConflictError
	if errors.As(err, &conflict) {
		return refinery.Result{Kind: refinery.Conflict, Text: describeConflict(conflict, git.Hash(a.Onto))}, nil
	}
	if err != nil {
		return refinery.Result{}, err
	}
	r.at = candidate
	if res, err := r.judge(ctx, q, git.Hash(a.Onto), candidate); err != nil || res.Kind != refinery.None {
		return res, err
	}
	r.Rig.Events.Tell(event.RequestRebased(r.ID, q.Told(), fmt.Sprintf("%s on %s is %s", head.Short(), git.Hash(a.Onto).Short(), candidate.Short())))
	return refinery.Result{Kind: refinery.Rebased, Onto: a.Onto, Candidate: string(candidate)}, nil
}

// gitRefused reports whether git itself ended with an error, such as that of a filter. A full disk, a signal or a deadline is none.
func gitRefused(err error) bool {
	var failed *git.Error
	return errors.As(err, &failed) && failed.Cause == nil && failed.ExitCode > 0 && !diskIsFull(failed.Stderr)
}

// checkOutAnew writes every file of a commit, so that each filter runs again.
func (r *Refinery) checkOutAnew(ctx context.Context, h git.Hash) error {
	w := r.Rig.Git.In(r.worktree)
	if _, err := w.Run(ctx, git.Command{Args: []string{"read-tree", "--empty"}}); err != nil {
		return err
	}
	return w.CheckoutDetached(ctx, h)
}

// takenOr makes a lost compare-and-swap the result that it is.
func takenOr(err error) (refinery.Result, error) {
	if errors.Is(err, state.ErrConflict) {
		return refinery.Result{Kind: refinery.Taken}, nil
	}
	return refinery.Result{}, err
}

func describeConflict(c *git.ConflictError, onto git.Hash) string {
	const most = 20
	paths := c.Paths
	more := ""
	if len(paths) > most {
		more = fmt.Sprintf(" and %d more", len(paths)-most)
		paths = paths[:most]
	}
	return fmt.Sprintf("conflict with %s in %s%s\n\n%s", onto.Short(), strings.Join(paths, ", "), more, lastLines(c.Output, tailLines))
}
