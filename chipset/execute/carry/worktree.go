package carry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/repair"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// Worktree records what a polecat's worktree is used for, in
// run/worktrees/{agent}.json. It is a cache: the branch that is
// checked out tells nearly as much.
type Worktree struct {
	AgentID      state.AgentID      `json:"agent_id"`
	AssignmentID state.AssignmentID `json:"assignment_id"`
	BeadID       state.BeadID       `json:"bead_id"`
	Session      state.SessionID    `json:"session,omitempty"`
	// Base is the tip of the target that the work began on.
	Base   git.Hash `json:"base"`
	Branch string   `json:"branch"`
	// Ready is true once a person's own session was told that the worktree is ready. From then on the session owns it.
	Ready bool `json:"ready,omitempty"`
	// Remade is true while the worktree of such a session is made again, until the session was told.
	Remade bool `json:"remade,omitempty"`
	// Torn is true if the last commits may be lost or torn, as after a power cut. What was left has been saved.
	Torn bool `json:"torn,omitempty"`
}

// WorktreeRecords is the folder of the Worktree records.
const WorktreeRecords = state.RunDir + "/worktrees"

func worktreePath(id state.AgentID) state.Path { return WorktreeRecords.Join(string(id) + ".json") }

// ReadWorktree returns the record of an agent's worktree, and false
// if there is no valid one.
func ReadWorktree(r *rig.Rig, id state.AgentID) (Worktree, bool) {
	var w Worktree
	if r.Tree.ReadJSON(worktreePath(id), &w) != nil || w.AgentID != id || w.AssignmentID == "" {
		return Worktree{}, false // run/ may be emptied at any time
	}
	if _, err := git.ParseHash(string(w.Base)); err != nil {
		return Worktree{}, false
	}
	return w, true
}

// IsGiven reports whether a person's own session was told that its worktree is ready for the assignment on its hook.
func IsGiven(r *rig.Rig, h *hook.Hook) bool {
	use, known := ReadWorktree(r, h.AgentID)
	return known && use.Ready && h.WorkItem != nil && use.AssignmentID == h.Assignment()
}

// WriteWorktree records what a worktree is used for from now on.
func WriteWorktree(r *rig.Rig, w Worktree) error {
	return r.Tree.ReplaceJSON(worktreePath(w.AgentID), w)
}

// ForgetWorktree removes the record: the worktree holds no work.
func ForgetWorktree(r *rig.Rig, id state.AgentID) error { return r.Tree.Remove(worktreePath(id)) }

// TargetTip returns the branch that work lands on, and its tip.
func TargetTip(ctx context.Context, r *rig.Rig) (git.Branch, git.Hash, error) {
	target, err := r.Target(ctx)
	if err != nil {
		return "", "", err
	}
	tip, found, err := r.Git.ResolveRef(ctx, target.Ref())
	if err != nil {
		return target, "", err
	}
	if !found {
		return target, "", fmt.Errorf("target branch %s: %w", target, state.ErrNotFound)
	}
	if r.Def == nil || r.Def.Merge.Remote == "" {
		return target, tip, nil
	}
	there, found, err := r.Git.ResolveRef(ctx, git.Ref("refs/remotes/"+r.Def.Merge.Remote+"/"+string(target)))
	if err != nil || !found || there == tip {
		return target, tip, err
	}
	if beyond, err := LandedBeyond(ctx, r, target, tip, there); err != nil || beyond {
		return target, there, err
	}
	return target, tip, nil
}

// LandedBeyond reports whether there, the remote's tip, has the last work that
// the rig landed on target, and local has not: somebody committed here before the
// local branch could follow the push.
func LandedBeyond(ctx context.Context, r *rig.Rig, target git.Branch, local, there git.Hash) (bool, error) {
	all, _, err := r.Queue.Queue()
	if err != nil {
		return false, err
	}
	last := mergequeue.LastLanded(all, string(target))
	if last == nil {
		return false, nil
	}
	for _, tip := range []git.Hash{there, local} {
		held, err := r.Git.IsAncestor(ctx, git.Hash(last.MergedSHA), tip)
		if err != nil || held != (tip == there) {
			return false, err
		}
	}
	return true, nil
}

// SaveWork saves the work in an agent's worktree that is on no branch
// under the name of its assignment, and returns the ref or "".
// It mends torn git files of the worktree first. A missing worktree holds no
// work, but its branch may. The ref is durable when SaveWork returns nil.
func SaveWork(ctx context.Context, r *rig.Rig, id state.AgentID, message string) (string, error) {
	if _, found, err := mendWorktree(ctx, r, id); err != nil || found != "" {
		return found, err
	}
	gone, err := worktreeGone(r, id)
	if err != nil {
		return "", err
	}
	if gone {
		use, _ := ReadWorktree(r, id)
		return saveBranch(ctx, r, use)
	}
	return saveMended(ctx, r, id, message)
}

