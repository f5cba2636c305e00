package carry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/retire"
)

// unfit is the reason why finished work can't be submitted. It becomes the
// reason of a failure; callers never see it.
type unfit struct{ reason string }

func (u *unfit) Error() string { return u.reason }

func unfitf(format string, args ...any) error { return &unfit{fmt.Sprintf(format, args...)} }

// secureWork makes the work durable: on the branch if it is done, on
// the salvage ref otherwise. Finished work that fails validation becomes a failed attempt.
func (f *finish) secureWork(ctx context.Context) error {
	b := &f.Bead
	if f.rec.Outcome == retire.Done && !f.settled() {
		// After a crash, unknown counts as not done.
		f.rec.Outcome, f.rec.Lost, f.rec.Head = retire.Fail, true, ""
		f.rec.Reason = "the work was reported as done, but a crash came before all of it was on the disk: it is saved and done again"
	}
	if f.rec.Outcome == retire.Done {
		err := f.commitDone(ctx, b)
		var u *unfit
		if err != nil && !errors.As(err, &u) {
			return err
		}
		if u != nil {
			f.rec.Outcome, f.rec.Reason, f.rec.Head = retire.Fail, u.reason, ""
		}
	}
	if f.rec.Outcome != retire.Done {
		return f.saveUnfinished(ctx)
	}
	return nil
}

// settled reports whether the worker's files are durable: they were when the end was
// published, or its supervisor has synced them since.
func (f *finish) settled() bool {
	if f.rec.Settled {
		return true
	}
	f.rec.Settled, _ = supervisorSettled(f.Rig, f.rec.Session)
	return f.rec.Settled
}

// saveUnfinished saves this assignment's work in the worktree on its
// salvage ref.
func (f *finish) saveUnfinished(ctx context.Context) error {
	if f.rec.Salvage != "" {
		return nil
	}
	holds, err := f.holdsWorktree(ctx)
	if err != nil || !holds {
		return err
	}
	ref, err := SaveWork(ctx, f.Rig, f.rec.AgentID, fmt.Sprintf("Unfinished work on %s (%s)\n\nBead: %s\nAssignment: %s",
		f.rec.BeadID, f.rec.Outcome, f.rec.BeadID, f.rec.AssignmentID))
	if err != nil {
		return err
	}
	f.rec.Salvage = ref
	if ref != "" {
		f.Rig.Events.Tell(event.WorkerSalvaged(f.rec.AgentID, f.rec.Work(), ref, "unfinished work is on "+ref))
	}
	return f.did("salvaged")
}

// holdsWorktree reports whether the agent's worktree is this assignment's.
func (f *finish) holdsWorktree(ctx context.Context) (bool, error) {
	if gone, err := worktreeGone(f.Rig, f.rec.AgentID); gone || err != nil {
		return false, err
	}
	if _, _, err := mendWorktree(ctx, f.Rig, f.rec.AgentID); err != nil {
		return false, err
	}
	if use, known := ReadWorktree(f.Rig, f.rec.AgentID); known {
		return use.AssignmentID == f.rec.AssignmentID, nil
	}
	branch, found, err := f.Rig.Git.In(f.Rig.Worktree(f.rec.AgentID)).HeadBranch(ctx)
	if errors.Is(err, git.ErrNotWorktree) {
		return false, nil
	}
	return found && string(branch) == f.rec.Branch, err
}

// commitDone validates finished work and makes it durable on its branch.
func (f *finish) commitDone(ctx context.Context, b *bead.Bead) error {
	branch, err := git.ParseBranch(f.rec.Branch)
	if err != nil {
		return unfitf("the assignment has no usable branch: %v", err)
	}
	_, tip, err := TargetTip(ctx, f.Rig)
	if err != nil {
		return err
	}
	if err := f.inspectBranch(ctx, branch, tip); err != nil {
		return err
	}
	work, err := f.head(ctx, b, branch, tip)
	if err != nil {
		return err
	}
	if use, known := ReadWorktree(f.Rig, f.rec.AgentID); known && use.Torn && use.AssignmentID == f.rec.AssignmentID {
		return unfitf("objects of the worktree are missing: what was committed last is lost, or may be; what was left is saved")
	}
	if err := f.secure(ctx, work, tip); err != nil {
		return err
	}
	if err := f.inspect(ctx, work, tip); err != nil { // this time with what the rig committed, and with objects that were torn
		return err
	}
	base, err := f.validate(ctx, b, work, tip)
	if err != nil {
		return err
	}
	f.rec.Base = string(base)
	if f.rec.Empty {
		return nil
	}
	if err := f.keepBranchTip(ctx, branch, work); err != nil {
		return err
	}
	if err := f.Rig.Git.UpdateBranch(ctx, branch, work, ""); err != nil {
		return err
	}
	if err := f.Rig.Git.Sync(ctx); err != nil {
		return err
	}
	f.rec.Head = string(work)
	return f.did("branch")
}

