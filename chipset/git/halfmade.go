package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// HalfMade tells of a worktree whose making a kill or a power cut ended before anything was checked out: its registration
// can't be read, and there is nothing to save.
func (r *Repo) HalfMade(path string) bool {
	real, err := realPath(path)
	if err != nil {
		return false
	}
	admin, err := r.gitDirOf(real)
	return err == nil && admin != r.common && r.halfMade(real, admin)
}

func (r *Repo) halfMade(path, admin string) bool {
	_, headErr := os.Lstat(filepath.Join(admin, "HEAD"))
	_, commonErr := os.Lstat(filepath.Join(admin, "commondir"))
	return headErr != nil || commonErr != nil || r.tornBeforeUse(path, admin)
}

// tornBeforeUse tells of a worktree in which nothing was checked out yet when a power cut tore its HEAD.
func (r *Repo) tornBeforeUse(path, admin string) bool {
	text, err := readPlain(filepath.Join(admin, "HEAD"))
	_, notHash := ParseHash(text)
	torn := errors.Is(err, fs.ErrInvalid) || err == nil && notHash != nil && !strings.HasPrefix(text, "ref: ")
	history, all, err := lastLines(filepath.Join(admin, "logs", "HEAD"))
	if !torn || !all || err != nil || len(commitsOf(history)) > 1 {
		return false // somebody went on from the commit that it was made at
	}
	entries, err := os.ReadDir(path)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != ".git" })
}

// dropHalfMade removes a registration that never became whole, and the .git file that points at it. Nothing
// was checked out by then, and without a HEAD no commit hangs on it.
func (r *Repo) dropHalfMade(path, admin string) error {
	if err := removeGitFile(filepath.Join(path, ".git")); err != nil {
		return err
	}
	return os.RemoveAll(admin) //nolint:forbidigo // an incomplete directory of git's own
}

// mendCommondirs makes the registrations readable whose way to the repository a power cut tore: while there is one, git
// makes no worktree, not even another.
func (r *Repo) mendCommondirs() error {
	registry := filepath.Join(r.common, "worktrees")
	entries, err := os.ReadDir(registry)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		admin := filepath.Join(registry, e.Name())
		if _, err := os.Lstat(filepath.Join(admin, "gitdir")); err != nil {
			continue // no registration, or one that somebody takes away just now
		}
		if text, err := readPlain(filepath.Join(admin, "commondir")); err == nil && r.isCommon(admin, text) {
			continue
		}
		if err := writeCommondir(admin); err != nil {
			return err
		}
	}
	return err
}
