package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
)

// HEADs and loose refs are read from their files, which git replaces by renaming. Anything unexpected
// is left to git.

// looseRef returns the commit in a ref's own file. False means unknown: the ref may be packed.
func (r *Repo) looseRef(ref Ref) (Hash, bool) {
	h, err := r.readRef(ref)
	return h, err == nil
}

// readRef returns the commit in a ref's own file, or why it has none.
func (r *Repo) readRef(ref Ref) (Hash, error) {
	data, err := gitfile.ReadSmall(filepath.Join(r.common, filepath.FromSlash(string(ref))))
	text, whole := strings.CutSuffix(string(data), "\n")
	if err == nil && !whole {
		err = fs.ErrInvalid
	}
	return Hash(text), errors.Join(err, checkCommits(Hash(text)))
}

// packed reports whether packed-refs has the ref, even if its commit is missing.
func (r *Repo) packed(ref Ref) bool {
	data, err := os.ReadFile(filepath.Join(r.common, "packed-refs"))
	return err == nil && bytes.Contains(data, []byte(" "+string(ref)+"\n")) || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// readHead returns the branch that HEAD in a git directory names, or the commit of a detached HEAD.
func readHead(gitDir string) (b Branch, detached Hash, known bool) {
	data, err := gitfile.ReadSmall(filepath.Join(gitDir, "HEAD"))
	text, whole := strings.CutSuffix(string(data), "\n")
	if err != nil || !whole {
		return "", "", false
	}
	if name, symbolic := strings.CutPrefix(text, "ref: refs/heads/"); symbolic {
		b, err := ParseBranch(name) // with reftable, HEAD names an invalid branch
		return b, "", err == nil
	}
	return "", Hash(text), checkCommits(Hash(text)) == nil
}

// gitDirs returns the git directories of all worktrees, the main one first.
func (r *Repo) gitDirs() ([]string, error) {
	registry := filepath.Join(r.common, "worktrees")
	entries, err := os.ReadDir(registry)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	dirs := []string{r.common}
	for _, entry := range entries {
		dirs = append(dirs, filepath.Join(registry, entry.Name()))
	}
	return dirs, nil
}

// notOwn returns the git directories of the worktrees that are not below Repo.Own, the main one first.
func (r *Repo) notOwn() ([]string, error) {
	dirs, err := r.gitDirs()
	return slices.DeleteFunc(dirs, r.isOwn), err
}

// isOwn reports whether a git directory belongs to a worktree below Repo.Own. A worker can make its registration point to another
// folder, but it can't rename the registration.
func (r *Repo) isOwn(gitDir string) bool {
	if r.Own == "" || gitDir == r.common {
		return false
	}
	if link, err := registeredLink(gitDir); err == nil && within(link, r.Own) {
		return true
	}
	path := filepath.Join(r.Own, filepath.Base(gitDir))
	if _, err := os.Lstat(path); err != nil {
		return false
	}
	admin, err := r.gitDirOf(path)
	return err != nil || admin == gitDir
}

// checkouts returns the roots of all worktrees that have the branch checked out, see CheckedOutAt. Worktrees below Repo.Own count only
// with own.
func (r *Repo) checkouts(ctx context.Context, b Branch, own bool) ([]string, error) {
	registered := r.notOwn
	if own {
		registered = r.gitDirs
	}
	if holders, known := r.holders(b, registered); known && len(holders) == 0 {
		return nil, nil
	} else if known && len(holders) == 1 && holders[0] == r.common {
		return []string{r.top}, nil
	}
	list, err := r.ListWorktrees(ctx)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, entry := range list {
		if entry.Branch == b && !entry.Prunable && !r.foreign(entry.Path) && (own || !within(entry.Path, r.Own)) {
			paths = append(paths, entry.Path)
		}
	}
	return paths, nil
}

// foreign reports whether a registered worktree belongs to another repository, of which this one is a copy: its file
// .git leads there.
func (r *Repo) foreign(path string) bool {
	target, err := gitfile.LinkTarget(path)
	if err != nil {
		return false
	}
	if _, err := os.Stat(filepath.Join(target, "HEAD")); err != nil {
		return false
	}
	registry, err := gitfile.RealPath(filepath.Dir(target))
	return err == nil && registry != filepath.Join(r.common, "worktrees")
}

// holders returns the registered git directories whose HEAD names the branch; known is false if a HEAD can't be read.
func (r *Repo) holders(b Branch, registered func() ([]string, error)) (dirs []string, known bool) {
	all, err := registered()
	if err != nil {
		return nil, false
	}
	for _, dir := range all {
		on, _, known := readHead(dir)
		if !known {
			return nil, false
		}
		if strings.EqualFold(string(on), string(b)) { // the same file on some file systems
			dirs = append(dirs, dir)
		}
	}
	return dirs, true
}

// rebasing returns the worktree in which a rebase or bisect of the branch is in progress. Its HEAD is
// detached, but the operation ends on the branch, so moving the branch meanwhile would break it.
func (r *Repo) rebasing(b Branch) (path string, busy bool, err error) {
	dirs, err := r.notOwn()
	if err != nil {
		return "", false, fmt.Errorf("worktrees: %w", err)
	}
	for _, gitDir := range dirs {
		for _, name := range []string{"rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"} {
			data, err := gitfile.ReadSmall(filepath.Join(gitDir, name))
			text := strings.TrimSpace(string(data))
			if err == nil && (text == string(b.Ref()) || text == string(b)) {
				return r.rootOf(gitDir), true, nil
			}
		}
	}
	return "", false, nil
}

// rootOf returns the root of the worktree with a git directory, for messages.
func (r *Repo) rootOf(gitDir string) string {
	if gitDir == r.common {
		return r.top
	}
	link, err := registeredLink(gitDir)
	if err != nil {
		return gitDir
	}
	return filepath.Dir(link)
}
