package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Advance moves a branch from old to new, a descendant of it. It returns nil only when the branch holds new;
// if it already does, nothing is done.
//
// A branch that is checked out nowhere is moved by compare-and-swap. One that is checked out is moved by a
// fast-forward merge in that checkout, so that its files follow; local changes that git would overwrite, a
// lock, or an operation in progress are a *RefusedError, and nothing has moved. ErrMoved
// is returned if the branch holds neither old nor new, or old is not an ancestor of new.
//
// After any other failure, and after a kill, the checkout may hold some files of new: repair.Advance
// takes them back. What was advanced is durable after [Repo.Sync].
func (r *Repo) Advance(ctx context.Context, b Branch, old, new Hash) error {
	if err := errors.Join(b.check(), checkCommits(old, new)); err != nil {
		return err
	}
	held, found, err := r.ResolveRef(ctx, b.Ref())
	switch {
	case err != nil:
		return err
	case found && held == new:
		return nil
	case !found || held != old:
		return r.moved(b, old)
	}
	if forward, err := r.IsAncestor(ctx, old, new); err != nil {
		return err
	} else if !forward {
		return fmt.Errorf("advance %s: %s is not a descendant of %s: %w", b, new.Short(), old.Short(), ErrMoved)
	}
	checkouts, err := r.checkouts(ctx, b, false)
	if err != nil {
		return err
	}
	if at, busy, err := r.rebasing(b); err != nil {
		return err
	} else if busy {
		return &RefusedError{Path: at, Output: "a rebase or bisect of " + string(b) + " is in progress"}
	}
	switch len(checkouts) {
	case 0:
		return r.UpdateBranch(ctx, b, new, old)
	case 1:
		return r.fastForward(ctx, r.In(checkouts[0]), b, old, new)
	default:
		return &RefusedError{Path: checkouts[0], Output: fmt.Sprintf("%s is also checked out at %s", b, checkouts[1])}
	}
}

func (r *Repo) moved(b Branch, old Hash) error {
	return fmt.Errorf("advance %s from %s: %w", b, old.Short(), ErrMoved)
}

func (r *Repo) fastForward(ctx context.Context, w *Worktree, b Branch, old, new Hash) error {
	p, err := w.place()
	if err != nil {
		return err
	}
	if err := w.inTheWay(p, b); err != nil {
		return err
	}
	if on, found, err := r.headBranch(ctx, p); err != nil {
		return err
	} else if !found || on != b {
		return r.moved(b, old)
	}
	// The person may have configured branch.<name>.mergeOptions; the flags here override it.
	stdout, stderr, failed := r.runBoth(ctx, p, Command{Args: []string{"merge", "--quiet", "--no-squash", "--commit",
		"--no-autostash", "--no-verify-signatures", "--no-stat", "--ff-only", string(new)}})
	held, found, err := r.ResolveRef(ctx, b.Ref())
	switch {
	case err != nil:
		return errors.Join(failed, err)
	case found && held == new:
		return nil
	case !found || held != old:
		return errors.Join(r.moved(b, old), failed)
	case exited(failed, 1):
		return &RefusedError{Path: w.path, Output: stderr + string(stdout)}
	case exited(failed, 128):
		// git has no separate exit status for a lock that another git holds.
		if refused := w.inTheWay(p, b); refused != nil {
			return refused
		}
		return failed
	case failed != nil:
		return failed
	}
	return r.moved(b, old)
}

// inTheWay returns a *RefusedError for a checkout that is missing, locked, or in the middle of an operation.
func (w *Worktree) inTheWay(p place, b Branch) error {
	if _, err := os.Lstat(p.workTree); err != nil {
		return &RefusedError{Path: w.path, Output: err.Error(), Whole: true}
	}
	if op := operation(p.gitDir); op != NoOperation {
		return &RefusedError{Path: w.path, Output: "a " + string(op) + " is in progress", Whole: true}
	}
	for _, lock := range advanceLocks(p, w.repo.common, b) {
		if _, err := os.Lstat(lock); err == nil {
			return &RefusedError{Path: w.path, Output: lock + " exists: another git is at work there, or was killed", Whole: true}
		}
	}
	return nil
}

// AdvanceLocks returns where the branch is checked out, or "", and the lock files that git holds while it advances the
// branch.
func (r *Repo) AdvanceLocks(ctx context.Context, b Branch) (checkout string, locks []string, err error) {
	checkout, used, err := r.CheckedOutAt(ctx, b)
	var p place
	if err == nil && used {
		p, err = r.In(checkout).place()
	}
	return checkout, advanceLocks(p, r.common, b), err
}

// advanceLocks are the lock files that git holds while it fast-forwards a branch in the checkout at p.
func advanceLocks(p place, common string, b Branch) []string {
	locks := []string{filepath.Join(common, filepath.FromSlash(string(b.Ref()))+".lock")}
	if p.workTree != "" {
		for _, name := range []string{"index.lock", "HEAD.lock", "ORIG_HEAD.lock"} {
			locks = append(locks, filepath.Join(p.gitDir, name))
		}
	}
	return locks
}
