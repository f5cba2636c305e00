package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/repair"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// gitFiles checks git's own files: locks left by a killed git, objects and refs torn by a
// power cut, worktrees. It comes before the checks that run git.
func (c *relations) gitFiles(ctx context.Context) error {
	if c.r.Git == nil {
		return nil // the rule "repository" reports it
	}
	return errors.Join(c.gitLocks(), c.emptyObjects(), c.obstacles(ctx), c.brokenRefs(ctx), c.missingObjects(ctx), c.linkedWorktrees(), c.tornWorktrees(ctx))
}

func (c *relations) gitLocks() error {
	locks, err := c.r.Git.Locks()
	for _, path := range locks {
		info, statErr := os.Lstat(path)
		if statErr != nil {
			continue // its git is done
		}
		f := c.add("git-lock", gitPath(c.r, path), Warning, "", "a git that has ended may have left it at %s", state.At(info.ModTime()))
		f.repair = func(ctx context.Context) error { return c.r.Git.RemoveStaleLock(ctx, path) }
	}
	return err
}

// gitPath returns a path in git's folder in the form that findings use.
func gitPath(r *rig.Rig, path string) state.Path {
	if rel, err := filepath.Rel(r.Git.CommonDir(), path); err == nil && !strings.HasPrefix(rel, "..") {
		return state.Path(filepath.ToSlash(filepath.Join(filepath.Base(r.Git.CommonDir()), rel)))
	}
	return state.Path(path)
}

// maxNamed is how many findings of one kind are listed one by one.
const maxNamed = 20

func (c *relations) emptyObjects() error {
	empty, err := repair.EmptyObjects(c.r.Git)
	for i, path := range empty {
		if i == maxNamed {
			c.add("git-object", gitPath(c.r, filepath.Dir(filepath.Dir(path))), Error, "", "%d more objects are empty", len(empty)-i)
			break
		}
		c.add("git-object", gitPath(c.r, path), Error, "", "the object is empty: the power failed before git had written it")
	}
	for i := range c.found {
		if c.found[i].Rule == "git-object" {
			c.found[i].repair = func(context.Context) error { return repair.RemoveEmptyObjects(c.r.Git) }
		}
	}
	return err
}

// obstacles reports files in the place of folders for the rig's refs.
func (c *relations) obstacles(ctx context.Context) error {
	paths, err := repair.Obstacles(ctx, c.r.Git, rig.RefFolders()...)
	for _, path := range paths {
		f := c.add("git-obstacle", gitPath(c.r, path), Error, "", "a file stands where git needs a folder")
		f.repair = func(context.Context) error {
			_, err := repair.SetAside(c.r.Git, path)
			return err
		}
	}
	return err
}

func (c *relations) brokenRefs(ctx context.Context) error {
	prefixes := []string{"refs/heads/polecat/", "refs/chipset/"}
	if c.r.Def != nil {
		if target, err := c.r.Target(ctx); err == nil {
			prefixes = append(prefixes, string(target.Ref()))
		}
		if audit, err := git.ParseBranch(c.r.Def.Audit.Ref); err == nil {
			prefixes = append(prefixes, string(audit.Ref()))
		}
	}
	broken, err := repair.BrokenRefs(ctx, c.r.Git, prefixes...)
	for _, b := range broken {
		instead := c.recorded(b.Ref)
		f := c.add("git-ref", state.Path(b.Ref), Error, "", "%s", b.Reason)
		f.repair = func(ctx context.Context) error {
			if _, err := c.r.Git.RestoreObjects(ctx); err != nil {
				return err
			}
			err := repair.RestoreRef(ctx, c.r.Git, b.Ref, instead...)
			if errors.Is(err, git.ErrNoCommits) && strings.HasPrefix(string(b.Ref), "refs/heads/polecat/") {
				return repair.RemoveRef(ctx, c.r.Git, b.Ref) // no record names any work on it
			}
			return err
		}
		if strings.HasPrefix(string(b.Ref), rig.SnapshotRefs) { // a snapshot that was not reported yet
			f.repair = func(ctx context.Context) error { return repair.RemoveRef(ctx, c.r.Git, b.Ref) }
		}
	}
	return err
}

// missingObjects checks that every object reachable from the target exists.
func (c *relations) missingObjects(ctx context.Context) error {
	if c.r.Def == nil {
		return nil
	}
	target, err := c.r.Target(ctx)
	if err != nil {
		return nil //nolint:nilerr // the rule "target" reports it
	}
	tip, found, err := c.r.Git.ResolveRef(ctx, target.Ref())
	if err != nil || !found {
		return err
	}
	if whole, err := c.r.Git.HasCommit(ctx, tip); err != nil || !whole {
		return err // the rule "git-ref" reports it
	}
	var missing *git.MissingError
	if err := c.r.Git.CheckReached(ctx, tip); !errors.As(err, &missing) {
		return err
	}
	f := c.add("git-missing", state.Path(target.Ref()), Error, "", "%s", missing)
	f.repair = func(ctx context.Context) error { return c.r.Git.MendReached(ctx, target) }
	return nil
}