// saveMended is SaveWork for a worktree that git can read.
func saveMended(ctx context.Context, r *rig.Rig, id state.AgentID, message string) (string, error) {
	wt := r.Git.In(r.Worktree(id))
	use, known := ReadWorktree(r, id)
	name, base := string(use.AssignmentID), use.Base
	head, found, err := wt.Head(ctx)
	if errors.Is(err, git.ErrNotWorktree) { // nothing was ever checked out
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if err := wt.CollectLFS(); err != nil {
		return "", err
	}
	if !known {
		if name, err = unnamedWork(ctx, wt, id, head); err != nil {
			return "", err
		}
		base = ""
	}
	if !found { // a branch without a commit: everything in it is new
		base = ""
	} else if base, err = savedBase(ctx, r, wt, head, base); err != nil {
		return "", err
	}
	return salvage(ctx, r, wt, git.SalvageRequest{Base: base, Ref: git.Ref(salvagePrefix + name), Message: message, AgentID: string(id)})
}

// HintOf returns what package repair needs to know about an agent's worktree. The
// refinery has no record, and a power cut can take a polecat's; an
// agent's folder is the rig's all the same, and its content is saved
// before it is used. A folder that can't be saved whole is left alone: it may be a person's.
func HintOf(r *rig.Rig, id state.AgentID) repair.Known {
	use, known := ReadWorktree(r, id)
	if !known {
		a, err := r.Agents.Get(string(id))
		return repair.Known{Own: id == r.Refinery() || err == nil && (a.Role == agent.Polecat || a.IsSession()) && savable(r.Worktree(id))}
	}
	hint := repair.Known{Branch: git.Branch(use.Branch), Base: use.Base}
	if _, err := git.ParseBranch(use.Branch); err != nil {
		hint.Branch = "" // a cache that holds nonsense names no work
	}
	return hint
}

// errTheirs stops the walk of a folder with somebody's own repository in it.
var errTheirs = errors.New("a repository of its own")

// savable reports whether a folder that git does not know can be saved whole: every file can be read, and there is no other
// repository in it.
func savable(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
		return true // git tells
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Name() == ".git":
			return errTheirs
		case !e.Type().IsRegular():
			return nil
		}
		f, err := os.Open(path)
		if err == nil {
			err = f.Close()
		}
		return err
	})
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// mendWorktree makes an agent's worktree readable for git again, so that its work can be
// saved, after a power cut or manual damage tore git's files for it. If the commit at a polecat's HEAD is
// lost, its files may be torn as well, even if the work was reported as done: they are saved
// for a person on the ref found, removed from the worktree, and its record is marked Torn.
// The caller acts for the agent, and no process of its worker runs.
func mendWorktree(ctx context.Context, r *rig.Rig, id state.AgentID) (mended []repair.Damage, found string, err error) {
	if err := r.Git.Unblock(r.Worktree(id), rig.WorkRefs); err != nil {
		return nil, "", err
	}
	mended, err = repair.Worktree(ctx, r.Git, r.Worktree(id), HintOf(r, id))
	if err != nil || len(mended) == 0 {
		return nil, "", err
	}
	for _, w := range mended {
		r.Events.Tell(event.WorktreeMended(id, w.String()))
	}
	// Torn objects would be taken for saved.
	lost := slices.ContainsFunc(mended, func(w repair.Damage) bool { return w.Lost })
	if err := repair.RemoveEmptyObjects(r.Git); err != nil || !lost || id == r.Refinery() {
		return mended, "", err
	}
	if found, err = saveMended(ctx, r, id, "Found in the torn worktree of "+string(id)); err != nil {
		return mended, "", err
	}
	if use, known := ReadWorktree(r, id); known {
		use.Torn = true
		if err := WriteWorktree(r, use); err != nil {
			return mended, found, err
		}
	}
	err = r.Git.ReleaseWorktree(ctx, r.Worktree(id), "")
	if errors.Is(err, git.ErrNotWorktree) { // nothing was left in it
		err = nil
	}
	return mended, found, err
}

// MendCandidates is SaveWork for the refinery's worktree. It holds only candidates,
// which are recorded or made again, so its files are saved only if git
// had no registration of it: then they could be
// somebody's. The caller acts for the refinery.
func MendCandidates(ctx context.Context, r *rig.Rig, id state.AgentID) error {
	mended, _, err := mendWorktree(ctx, r, id)
	if err != nil || !slices.ContainsFunc(mended, func(w repair.Damage) bool { return w.Unknown }) {
		return err
	}
	_, err = saveMended(ctx, r, id, "found in the refinery's worktree")
	return err
}

