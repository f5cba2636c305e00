package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// againstGit checks what the tree says against the repository, and what init
// wrote into git's own folder.
func (c *relations) againstGit(ctx context.Context) error {
	if c.r.Git == nil {
		if _, err := git.Open(ctx, c.r.Dir); err != nil && !errors.Is(err, git.ErrNotRepo) {
			c.add("repository", state.Path(c.r.Dir), Error, "git can't use it", "%v", err)
		} else {
			c.add("repository", state.Path(c.r.Dir), Error, "", "there is no git repository here")
		}
		return nil
	}
	if err := c.guards(); err != nil {
		return err
	}
	if err := c.worktrees(ctx); err != nil {
		return err
	}
	if c.r.Def == nil {
		return nil
	}
	target, err := c.r.Target(ctx)
	if err != nil {
		c.add("target", "chipset.yaml", Error, "", "%v", err)
		return nil
	}
	tip, found, err := c.r.Git.ResolveRef(ctx, target.Ref())
	if err != nil {
		return err
	}
	if !found {
		c.add("target", state.Path(target.Ref()), Error, "", "this branch, on which work lands, does not exist")
		return nil
	}
	if err := c.landed(ctx, target, tip); err != nil {
		return err
	}
	refs, err := c.r.Git.ListRefs(ctx, "refs/heads/polecat/", "refs/chipset/salvage/")
	if err != nil {
		return err
	}
	c.branches(refs)
	return errors.Join(c.stateInGit(ctx, target), c.requestCommits(ctx), c.salvageRefs(refs))
}

// stateInGit reports a live tree that git tracks, so that switching branches would remove it.
func (c *relations) stateInGit(ctx context.Context, target git.Branch) error {
	places, err := c.r.StateInGit(ctx, target)
	for _, place := range places {
		c.add("state-in-git", state.StateDir, Warning, "git rm -r -q --cached .chipset/state, and commit that; chipset audit commit keeps its history",
			"%s contains the live tree: switching to a branch without it, or with another copy of it, removes it", place)
	}
	return err
}

func (c *relations) guards() error {
	lines, pointer, err := c.r.Unguarded()
	if err != nil {
		return err
	}
	if len(lines) > 0 {
		f := c.add("exclude", state.Path(c.r.Git.ExcludePath()), Error, "",
			"these lines, which keep git away from the live tree, are missing: %s", strings.Join(lines, " "))
		f.settled, f.repair = true, c.r.RestoreGuards
	}
	if pointer {
		f := c.add("pointer", state.Path(filepath.Join(c.r.Git.CommonDir(), "chipset")), Error, "",
			"it does not name this rig, so commands inside a worktree may not find it")
		f.settled, f.repair = true, c.r.RestoreGuards
	}
	return nil
}

// landed checks that the target contains every commit that a request was merged as.
func (c *relations) landed(ctx context.Context, target git.Branch, tip git.Hash) error {
	var merged []*mergequeue.Request
	stdin := "^" + string(tip) + "\n"
	for i := range c.Queue {
		q := &c.Queue[i]
		if q.Status != mergequeue.Merged || q.TargetBranch != string(target) {
			continue
		}
		if q.MergedSHA == "" && q.HeldBefore() {
			continue
		}
		if q.MergedSHA == "" {
			c.add("merged-unreachable", c.r.Queue.Path(string(q.ID)), Error, "", "it is merged, but does not name the commit")
			continue
		}
		merged = append(merged, q)
		stdin += q.MergedSHA + "\n"
	}
	if len(merged) == 0 {
		return nil
	}
	tips := []git.Hash{tip}
	if remote := c.r.Def.Merge.Remote; remote != "" { // pushed work has landed, even if the branch here can't follow
		there, found, err := c.r.Git.ResolveRef(ctx, git.Ref("refs/remotes/"+remote+"/"+string(target)))
		if err != nil {
			return err
		}
		if found {
			tips = append(tips, there)
			stdin += "^" + string(there) + "\n"
		}
	}
	// One git command for all of them; only if that finds something, one for each.
	out, err := c.r.Git.Run(ctx, git.Command{Args: []string{"rev-list", "--max-count=1", "--stdin"}, Stdin: []byte(stdin), Read: true})
	if err == nil && len(out) == 0 {
		return nil
	}
	for _, q := range merged {
		sha := git.Hash(q.MergedSHA)
		_, exists, err := c.r.Git.ResolveCommit(ctx, string(sha))
		if err != nil {
			return err
		}
		reachable := false
		for i := 0; exists && !reachable && i < len(tips); i++ {
			if reachable, err = c.r.Git.IsAncestor(ctx, sha, tips[i]); err != nil {
				return err
			}
		}
		if !reachable {
			c.add("merged-unreachable", c.r.Queue.Path(string(q.ID)), Error, "somebody rewrote "+string(target)+", or the repository lost the commit",
				"it is merged as %s, but %s does not contain that commit", sha.Short(), target)
		}
	}
	return nil
}

