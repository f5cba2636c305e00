package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// cleanupTime bounds the cleanup of a worktree after a cancelled operation.
const cleanupTime = 30 * time.Second

// Rebase replays the commits that head has and onto has not on top of onto, in a linked worktree, and returns the
// candidate: a commit with linear history on onto, checked out there with HEAD detached. If head has linear
// history on onto, head is the candidate; if it has no commits that onto lacks, onto is. Merge commits are
// flattened, and commits that become empty are dropped. No branch moves. Authors are kept; the committer
// is the person's identity or agentID.
//
// A conflict is a *ConflictError, after which the worktree is clean at head. After any other failure it is
// clean too, unless git fails to clean it.
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
	untouched, err := w.untouched(ctx, p)
	if err != nil {
		return "", err
	}
	if untouched {
		if candidate := w.pick(ctx, p, head, onto, agentID); candidate != "" {
			return candidate, nil
		}
	}
	if err := w.cleanAt(ctx, p, head); err != nil {
		return "", err
	}
	if err := w.replay(ctx, p, head, onto, agentID); err != nil {
		return "", errors.Join(err, w.cleanAt(ctx, p, head))
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

// pick is Rebase for the usual case, a linear range of commits without conflicts, with fewer processes. If it
// returns "", a rebase is needed, and the worktree may be anywhere, in the middle of a cherry-pick.
func (w *Worktree) pick(ctx context.Context, p place, head, onto Hash, agentID string) Hash {
	c, err := w.repo.commitRange(ctx, onto, head)
	if err != nil || c.fork == "" {
		return ""
	}
	identity, err := w.repo.IdentityEnv(ctx, agentID)
	if err != nil {
		return ""
	}
	if _, at, known := readHead(p.gitDir); !known || at != onto {
		if w.checkout(ctx, p, "--detach", string(onto)) != nil {
			return ""
		}
	}
	what := string(head)
	if c.count > 1 {
		what = string(c.fork) + ".." + string(head)
	}
	// Commits that were empty from the start stay; if one became empty, cherry-pick stops, and a rebase drops it.
	_, err = w.repo.run(ctx, p, Command{Args: []string{"cherry-pick", "--no-edit", "--allow-empty", "--allow-empty-message", what}, Env: identity})
	if err != nil {
		return ""
	}
	candidate, err := w.present(ctx, p)
	if err != nil {
		return ""
	}
	made, err := w.repo.commitRange(ctx, onto, candidate)
	if err != nil || made.fork != onto || made.count != c.count {
		return ""
	}
	return candidate
}

// alreadyOn returns the candidate if nothing needs to be replayed, else "".
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
		Args: []string{"rebase", "--merge", "--no-rebase-merges", "--empty=drop", "--no-fork-point", "--no-stat", string(onto), string(head) + "^0"},
		Env:  identity,
	})
	if !exited(err, 1) {
		return err
	}
	out, listErr := w.repo.run(ctx, p, Command{Args: []string{"ls-files", "--unmerged", "-z"}, Read: true})
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	paths := fields(out)
	for i, record := range paths {
		_, paths[i], _ = strings.Cut(record, "\t")
	}
	paths = slices.Compact(paths) // one entry for each side
	if len(paths) == 0 {
		return err
	}
	said := &tail{limit: maxStderr}
	_, _ = said.Write(stdout)
	_, _ = said.Write([]byte(stderr))
	return &ConflictError{Paths: paths, Output: said.String()}
}

// cleanAt ends any operation and makes the worktree clean at head. It runs even if ctx was cancelled, so that the next
// request finds a clean worktree.
func (w *Worktree) cleanAt(ctx context.Context, p place, head Hash) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if err := w.quit(ctx, p); err != nil {
		return err
	}
	return w.forceCheckout(ctx, p, "--detach", string(head))
}

// BroughtBy returns the commit in onto's history that brought the last of head's changes: head
// itself, or else the youngest of the commits that make the same changes as head's
// commits. found is false unless each of head's commits has such a counterpart.
func (r *Repo) BroughtBy(ctx context.Context, head, onto Hash) (commit Hash, found bool, err error) {
	if held, err := r.IsAncestor(ctx, head, onto); err != nil || held {
		return head, held, err
	}
	sides := string(onto) + "..." + string(head)
	own, err := r.read(ctx, "rev-list", "--cherry-pick", "--right-only", "--no-merges", "--max-count=1", sides, "--")
	if err != nil || len(own) > 0 {
		return "", false, err
	}
	out, err := r.read(ctx, "rev-list", "--cherry-mark", "--left-only", "--no-merges", "--topo-order", sides, "--")
	for l := range strings.Lines(string(out)) {
		if name, same := strings.CutPrefix(l, "="); same && err == nil {
			commit, err = ParseHash(strings.TrimSpace(name))
			return commit, err == nil, err
		}
	}
	return "", false, err
}
