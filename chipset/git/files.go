package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// What refs and HEADs hold is read from git's own files where they are plain, which costs no process. These
// files are replaced by renaming, so they are never seen half written. Whatever is not
// as expected is left to git: the functions here say known == false.

// maxPackedRefs bounds a file of packed refs that is searched here, in bytes; git searches larger ones faster.
const maxPackedRefs = 1 << 20

// readableRefs reports whether refs are files that can be read by name.
func (r *Repo) readableRefs() bool {
	if r.foldsCase {
		return false
	}
	_, err := os.Lstat(filepath.Join(r.common, "reftable"))
	return errors.Is(err, fs.ErrNotExist)
}

// foldsCase reports whether the git directory is on a file system that takes one name for another. There, a file
// that opens may be another ref's.
func foldsCase(common string) bool {
	_, err := os.Lstat(filepath.Join(common, "hEAD"))
	return !errors.Is(err, fs.ErrNotExist)
}

// readRef is ResolveRef without git.
func (r *Repo) readRef(ref Ref) (h Hash, found, known bool) {
	if !r.readableRefs() || !ascii(string(ref)) {
		return "", false, false
	}
	text, err := readPlain(filepath.Join(r.common, filepath.FromSlash(string(ref))))
	switch {
	case err == nil:
		h, err := ParseHash(text)
		known := err == nil && !h.IsZero()
		return h, known, known
	case !errors.Is(err, fs.ErrNotExist):
		return "", false, false
	}
	// A ref that is being packed is in the packed file before its own file goes.
	return r.packedRef(ref)
}

func (r *Repo) packedRef(ref Ref) (h Hash, found, known bool) {
	path := filepath.Join(r.common, "packed-refs")
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, true
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPackedRefs {
		return "", false, false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", false, false
	}
	for l := range strings.Lines(string(data)) {
		if object, name, ok := strings.Cut(strings.TrimSuffix(l, "\n"), " "); ok && name == string(ref) {
			h, err := ParseHash(object)
			return h, err == nil, err == nil
		}
	}
	return "", false, true
}

// readHead returns what HEAD in a git directory names: a branch, or the commit of a detached one.
func (r *Repo) readHead(gitDir string) (b Branch, detached Hash, known bool) {
	if !r.readableRefs() {
		return "", "", false
	}
	text, err := readPlain(filepath.Join(gitDir, "HEAD"))
	if err != nil {
		return "", "", false
	}
	if name, symbolic := strings.CutPrefix(text, "ref: refs/heads/"); symbolic {
		b, err := ParseBranch(name)
		return b, "", err == nil
	}
	h, err := ParseHash(text)
	return "", h, err == nil && !h.IsZero()
}

// readHeadHash is the commit that HEAD names, of which nobody has made sure that it is there.
func (r *Repo) readHeadHash(gitDir string) (h Hash, known bool) {
	b, h, known := r.readHead(gitDir)
	if known && b != "" {
		var found bool
		h, found, known = r.readRef(b.Ref())
		known = known && found
	}
	return h, known
}

// gitDirs are the git directories of all worktrees, the main one first.
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

// holders are the git directories whose HEAD names the branch. A registration without a HEAD is half
// made, and git's to judge.
func (r *Repo) holders(b Branch) (dirs []string, known bool) {
	all, err := r.gitDirs()
	if err != nil {
		return nil, false
	}
	for _, dir := range all {
		on, _, known := r.readHead(dir)
		if !known {
			return nil, false
		}
		if on == b {
			dirs = append(dirs, dir)
		}
	}
	return dirs, true
}

// checkouts are the roots of all worktrees that CheckedOutAt counts.
func (r *Repo) checkouts(ctx context.Context, b Branch) ([]string, error) {
	if dirs, known := r.holders(b); known && len(dirs) == 0 {
		return nil, nil
	} else if known && len(dirs) == 1 && dirs[0] == r.common {
		return []string{r.top}, nil
	}
	list, err := r.ListWorktrees(ctx)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, entry := range list {
		if entry.Branch == b && !entry.Prunable {
			paths = append(paths, entry.Path)
		}
	}
	return paths, nil
}

// rebasing returns the worktree in which a rebase or bisect of the branch is in progress. Its HEAD is
// detached, but the branch comes back to it, so moving the branch meanwhile would break that operation.
func (r *Repo) rebasing(b Branch) (path string, busy bool, err error) {
	dirs, err := r.gitDirs()
	if err != nil {
		return "", false, fmt.Errorf("worktrees: %w", err)
	}
	for _, gitDir := range dirs {
		for _, name := range []string{"rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"} {
			data, err := os.ReadFile(filepath.Join(gitDir, name))
			text := strings.TrimSpace(string(data))
			if err == nil && (text == string(b.Ref()) || text == string(b)) {
				return r.rootOf(gitDir), true, nil
			}
		}
	}
	return "", false, nil
}

// rootOf is the root of the worktree with the git directory, for people.
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

// readPlain reads the one line of a small regular file. A directory, which stands where refs below it were, or a
// file on the way count as absent.
func readPlain(path string) (string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, syscall.ENOTDIR) || err == nil && info.IsDir() {
		return "", fs.ErrNotExist
	}
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > 4<<10 {
		return "", fs.ErrInvalid
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	text, whole := strings.CutSuffix(string(data), "\n")
	if !whole || strings.Contains(text, "\n") {
		return "", fs.ErrInvalid
	}
	return text, nil
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c >= 0x80 })
}
