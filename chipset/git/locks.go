package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
)

// NoneRunning reports whether no git process of this user works in the repository or in the checkout, according to
// /proc. It is false on systems without /proc.
func (r *Repo) NoneRunning(checkout string) bool {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return false
	}
	for _, line := range lines {
		text, _ := os.ReadFile(line) // the process may have ended
		args := strings.Split(string(text), "\x00")
		if !strings.HasPrefix(filepath.Base(args[0]), "git") || isCoprocess(args) {
			continue
		}
		named := slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--git-dir="+r.common) })
		cwd, err := os.Readlink(filepath.Join(filepath.Dir(line), "cwd"))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // it has ended
		}
		if named || err != nil || within(cwd, checkout) || within(cwd, r.common) {
			return false
		}
	}
	return len(lines) > 0
}

// isCoprocess reports whether a command line is that of a coprocess, which only reads.
func isCoprocess(args []string) bool {
	return slices.Contains(args, "--batch-command") || slices.Contains(args, "diff-tree") && slices.Contains(args, "--stdin")
}

func within(path, root string) bool {
	return root != "" && (path == root || strings.HasPrefix(path, root+string(filepath.Separator)))
}

// Locks lists git's lock files: of HEAD, indexes, config and refs. A running git
// removes its locks within moments; a killed one leaves them behind, and they stop every other git.
func (r *Repo) Locks() ([]string, error) {
	var found []string
	collect := func(dir string, deep bool) error {
		return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case e.IsDir() && path != dir && !deep:
				return fs.SkipDir
			case e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".lock"):
				found = append(found, path)
			}
			return nil
		})
	}
	err := errors.Join(collect(r.common, false), collect(filepath.Join(r.common, "refs"), true), collect(filepath.Join(r.common, "worktrees"), true))
	return found, err
}

// RemoveStaleLock removes a lock file that Locks listed, if no git works in the repository and the file stays unchanged for
// LockGrace. ErrLocked means that a git is at work. The removal is durable when it returns nil.
func (r *Repo) RemoveStaleLock(ctx context.Context, path string) error {
	if !within(path, r.common) || !strings.HasSuffix(path, ".lock") {
		return fs.ErrInvalid
	}
	if !r.NoneRunning(r.top) {
		return ErrLocked
	}
	if err := r.clearLock(ctx, path); err != nil {
		return err
	}
	return gitfile.SyncDir(filepath.Dir(path))
}