// recorded returns the commits that the rig's records name for a ref, best first.
func (c *relations) recorded(ref git.Ref) []git.Hash {
	var all []git.Hash
	branch, _ := strings.CutPrefix(string(ref), "refs/heads/")
	for i := range c.Queue {
		q := &c.Queue[len(c.Queue)-1-i]
		if q.SourceBranch == branch {
			all = append(all, git.Hash(q.Head), git.Hash(q.Base))
		}
		if q.TargetBranch == branch && q.Status == mergequeue.Merged {
			all = append(all, git.Hash(cmp.Or(q.LandingCommit(), q.MergedSHA)))
		}
	}
	for _, end := range c.Retire {
		if end.Branch == branch {
			all = append(all, git.Hash(end.Head), git.Hash(end.Base))
		}
	}
	return all
}

// linkedWorktrees reports links and files in the place of worktrees. What a link leads to
// must not be touched.
func (c *relations) linkedWorktrees() error {
	entries, err := c.r.Tree.List(state.WorktreeDir)
	if err != nil && !errors.Is(err, state.ErrNotRegular) { // that one is reported
		return err
	}
	for _, e := range entries {
		if p := state.WorktreeDir.Join(e.Name()); !e.IsDir() {
			f := c.add("folder", p, Error, "", "it is a link or a file, and not a worktree")
			f.repair = replaceByFolder(c.r, p)
		}
	}
	return nil
}

func (c *relations) tornWorktrees(ctx context.Context) error {
	torn, err := c.torn(ctx)
	for _, id := range slices.Sorted(maps.Keys(torn)) {
		damage := torn[id]
		reasons := make([]string, len(damage))
		for i, w := range damage {
			reasons[i] = fmt.Sprintf("%s %s", gitPath(c.r, w.Path), w.Reason)
		}
		f := c.add("worktree-torn", state.WorktreeDir.Join(string(id)), Error, "chipset up repairs it as well", "%s", strings.Join(reasons, "; "))
		f.repair = rescue(c.r, id, c.roleOf(id))
	}
	return err
}

// torn returns the worktrees whose git files are damaged, including those of agents that
// are not registered.
func (c *relations) torn(ctx context.Context) (map[state.AgentID][]repair.Damage, error) {
	entries, err := c.r.Tree.List(state.WorktreeDir)
	torn := map[state.AgentID][]repair.Damage{}
	failed := []error{err}
	ids := map[state.AgentID]bool{}
	for _, a := range c.Agents {
		ids[a.ID] = true
	}
	for _, e := range entries {
		if id, err := state.ParseAgentID(e.Name()); err == nil && e.IsDir() {
			ids[id] = true
		}
	}
	for id := range ids {
		damage, err := repair.CheckWorktree(ctx, c.r.Git, c.r.Worktree(id), carry.HintOf(c.r, id))
		if len(damage) > 0 {
			torn[id] = damage
		}
		failed = append(failed, err)
	}
	return torn, errors.Join(failed...)
}

// roleOf returns the role whose recovery applies to an agent: a person's session counts as a polecat.
func (c *relations) roleOf(id state.AgentID) agent.Role {
	a := c.Agent(id)
	switch {
	case a == nil:
		return ""
	case a.IsSession():
		return agent.Polecat
	}
	return a.Role
}

// requestCommits checks that the commits and branches of the live requests exist.
func (c *relations) requestCommits(ctx context.Context) error {
	heads := map[git.Ref]git.Hash{}
	for i := range c.Queue {
		if q := &c.Queue[i]; q.Status.Live() && q.Head != "" {
			heads[git.Ref(q.ID)] = git.Hash(q.Head)
		}
	}
	missing, err := c.r.Git.MissingCommits(ctx, heads)
	if err != nil {
		return err
	}
	for _, id := range missing {
		c.add("request-head", c.r.Queue.Path(string(id)), Error, "", "its commit %s is not in the repository", heads[id].Short())
		delete(heads, id)
	}
	for i := range c.Queue {
		q := &c.Queue[i]
		head, live := heads[git.Ref(q.ID)]
		branch, err := git.ParseBranch(q.SourceBranch)
		if !live || err != nil {
			continue
		}
		there, err := c.r.Git.RefExists(ctx, branch.Ref())
		if err != nil {
			return err
		}
		if !there {
			f := c.add("request-branch", c.r.Queue.Path(string(q.ID)), Warning, "", "its branch %s is gone", branch)
			f.repair = func(ctx context.Context) error {
				if err := c.r.Git.UpdateRef(ctx, branch.Ref(), head, git.ZeroHash); err != nil {
					return err
				}
				return c.r.Git.Sync(ctx)
			}
		}
	}
	return nil
}

// salvageRefs checks that the salvage refs that records name exist.
func (c *relations) salvageRefs(refs []git.NamedRef) error {
	there := map[string]bool{}
	for _, ref := range refs {
		there[string(ref.Ref)] = true
	}
	for a, end := range c.Retire {
		if end.Salvage != "" && !there[end.Salvage] {
			c.add("salvage-ref", c.r.Retire.Path(string(a)), Warning, "", "it names %s, which does not exist", end.Salvage)
		}
	}
	for _, a := range c.Agents {
		notes, _, err := c.r.Handoffs.List(a.ID)
		if err != nil {
			return err
		}
		for i := range notes {
			if s := notes[i].Salvage; s != "" && !there[s] {
				c.add("salvage-ref", handoffPath(&notes[i]), Warning, "", "it names %s, which does not exist", s)
			}
		}
	}
	return nil
}