// WorktreeWhole reports whether an agent's worktree is still that of a session, with
// none of git's own files torn. It does not look into the files of the work.
func WorktreeWhole(ctx context.Context, r *rig.Rig, id state.AgentID, s state.SessionID) (bool, error) {
	use, known := ReadWorktree(r, id)
	if !known || use.Torn || use.Session != s {
		return false, nil
	}
	if gone, err := worktreeGone(r, id); gone || err != nil {
		return false, err
	}
	damage, err := repair.CheckWorktree(ctx, r.Git, r.Worktree(id), HintOf(r, id))
	return err == nil && len(damage) == 0, err
}

// WorktreeChanged reports whether an agent's worktree differs from the
// base of its assignment, committed or not.
func WorktreeChanged(ctx context.Context, r *rig.Rig, id state.AgentID) (bool, error) {
	wt := r.Git.In(r.Worktree(id))
	use, known := ReadWorktree(r, id)
	head, found, err := wt.Head(ctx)
	if err != nil {
		return false, err
	}
	if found && known && head != use.Base {
		return true, nil
	}
	status, err := wt.Status(ctx)
	return !status.Clean(), err
}

// worktreeGone reports whether the folder is missing, or a link or
// a file is in its place. Git may still have it registered.
func worktreeGone(r *rig.Rig, id state.AgentID) (bool, error) {
	info, err := os.Lstat(r.Worktree(id))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && !info.IsDir(), err
}

// saveBranch saves the branch of a worktree whose folder is gone, because preparing
// it again resets the branch.
func saveBranch(ctx context.Context, r *rig.Rig, use Worktree) (string, error) {
	if use.AssignmentID == "" {
		return "", nil
	}
	branch, err := git.ParseBranch(use.Branch)
	if err != nil {
		return "", nil // a cache that holds nonsense names no work
	}
	tip, found, err := r.Git.ResolveRef(ctx, branch.Ref())
	if err != nil || !found {
		return "", err
	}
	landed, err := r.Git.IsAncestor(ctx, tip, use.Base)
	if err != nil || landed {
		return "", err
	}
	ref := git.Ref(salvagePrefix + string(use.AssignmentID) + "-branch")
	if err := r.Git.UpdateRef(ctx, ref, tip, ""); err != nil {
		return "", err
	}
	return string(ref), keep(ctx, r, tip)
}

const salvagePrefix = "refs/chipset/salvage/"

func salvage(ctx context.Context, r *rig.Rig, wt *git.Worktree, q git.SalvageRequest) (string, error) {
	saved, err := wt.Salvage(ctx, q)
	var incomplete *git.IncompleteError
	if err != nil && !errors.As(err, &incomplete) {
		return "", err
	}
	if !saved.Saved {
		return "", nil
	}
	return string(saved.Ref), keep(ctx, r, saved.Hash)
}

// keep makes a commit and all refs durable. Objects that are torn already stay lost;
// the rest is saved all the same.
func keep(ctx context.Context, r *rig.Rig, commit git.Hash) error {
	var have []git.Hash
	if _, tip, err := TargetTip(ctx, r); err == nil {
		have = []git.Hash{tip}
	}
	if err := r.Git.MakeDurable(ctx, commit, have...); err != nil && !errors.Is(err, git.ErrTorn) {
		return err
	}
	return r.Git.Sync(ctx)
}

// unnamedWork returns a name for work without a record: that of its branch, or
// of its commit.
func unnamedWork(ctx context.Context, wt *git.Worktree, id state.AgentID, head git.Hash) (string, error) {
	branch, found, err := wt.HeadBranch(ctx)
	switch {
	case err != nil:
		return "", err
	case found:
		return strings.ReplaceAll(string(branch), "/", "-"), nil
	case head == "":
		return "lost-" + string(id), nil
	}
	return "lost-" + head.Short(), nil
}

// savedBase returns the commit up to which nothing needs saving: head itself, if it is reachable
// from the target, or, if HEAD is detached, from any branch or salvage ref.
func savedBase(ctx context.Context, r *rig.Rig, wt *git.Worktree, head, base git.Hash) (git.Hash, error) {
	_, tip, err := TargetTip(ctx, r)
	if err != nil {
		return "", err
	}
	if base == "" {
		base = tip
	}
	var bad *git.UnfitError
	if errors.As(r.Git.Inspect(ctx, tip, head), &bad) && bad.Unreadable {
		return base, nil // git can't read its history
	}
	landed, err := r.Git.IsAncestor(ctx, head, tip)
	if err != nil || landed {
		return head, err
	}
	_, onBranch, err := wt.HeadBranch(ctx)
	if err != nil {
		return "", err
	}
	if !onBranch {
		out, err := r.Git.Run(ctx, git.Command{Read: true,
			Args: []string{"for-each-ref", "--count=1", "--contains", string(head), "refs/heads/", salvagePrefix}})
		if err != nil {
			return "", err
		}
		if len(out) > 0 {
			return head, nil
		}
	}
	return base, nil
}
