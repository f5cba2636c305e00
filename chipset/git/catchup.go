package git

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// A person may work in the checkout of a branch while a rig lands on it, and git's commands are not atomic
// against each other. Two races do harm after Advance has returned:
//
//   - "git reset --hard", which every "git stash" ends with, resolves HEAD, and writes what it resolved back
//     at its end. That takes back an advance in between. TakenBack recognises it.
//   - "git switch" to the branch resolves it, fills the checkout, and only then says that the branch is
//     checked out. An advance in between leaves a checkout whose index is one commit behind, so that
//     its next commit would undo the advance. CatchUp updates it.

// TakenBack reports whether the last change of the branch was a reset to HEAD, which should move nothing,
// but took the branch from new back to old. A reset to a named commit is a person's
// decision and does not count. Without a reflog it returns false.
func (r *Repo) TakenBack(ctx context.Context, b Branch, old, new Hash) (bool, error) {
	if err := errors.Join(b.check(), checkCommits(old, new)); err != nil {
		return false, err
	}
	out, err := r.run(ctx, r.plain(), Command{Read: true,
		Args: []string{"log", "--walk-reflogs", "--max-count=2", "--format=%H %gs", string(b.Ref()), "--"}})
	if err != nil {
		if exited(err, 128) { // no reflog
			return false, nil
		}
		return false, err
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	return len(lines) == 2 && lines[0] == string(old)+" reset: moving to HEAD" && strings.HasPrefix(lines[1], string(new)+" "), nil
}

// CatchUp brings a checkout to new whose branch holds new, but whose index a racing switch left at
// old. It does so only if the index has old's entries for every path
// that differs between the two. Local changes elsewhere stay; local changes to those paths are
// an error, and nothing changes. It reports whether it changed the checkout.
func (r *Repo) CatchUp(ctx context.Context, b Branch, old, new Hash) (bool, error) {
	if err := errors.Join(b.check(), checkCommits(old, new)); err != nil {
		return false, err
	}
	at, out, err := r.CheckedOutAt(ctx, b)
	if err != nil || !out {
		return false, err
	}
	w := r.In(at)
	p, err := w.place()
	if err != nil || w.inTheWay(p, b) != nil {
		return false, err
	}
	if head, err := w.present(ctx, p); err != nil || head != new {
		return false, err
	}
	changes, err := r.Changes(ctx, old, new)
	if err != nil || len(changes) == 0 {
		return false, err
	}
	own, err := w.Staged(ctx, old)
	if err != nil || slices.ContainsFunc(changes, func(c Change) bool { return own[c.Path] }) {
		return false, err // not left behind, or somebody's own
	}
	_, err = r.run(ctx, p, Command{Args: []string{"read-tree", "-m", "-u", string(old), string(new)}})
	return err == nil, err
}

// Staged returns the paths whose index entries differ from a commit.
func (w *Worktree) Staged(ctx context.Context, commit Hash) (map[string]bool, error) {
	out, err := w.Run(ctx, Command{Read: true, Args: []string{"diff-index", "--cached", "-z", "--name-only", "--no-renames", string(commit), "--"}})
	set := map[string]bool{}
	for _, path := range fields(out) {
		set[path] = true
	}
	return set, err
}
