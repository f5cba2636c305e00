package view

import (
	"context"
	"fmt"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// Changes are the changes of a bead's attempt, or what landed of them.
type Changes struct {
	// Where says what is compared.
	Where string `json:"where"`
	Patch string `json:"patch"`
	// Commits are those of the changes, newest first.
	Commits []git.Commit `json:"commits"`
}

// maxPatch bounds a patch, in bytes.
const maxPatch = 4 << 20

// ChangesOf returns the changes of a bead: while an attempt works on it, those in its
// worktree, committed or not; then those of its merge request; then those that landed.
// Untracked files are left out. Errors: *state.Unknown, and state.ErrNotFound if there
// are no changes yet.
func ChangesOf(ctx context.Context, r *rig.Rig, id state.BeadID) (*Changes, error) {
	b, err := r.Beads.Get(string(id))
	if err != nil {
		return nil, err
	}
	if r.Git == nil {
		return nil, state.Absent(fmt.Sprintf("%s: no git repository", id))
	}
	if b.Status == bead.InProgress {
		return changesInWorktree(ctx, r, &b)
	}
	requests, _, err := r.Queue.Select(func(q *mergequeue.Request) bool { return q.BeadID == id })
	if err != nil {
		return nil, err
	}
	mergequeue.InOrder(requests)
	if n := len(requests); n > 0 {
		q := &requests[n-1]
		if q.Status == mergequeue.Merged && q.Onto != "" && q.MergedSHA != "" {
			return changesBetween(ctx, r, "landed on "+q.TargetBranch, git.Hash(q.Onto), git.Hash(q.MergedSHA))
		}
		return changesSinceTarget(ctx, r, "branch "+q.SourceBranch, git.Hash(q.Head))
	}
	for _, ref := range []git.Ref{git.Ref("refs/chipset/salvage/" + string(b.AssignmentID)), git.Ref("refs/heads/" + b.Branch)} {
		tip, found, err := r.Git.ResolveRef(ctx, ref)
		if err == nil && found {
			return changesSinceTarget(ctx, r, string(ref), tip)
		}
	}
	return nil, state.Absent(fmt.Sprintf("%s: no attempt has changed anything yet", id))
}

func changesInWorktree(ctx context.Context, r *rig.Rig, b *bead.Bead) (*Changes, error) {
	w := r.Git.In(r.Worktree(b.Assignee))
	head, found, err := w.Head(ctx)
	if err != nil || !found {
		return nil, state.Absent(fmt.Sprintf("%s: it has no worktree yet", b.ID))
	}
	base, err := mergeBase(ctx, r, head)
	if err != nil {
		return nil, err
	}
	patch, err := w.Run(ctx, git.Command{Args: []string{"diff", "--patch", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", string(base), "--"}, Read: true})
	if err != nil {
		return nil, err
	}
	commits, err := r.Git.Log(ctx, base, head, maxCommits)
	return newChanges("worktree of "+string(b.Assignee)+", against "+base.Short(), patch, commits), err
}

// maxCommits bounds the commits of Changes.
const maxCommits = 50

func changesSinceTarget(ctx context.Context, r *rig.Rig, where string, head git.Hash) (*Changes, error) {
	base, err := mergeBase(ctx, r, head)
	if err != nil {
		return nil, err
	}
	return changesBetween(ctx, r, where, base, head)
}

func changesBetween(ctx context.Context, r *rig.Rig, where string, base, head git.Hash) (*Changes, error) {
	patch, err := r.Git.Diff(ctx, base, head)
	if err != nil {
		return nil, err
	}
	commits, err := r.Git.Log(ctx, base, head, maxCommits)
	return newChanges(where+", "+base.Short()+" to "+head.Short(), patch, commits), err
}

func newChanges(where string, patch []byte, commits []git.Commit) *Changes {
	c := &Changes{Where: where, Patch: string(patch), Commits: commits}
	if len(c.Patch) > maxPatch {
		c.Patch = c.Patch[:maxPatch] + "\n… the rest is left out\n"
	}
	return c
}

func mergeBase(ctx context.Context, r *rig.Rig, head git.Hash) (git.Hash, error) {
	target, err := r.Target(ctx)
	if err != nil {
		return "", err
	}
	tip, found, err := r.Git.ResolveRef(ctx, target.Ref())
	if err == nil && !found {
		err = fmt.Errorf("target branch %s: %w", target, state.ErrNotFound)
	}
	if err != nil {
		return "", err
	}
	return r.Git.MergeBase(ctx, tip, head)
}
