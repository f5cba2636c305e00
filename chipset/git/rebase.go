package git

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// cleanupTime bounds how long a cancelled operation may still put its worktree in order.
const cleanupTime = 30 * time.Second

// Rebase puts what head has and onto has not on top of onto, in a linked worktree, and returns the
// candidate: a commit with linear history on onto, checked out there with HEAD detached. If head already
// is that, it is the candidate itself; if head has nothing that onto lacks, onto is. Merge commits are
// flattened, commits that became empty are dropped. No branch moves. Authors are kept, the committer
// is the person's identity or agentID.
//
// A conflict is a *ConflictError, after which the worktree is clean at head. The worktree is
// clean after every other failure too, as far as git can still make it so.
func (w *Worktree) Rebase(ctx context.Context, head, onto Hash, agentID string) (Hash, error) {
	if err := checkCommits(head, onto); err != nil {
		return "", err
	}
	p, err := w.ours()
	if err != nil {
		return "", err
	}
	if err := w.heal(ctx, p); err != nil {
		return "", err
	}
	if ready, err := w.repo.alreadyOn(ctx, head, onto); err != nil {
		return "", err
	} else if ready != "" {
		return ready, w.forceCheckout(ctx, p, "--detach", string(ready))
	}
	// The rebase itself checks head out. What is in its way, it refuses to overwrite.
	untouched, err := w.untouched(ctx, p)
	if err == nil && !untouched {
		err = w.forceCheckout(ctx, p, "--detach", string(head))
	}
	if err != nil {
		return "", err
	}
	err = w.replay(ctx, p, head, onto, agentID)
	var conflict *ConflictError
	if err != nil && !errors.As(err, &conflict) && untouched && ctx.Err() == nil {
		if err = w.undoRebase(ctx, p, head, nil); err == nil {
			err = w.replay(ctx, p, head, onto, agentID)
		}
	}
	if err != nil {
		return "", w.undoRebase(ctx, p, head, err)
	}
	candidate, err := w.present(ctx, p)
	if err != nil {
		return "", err
	}
	if ready, err := w.repo.alreadyOn(ctx, candidate, onto); err != nil || ready != candidate {
		return "", errors.Join(err, fmt.Errorf("rebase %s: %s is not linear on %s", head.Short(), candidate.Short(), onto.Short()))
	}
	return candidate, nil
}

// alreadyOn returns the candidate where nothing needs to be replayed, else "".
func (r *Repo) alreadyOn(ctx context.Context, head, onto Hash) (Hash, error) {
	c, err := r.commitRange(ctx, onto, head)
	switch {
	case err != nil:
		return "", err
	case c.count == 0:
		return onto, nil
	case c.fork == onto:
		return head, nil
	}
	return "", nil
}

func (w *Worktree) replay(ctx context.Context, p place, head, onto Hash, agentID string) error {
	identity, err := w.repo.IdentityEnv(ctx, agentID)
	if err != nil {
		return err
	}
	stdout, stderr, err := w.repo.runBoth(ctx, p, Command{
		Args: []string{"rebase", "--merge", "--no-rebase-merges", "--empty=drop", "--no-autostash", "--no-autosquash",
			"--no-fork-point", "--no-verify", "--no-gpg-sign", "--no-stat", string(onto), string(head) + "^0"},
		Env: identity,
	})
	if !exited(err, 1) {
		return err
	}
	out, listErr := w.repo.run(ctx, p, Command{Args: []string{"diff", "--name-only", "--diff-filter=U", "-z", "--no-ext-diff"}, Read: true})
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	paths := fields(out)
	if len(paths) == 0 {
		return err
	}
	said := &tail{limit: maxStderr}
	_, _ = said.Write(stdout)
	_, _ = said.Write([]byte(stderr))
	return &ConflictError{Paths: paths, Output: said.String()}
}

// undoRebase drops the rebase and returns why it failed. It also runs after a cancellation, so that the next
// request does not find the worktree half-way.
func (w *Worktree) undoRebase(ctx context.Context, p place, head Hash, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	err := w.quit(ctx, p)
	if err == nil {
		err = w.forceCheckout(ctx, p, "--detach", string(head))
	}
	return errors.Join(cause, err)
}
