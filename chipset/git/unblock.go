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

	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
)

// A worker can write its worktree, git's folder of that worktree, and the folders of all workers' branches and
// reflogs. Nothing that it leaves there may stop git, for this bead or the next.

// Unblock removes obstacles for git from the registration of the linked worktree at path, and from the folders of the refs below
// and of their reflogs: pipes, links, locks that are not files, files that are too large to read; it makes folders and files
// accessible. No file of the work is changed. Nobody may work in the worktree.
func (r *Repo) Unblock(path string, below Ref) error {
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		if err := allow(path, 0o700); err != nil {
			return err
		}
	}
	registry, err := r.gitDirs()
	if err != nil {
		return err
	}
	for _, admin := range registry[1:] { // finding its own one means reading all
		if info, err := os.Lstat(admin); err == nil && info.IsDir() {
			if err := allow(admin, 0o700); err != nil {
				return err
			}
		}
		for _, name := range []string{"gitdir", "commondir", "HEAD"} { // git reads these files of all worktrees
			if info, err := os.Lstat(filepath.Join(admin, name)); err == nil && isSpecial(info.Mode()) {
				if err := gitfile.Remove(filepath.Join(admin, name)); err != nil {
					return err
				}
			}
		}
	}
	files := r.filesOf(below)
	roots := map[string]int64{files[0]: maxRef, files[1]: maxGitFile}
	if admin, err := r.gitDirOf(path); err == nil && admin != r.common {
		roots[admin] = maxGitFile
	} else if errors.Is(err, syscall.EIO) {
		return err
	}
	for root, most := range roots {
		if err := r.unblock(root, most); err != nil {
			return err
		}
	}
	return nil
}

const (
	// maxRef bounds the file of a ref, in bytes. maxGitFile bounds a reflog and the files of a worktree's registration: the index of a
	// million files takes 100 MiB. git reads such a file whole, and a worker can make a sparse one of a terabyte.
	maxRef     = 4 << 10
	maxGitFile = 512 << 20
)

// filesOf returns the files of a ref and of its reflog.
func (r *Repo) filesOf(ref Ref) []string {
	name := filepath.FromSlash(strings.TrimSuffix(string(ref), "/"))
	return []string{filepath.Join(r.common, name), filepath.Join(r.common, "logs", name)}
}

// unblock frees a folder and all below it; a file of more than most bytes is in the way.
func (r *Repo) unblock(root string, most int64) error {
	if err := r.freeFolder(root); err != nil {
		return err
	}
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			switch {
			case e.IsDir() && (e.Name() == "modules" || e.Name() == "lfs"): // submodules' repositories; see CollectLFS
				return fs.SkipDir
			case e.IsDir() && strings.HasSuffix(e.Name(), ".lock"):
				if err = r.setAside(path); err == nil {
					return fs.SkipDir
				}
			case e.IsDir():
				err = allow(path, 0o700)
			case e.Type().IsRegular():
				var info fs.FileInfo
				if info, err = e.Info(); err == nil && info.Size() > most {
					err = gitfile.Remove(path) // it holds nothing that git has written
				} else if err == nil {
					err = allow(path, 0o600)
				}
			default:
				err = gitfile.Remove(path)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// setAside moves what is at path to chipset-aside. It does nothing if there is nothing, even its folder.
func (r *Repo) setAside(path string) error {
	info, err := os.Lstat(path)
	if missing(err) {
		return nil
	}
	if err == nil && info.IsDir() {
		err = allow(path, 0o700) // moving a folder changes it
	}
	if err == nil {
		_, err = gitfile.SetAside(r.common, path)
	}
	return err
}

// FreeBranch sets aside what a worker may have put in the place of a branch, its lock or its reflog to stop the
// next bead: anything that is not a plain file of the right kind. A symbolic ref counts too, because a commit
// would move the branch that it names.
func (r *Repo) FreeBranch(ctx context.Context, b Branch) error {
	if err := b.check(); err != nil {
		return err
	}
	files := r.filesOf(b.Ref())
	for _, file := range files {
		if err := r.freeFolder(filepath.Dir(file)); err != nil {
			return err
		}
	}
	if info, err := os.Lstat(filepath.Dir(files[0])); err == nil && !info.IsDir() {
		return nil // somebody's branch, beside which git makes none
	}
	if _, err := r.readRef(b.Ref()); errors.Is(err, syscall.EIO) { // the worker's commits may be on it
		return fmt.Errorf("free %s: %w", b, err)
	} else if err != nil {
		if err := r.setAside(files[0]); err != nil {
			return err
		}
	}
	if info, err := os.Lstat(files[1]); err == nil {
		if info.Mode().IsRegular() {
			err = allow(files[1], 0o600)
		} else {
			err = r.setAside(files[1])
		}
		if err != nil {
			return err
		}
	}
	lock := files[0] + ".lock"
	if info, err := os.Lstat(lock); err == nil && !info.Mode().IsRegular() {
		return r.setAside(lock)
	}
	return r.clearLock(ctx, lock)
}

// freeFolder makes a folder of refs or reflogs accessible, or sets aside a file in its place. A file that holds a
// commit stays: it is somebody's branch.
func (r *Repo) freeFolder(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return allow(dir, 0o700)
	}
	if rel, err := filepath.Rel(r.common, dir); err == nil {
		_, err := r.readRef(Ref(filepath.ToSlash(strings.TrimPrefix(rel, "logs"+string(filepath.Separator)))))
		if err == nil || errors.Is(err, syscall.EIO) {
			return err
		}
	}
	return r.setAside(dir)
}

// missing reports whether err says that there is no such file. A file in the place of its folder counts.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
