// Package environment checks what a rig depends on and can't mend by itself: its disk,
// its target branch, its remote.
package environment

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/repair"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/roles/witness"
	"github.com/gastown-chipset/chipset/state"
)

// The doctor's rules that a trouble can violate.
const (
	DiskLow   = "disk-low"
	ReadOnly  = "read-only"
	Diverged  = "remote-diverged"
	MovedBack = "target-moved-back"
)

// Trouble is a problem that a person must solve.
type Trouble struct {
	Rule string
	Path state.Path // relative to .chipset, a ref, or absolute
	// Detail says what is wrong, Hint what to do about it.
	Detail, Hint string
	// Severe is true if the rig stands still because of it.
	Severe bool
}

// Look returns the current troubles. It does not use the network: the remote's branch
// is what git last fetched. For a rig opened without git or definition it checks
// what it can.
func Look(ctx context.Context, r *rig.Rig) ([]Trouble, error) {
	found := disk(r)
	if r.Git == nil || r.Def == nil {
		return found, nil
	}
	target, err := r.Target(ctx)
	if err != nil {
		return found, nil //nolint:nilerr // status and doctor name it
	}
	tip, exists, err := r.Git.ResolveRef(ctx, target.Ref())
	if err != nil || !exists {
		return found, nil //nolint:nilerr // as above
	}
	branches, err := branches(ctx, r, target, tip)
	return append(found, branches...), err
}

// TargetLost returns a corruption if the target branch existed and names no commit
// any more, which the doctor may mend, and nil if it is whole or was never made.
func TargetLost(ctx context.Context, r *rig.Rig) error {
	if r.Git == nil || r.Def == nil {
		return nil
	}
	target, err := r.Target(ctx)
	if err != nil {
		return nil //nolint:nilerr // status and doctor name it
	}
	if tip, found, err := r.Git.ResolveRef(ctx, target.Ref()); err == nil && found {
		if whole, err := r.Git.HasCommit(ctx, tip); err == nil && whole {
			return nil
		}
	}
	broken, err := repair.BrokenRefs(ctx, r.Git, string(target.Ref()))
	if err != nil || len(broken) == 0 {
		return err
	}
	return &state.Corruption{Path: string(target.Ref()), Reason: broken[0].Reason + ": chipset doctor --fix puts the target branch back"}
}

func disk(r *rig.Rig) []Trouble {
	var found []Trouble
	dirs := []string{r.Tree.Root()}
	if r.Git != nil {
		dirs = append(dirs, r.Git.CommonDir())
	}
	for _, dir := range dirs {
		if err := unix.Access(dir, unix.W_OK); errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) {
			found = append(found, Trouble{ReadOnly, state.Path(dir), fmt.Sprintf("%s can't be written: %v", dir, err),
				"make it writable: nothing is lost, but nothing moves on", true})
		}
	}
	if d := DiskOf(r.Tree.Root()); d.Low() {
		found = append(found, Trouble{DiskLow, state.Path(r.Tree.Root()), "the disk of the rig is almost full: " + d.String(),
			"make room: writes that fail lose nothing, but nothing moves on", d.Critical()})
	}
	return found
}

// DiskOf returns the free space on the file system of dir; zero if it is
// unknown.
func DiskOf(dir string) witness.Disk {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return witness.Disk{}
	}
	block := uint64(fs.Bsize)
	return witness.Disk{Free: fs.Bavail * block, Total: fs.Blocks * block}
}

// branches compares the target with the remote's branch, and with the last landing.
func branches(ctx context.Context, r *rig.Rig, target git.Branch, tip git.Hash) ([]Trouble, error) {
	tips := []git.Hash{tip}
	var found []Trouble
	if remote := r.Def.Merge.Remote; remote != "" {
		there, exists, err := r.Git.ResolveRef(ctx, git.Ref("refs/remotes/"+remote+"/"+string(target)))
		if err != nil {
			return nil, err
		}
		if exists {
			tips = append(tips, there)
			apart, err := diverged(ctx, r.Git, tip, there)
			if err != nil {
				return nil, err
			}
			if apart {
				found = append(found, Trouble{Diverged, state.Path(target.Ref()), fmt.Sprintf("%s is at %s, %s/%s at %s: they have diverged", target, tip.Short(), remote, target, there.Short()),
					fmt.Sprintf("git pull --rebase %s %s", remote, target), false})
			}
		}
	}
	last, err := r.Queue.LastLanded(string(target))
	if err != nil || last == nil {
		return found, err
	}
	for _, t := range tips {
		if held, err := r.Git.IsAncestor(ctx, git.Hash(last.MergedSHA), t); err != nil || held {
			return found, nil //nolint:nilerr // a commit that is lost is the doctor's
		}
	}
	return append(found, Trouble{MovedBack, state.Path(target.Ref()), fmt.Sprintf("%s is at %s, without %s, which landed last as %s", target, tip.Short(), last.BeadID, git.Hash(last.MergedSHA).Short()),
		fmt.Sprintf("git reflog %s says who moved it; git merge %s brings it back", target, git.Hash(last.MergedSHA).Short()), false}), nil
}

func diverged(ctx context.Context, repo *git.Repo, a, b git.Hash) (bool, error) {
	for _, pair := range [][2]git.Hash{{a, b}, {b, a}} {
		if follows, err := repo.IsAncestor(ctx, pair[0], pair[1]); err != nil || follows {
			return false, err
		}
	}
	return true, nil
}