// inspectBranch checks what the worker committed before git walks it: a commit that git can't
// read would fail every later step.
func (f *finish) inspectBranch(ctx context.Context, branch git.Branch, tip git.Hash) error {
	holds, err := f.holdsWorktree(ctx)
	if err != nil {
		return err
	}
	var heads []git.Hash
	if h, exists, err := f.Rig.Git.ResolveRef(ctx, branch.Ref()); err == nil && exists {
		heads = append(heads, h)
	}
	if holds {
		if h, found, err := f.Rig.Git.In(f.Rig.Worktree(f.rec.AgentID)).Head(ctx); err == nil && found && !slices.Contains(heads, h) {
			heads = append(heads, h)
		}
	}
	for _, h := range heads {
		if err := f.inspect(ctx, h, tip); err != nil && !errors.Is(err, git.ErrTorn) {
			return err
		}
	}
	return nil
}

// inspect refuses commits that can't land, whatever the tests say.
func (f *finish) inspect(ctx context.Context, head, tip git.Hash) error {
	return refused(f.Rig.Git.Inspect(ctx, tip, head))
}

// secure makes the commits of the work durable. Objects that a power cut tore are
// stored again as far as the worktree still holds their content.
func (f *finish) secure(ctx context.Context, work, tip git.Hash) error {
	err := f.Rig.Git.MakeDurable(ctx, work, tip)
	if !errors.Is(err, git.ErrTorn) {
		return err
	}
	if e := f.Rig.Git.In(f.Rig.Worktree(f.rec.AgentID)).StoreFiles(ctx); e != nil && !errors.Is(e, git.ErrNotWorktree) {
		return errors.Join(err, e)
	}
	if err = f.Rig.Git.MakeDurable(ctx, work, tip); errors.Is(err, git.ErrTorn) {
		return unfitf("objects of the worktree are missing: %v", err)
	}
	return err
}

// head commits uncommitted work and returns the commit to submit: HEAD,
// wherever the worker has moved it, or the branch if HEAD has no commits of
// its own, or if the worktree is gone.
func (f *finish) head(ctx context.Context, b *bead.Bead, branch git.Branch, tip git.Hash) (git.Hash, error) {
	holds, err := f.holdsWorktree(ctx)
	if err != nil {
		return "", err
	}
	onBranch, exists, err := f.Rig.Git.ResolveRef(ctx, branch.Ref())
	if err != nil {
		return "", err
	}
	work := git.Hash("")
	if holds {
		work, err = f.commitRest(ctx, b, branch)
		if err != nil && !errors.Is(err, git.ErrNotWorktree) {
			return "", err
		}
	}
	if work == "" {
		if !exists {
			return "", unfitf("the worktree and the branch %s are gone", branch)
		}
		return onBranch, nil
	}
	own, err := f.Rig.Git.CountCommits(ctx, tip, work)
	if err == nil && own == 0 && exists {
		return onBranch, nil
	}
	return work, err
}

// commitRest commits what the worker left uncommitted, on the branch or on none, and returns HEAD.
func (f *finish) commitRest(ctx context.Context, b *bead.Bead, branch git.Branch) (git.Hash, error) {
	wt := f.Rig.Git.In(f.Rig.Worktree(f.rec.AgentID))
	if err := wt.KeepTo(ctx, branch); err != nil {
		return "", refused(err)
	}
	if err := wt.CollectLFS(); err != nil {
		return "", err
	}
	message := fmt.Sprintf("%s\n\nBead: %s\nAssignment: %s\n", b.Title, b.ID, f.rec.AssignmentID)
	made, err := wt.CommitAll(ctx, message, string(f.rec.AgentID))
	var unmerged *git.UnmergedError
	var inProgress *git.InProgressError
	switch {
	case errors.As(err, &unmerged):
		return "", unfitf("unmerged paths: %s", strings.Join(firstFew(unmerged.Paths), ", "))
	case errors.As(err, &inProgress):
		return "", unfitf("%v", inProgress)
	case err != nil:
		return "", refused(err)
	}
	return made.Hash, f.did("commit")
}

// refused turns a *git.UnfitError into an unfit, so that the attempt fails.
func refused(err error) error {
	var bad *git.UnfitError
	if errors.As(err, &bad) {
		return unfitf("%v", err)
	}
	return err
}

func firstFew(paths []string) []string {
	if len(paths) > 10 {
		return append(paths[:10:10], fmt.Sprintf("and %d more", len(paths)-10))
	}
	return paths
}

