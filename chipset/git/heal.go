package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
)

// lockPoll is how often a lock is checked while waiting for it.
const lockPoll = 20 * time.Millisecond

// heal removes stale locks, obstacles, hiding marks and operations in progress from a linked
// worktree.
func (w *Worktree) heal(ctx context.Context, p place) error {
	if !w.repo.linked(p) {
		return nil
	}
	if err := w.removeObstacles(ctx, p); err != nil {
		return err
	}
	if err := w.repo.clearLocks(ctx, p.gitDir); err != nil {
		return err
	}
	if err := w.unhide(ctx, p); err != nil {
		return err
	}
	return w.quit(ctx, p)
}

// ClearLocks removes the locks that a killed git left in a linked worktree. Nobody may work in it.
func (w *Worktree) ClearLocks(ctx context.Context) error {
	p, err := w.ours()
	if err != nil {
		return err
	}
	return w.repo.clearLocks(ctx, p.gitDir)
}

// clearLocks removes the lock files of a worktree's own git directory once they have stood unchanged for the
// grace; a git that is alive releases them sooner.
func (r *Repo) clearLocks(ctx context.Context, gitDir string) error {
	entries, err := os.ReadDir(gitDir)
	if err != nil {
		return fmt.Errorf("clear locks: %w", err)
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".lock") && entry.Type().IsRegular() {
			if err := r.clearLock(ctx, filepath.Join(gitDir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Repo) clearLock(ctx context.Context, path string) error {
	first, err := os.Lstat(path)
	if missing(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("clear lock: %w", err)
	}
	grace := time.NewTimer(r.LockGrace)
	defer grace.Stop()
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("clear lock %s: %w", path, ctx.Err())
		case <-grace.C:
			return gitfile.Remove(path)
		case <-poll.C:
			now, err := os.Lstat(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("clear lock: %w", err)
			}
			if !os.SameFile(first, now) || !now.ModTime().Equal(first.ModTime()) || now.Size() != first.Size() {
				first = now
				grace.Reset(r.LockGrace)
			}
		}
	}
}

// operation returns what git is in the middle of, judged like git does by the files in its directory.
func operation(gitDir string) Operation {
	exists := func(name string) bool {
		_, err := os.Lstat(filepath.Join(gitDir, name))
		return err == nil
	}
	switch {
	case exists("rebase-apply/applying"):
		return OperationAm
	case exists("rebase-merge"), exists("rebase-apply"):
		return OperationRebase
	case exists("MERGE_HEAD"):
		return OperationMerge
	case exists("CHERRY_PICK_HEAD"):
		return OperationCherryPick
	case exists("REVERT_HEAD"):
		return OperationRevert
	case exists("sequencer"):
		return OperationCherryPick
	case exists("BISECT_LOG"):
		return OperationBisect
	}
	return NoOperation
}

// quit ends every operation in progress and leaves HEAD and files as they are; unlike abort it can't
// fail because of the files' state. Operations can be nested (a cherry-pick inside a rebase).
func (w *Worktree) quit(ctx context.Context, p place) error {
	for range 8 {
		op := operation(p.gitDir)
		args := []string{string(op), "--quit"}
		switch op {
		case NoOperation:
			return nil
		case OperationBisect:
			// An unborn HEAD can't be bisected, so HEAD names a commit here; the force is needed over changed files.
			if _, err := w.repo.run(ctx, p, Command{Args: []string{"reset", "--quiet", "--hard"}}); err != nil {
				return err
			}
			args = []string{"bisect", "reset", "HEAD"}
		}
		_, err := w.repo.run(ctx, p, Command{Args: args})
		if exited(err, 1, 128) && op != OperationBisect || err == nil && operation(p.gitDir) == op {
			err = dropOperation(p.gitDir) // its records are torn, so git can't end it
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", p.workTree, &InProgressError{operation(p.gitDir)})
}

// dropOperation removes git's records of the operations that it can't end without reading them.
func dropOperation(gitDir string) error {
	for _, name := range []string{"rebase-apply", "rebase-merge", "CHERRY_PICK_HEAD", "REVERT_HEAD"} {
		if err := os.RemoveAll(filepath.Join(gitDir, name)); err != nil { //nolint:forbidigo // git's own records of an operation
			return err
		}
	}
	return nil
}

// forceCheckout makes the worktree equal to a commit, whatever its state, and removes untracked files that are
// not ignored, including embedded repositories.
func (w *Worktree) forceCheckout(ctx context.Context, p place, target ...string) error {
	if err := w.checkout(ctx, p, target...); err != nil {
		return err
	}
	return w.clean(ctx, p)
}

// clean removes what is neither tracked nor ignored, and ignored files that match Steering.
func (w *Worktree) clean(ctx context.Context, p place) error {
	args := []string{"clean", "--quiet", "-d", "--force", "--force"}
	for _, name := range w.repo.Steering {
		args = append(args, "--exclude=!"+name, "--exclude=!"+name+"/**")
	}
	_, err := w.repo.run(ctx, p, Command{Args: args})
	return err
}

// steered reports whether the worktree holds a file that matches Steering and is not in the commit, in a
// folder that is. It is called for a clean worktree, so files that are not in the commit are ignored ones.
func (w *Worktree) steered(ctx context.Context, p place, commit Hash) bool {
	tracked := func(rel string) bool {
		_, found, err := w.repo.info(ctx, string(commit)+":"+rel)
		return err == nil && found
	}
	err := filepath.WalkDir(p.workTree, func(path string, e fs.DirEntry, err error) error {
		rel := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(path, p.workTree), string(filepath.Separator)))
		if err != nil || e.IsDir() || rel == ".git" {
			return nil //nolint:nilerr // the status before it reported unreadable files
		}
		if at := w.repo.steering(rel); at >= 0 && !tracked(rel) && (at == 0 || tracked(rel[:at-1])) {
			return fs.ErrExist
		}
		return nil
	})
	return err != nil
}

// steering returns where the first path component begins that matches Steering, or -1.
func (r *Repo) steering(path string) int {
	at := 0
	for part := range strings.SplitSeq(path, "/") {
		if slices.ContainsFunc(r.Steering, func(name string) bool {
			match, err := filepath.Match(name, part)
			return err == nil && match
		}) {
			return at
		}
		at += len(part) + 1
	}
	return -1
}

// checkout makes tracked files equal to a commit. It rebuilds an index that git can't read.
func (w *Worktree) checkout(ctx context.Context, p place, target ...string) error {
	args := append([]string{"checkout", "--quiet", "--force", "--no-recurse-submodules"}, append(target, "--")...)
	_, err := w.repo.run(ctx, p, Command{Args: args})
	if exited(err, 1, 128) && w.repo.linked(p) && !w.indexReadable(ctx, p) {
		if err := gitfile.Remove(filepath.Join(p.gitDir, "index")); err != nil {
			return err
		}
		_, err = w.repo.run(ctx, p, Command{Args: args})
	}
	return err
}

func (w *Worktree) indexReadable(ctx context.Context, p place) bool {
	_, err := w.repo.run(ctx, p, Command{Args: []string{"ls-files", "--error-unmatch", "--", ":(top)"}, Read: true})
	return err == nil || exited(err, 1)
}

// CheckoutDetached makes the linked worktree equal to a commit, with HEAD detached there and no untracked files.
func (w *Worktree) CheckoutDetached(ctx context.Context, h Hash) error {
	if err := checkCommits(h); err != nil {
		return err
	}
	p, err := w.ours()
	if err != nil {
		return err
	}
	if err := w.heal(ctx, p); err != nil {
		return err
	}
	return w.forceCheckout(ctx, p, "--detach", string(h))
}

// ours returns the place of a linked worktree, and refuses the main one, in which nothing is ever forced.
func (w *Worktree) ours() (place, error) {
	p, err := w.place()
	if err == nil && !w.repo.linked(p) {
		err = fmt.Errorf("%s: %w: it is the main worktree", w.path, ErrNotWorktree)
	}
	return p, err
}