// branches counts the branches of finished beads.
func (c *relations) branches(refs []git.NamedRef) {
	owner := map[git.Ref]*bead.Bead{}
	for i := range c.Beads {
		b := &c.Beads[i]
		for n := 1; n <= b.Assignments; n++ {
			owner[git.Branch(bead.BranchFor(b.ID, n)).Ref()] = b
		}
	}
	left := 0
	for _, ref := range refs {
		if b := owner[ref.Ref]; b != nil && b.Status.Finished() {
			left++
		}
	}
	if left > 0 {
		f := c.add("branches", "refs/heads/polecat/", Info, "",
			"branches of finished beads: %d", left)
		f.settled = true
	}
}

// worktrees compares the folders of the rig with git's list of them.
func (c *relations) worktrees(ctx context.Context) error {
	if torn, err := c.torn(ctx); err != nil || len(torn) > 0 {
		return err // reported by worktree-torn; git can't list them
	}
	list, err := c.r.Git.ListWorktrees(ctx)
	if err != nil {
		return err
	}
	home := c.r.Tree.Abs(state.WorktreeDir)
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	works := map[string]bool{}
	for _, a := range c.Agents {
		works[string(a.ID)] = a.Role == agent.Polecat || a.Role == agent.Refinery || a.IsSession()
	}
	registered := map[string]bool{}
	for _, w := range list {
		name := filepath.Base(w.Path)
		if filepath.Dir(w.Path) != home || isTrial(name) {
			continue
		}
		registered[name] = true
		p := state.WorktreeDir.Join(name)
		if !works[name] {
			c.add("worktree-agent", p, Warning, "", "no polecat, refinery or session of yours is called %s in this rig", name)
		}
		if w.Prunable {
			f := c.add("worktree-gone", p, Warning, "",
				"git has registered a worktree here, but the folder is gone")
			f.repair = func(ctx context.Context) error { return forgetWorktree(ctx, c.r, w) }
		}
	}
	entries, err := c.r.Tree.List(state.WorktreeDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !registered[e.Name()] && !isTrial(e.Name()) {
			c.add("worktree-foreign", state.WorktreeDir.Join(e.Name()), Warning, "", "git has registered no worktree here")
		}
	}
	return nil
}

// isTrial reports whether a worktree is the one in which setup and test are tried. It belongs to no agent.
func isTrial(name string) bool { return strings.HasPrefix(name, ".") }

// forgetWorktree removes the registration of a worktree whose folder is gone. A
// commit that only its HEAD held is kept on a salvage ref first.
func forgetWorktree(ctx context.Context, r *rig.Rig, w git.Registration) error {
	if entries, err := os.ReadDir(w.Path); err == nil && len(entries) > 0 {
		return state.Conflictf("worktree "+w.Path, "has appeared again")
	}
	if w.Detached && w.Head != "" {
		ref, err := git.ParseRef("refs/chipset/salvage/worktree-" + filepath.Base(w.Path) + "-" + w.Head.Short())
		if err != nil {
			return err
		}
		err = r.Git.UpdateRef(ctx, ref, w.Head, git.ZeroHash)
		if err != nil && !errors.Is(err, git.ErrMoved) { // it holds that commit already
			return fmt.Errorf("keep %s: %w", w.Head.Short(), err)
		}
	}
	return r.Git.ForgetWorktree(w.Path)
}