// validate returns where the work began, or an unfit if it can't be submitted.
func (f *finish) validate(ctx context.Context, b *bead.Bead, work, tip git.Hash) (git.Hash, error) {
	base, err := f.Rig.Git.MergeBase(ctx, tip, work)
	if errors.Is(err, git.ErrUnrelated) {
		return "", unfitf("the branch has no history in common with the target")
	}
	if err != nil {
		return "", err
	}
	if err := f.descends(ctx, work, tip); err != nil {
		return "", err
	}
	if why, err := RefusedPaths(ctx, f.Rig, base, work); err != nil {
		return "", err
	} else if why != "" {
		return "", unfitf("%s", why)
	}
	if err := f.Rig.Git.CheckLFS(ctx, base, work); err != nil {
		return "", refused(err)
	}
	changed, err := f.Rig.Git.ChangedPaths(ctx, base, work)
	if err != nil {
		return "", err
	}
	if len(changed) == 0 && !b.AllowEmpty {
		return "", unfitf("no change")
	}
	f.rec.Empty = len(changed) == 0
	return base, nil
}

// RefusedPaths returns why a path that head has changed since base may never land, or "": the rig's own files, files that
// worktrees get from the person's checkout, and addresses of submodules.
func RefusedPaths(ctx context.Context, r *rig.Rig, base, head git.Hash) (string, error) {
	touched, err := r.Git.TouchesPath(ctx, base, head, rig.DirName)
	if err != nil {
		return "", err
	}
	if touched {
		return "changes " + rig.DirName + "/, which is the rig's own", nil
	}
	w := r.Def.Worktree
	if len(w.Provided()) > 0 {
		changed, err := r.Git.ChangedPaths(ctx, base, head)
		if err != nil {
			return "", err
		}
		if path := w.Provides(changed); path != "" {
			return "commits " + path + ", which every worktree gets from the checkout (worktree in chipset.yaml)", nil
		}
	}
	if !w.Submodules {
		return "", nil
	}
	name, err := r.Git.ReaddressedSubmodule(ctx, base, head)
	if err != nil || name == "" {
		return "", err
	}
	return "changes the address of the submodule " + name, nil
}

// descends refuses work that contains neither the commit it began on nor the current target: it
// would land without the commits in between.
func (f *finish) descends(ctx context.Context, work, tip git.Hash) error {
	use, known := ReadWorktree(f.Rig, f.rec.AgentID)
	if !known || use.AssignmentID != f.rec.AssignmentID {
		return nil
	}
	for _, begun := range []git.Hash{use.Base, tip} {
		if held, err := f.Rig.Git.IsAncestor(ctx, begun, work); err != nil || held {
			return err
		}
	}
	return unfitf("the branch was moved to %s, which does not descend from %s, on which the work began", work.Short(), use.Base.Short())
}

// keepBranchTip saves the branch's commits on a ref, before the branch is moved
// to a commit that does not contain them.
func (f *finish) keepBranchTip(ctx context.Context, branch git.Branch, work git.Hash) error {
	ref := git.Ref(salvagePrefix + string(f.rec.AssignmentID) + "-branch")
	old, exists, err := f.Rig.Git.ResolveRef(ctx, branch.Ref())
	if err != nil {
		return err
	}
	if exists && old != work {
		contained, err := f.Rig.Git.IsAncestor(ctx, old, work)
		if err != nil || contained {
			return err
		}
		if err := f.Rig.Git.UpdateRef(ctx, ref, old, ""); err != nil {
			return err
		}
	}
	// It may have been saved before a crash.
	_, saved, err := f.Rig.Git.ResolveRef(ctx, ref)
	if saved {
		f.rec.Salvage = string(ref)
	}
	return err
}

// pushPatience bounds the push of a branch that has not landed.
const pushPatience = time.Minute

// pushBranch pushes the branch if the definition asks for it. It is only for
// people to see, so a failure is a warning.
func (f *finish) pushBranch(ctx context.Context) {
	d := f.Rig.Def.Merge
	if !d.PushBranches || d.Remote == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pushPatience)
	defer cancel()
	if err := Push(ctx, f.Rig, git.Hash(f.rec.Head), git.Branch(f.rec.Branch)); err != nil {
		f.warn(err, event.BranchNotPushed)
	}
}

// Push makes the branch of the rig's remote h, with the LFS objects that its commits refer to before it. Errors: as of git's Push.
func Push(ctx context.Context, r *rig.Rig, h git.Hash, b git.Branch) error {
	if err := r.Git.PushLFS(ctx, r.Def.Merge.Remote, h); err != nil {
		return err
	}
	return r.Git.Push(ctx, r.Def.Merge.Remote, h, b)
}
