package repair

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
)

// Obstacles finds files that stand where git needs the folders of refs, of their reflogs, and of its records of
// worktrees, so that nothing below them can be made. Prefixes end with a slash. Without a journal a power cut leaves
// them: git removes a folder of refs that is empty, and its old name leads to whatever got its inode. A file that
// holds a commit is none: it is somebody's branch.
func Obstacles(ctx context.Context, r *git.Repo, prefixes ...string) (found []string, err error) {
	for _, prefix := range prefixes {
		ref := git.Ref(strings.TrimSuffix(prefix, "/"))
		file, isFile, err := regularFile(refFile(r, ref))
		if err != nil {
			return found, err
		}
		if isFile {
			text, err := gitfile.ReadLine(file)
			if h, notHash := git.ParseHash(text); err == nil && (notHash == nil && !h.IsZero() || strings.HasPrefix(text, "ref: ")) {
				continue
			}
			found = append(found, file)
		}
		reflog, isFile, err := regularFile(reflogOf(r, ref))
		if err != nil {
			return found, err
		}
		if isFile {
			if _, branch, err := r.ResolveRef(ctx, ref); err != nil {
				return found, err
			} else if !branch {
				found = append(found, reflog)
			}
		}
	}
	file, isFile, err := regularFile(filepath.Join(r.CommonDir(), "worktrees"))
	if isFile {
		found = append(found, file)
	}
	return found, err
}

func regularFile(path string) (string, bool, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return path, false, nil
	}
	return path, err == nil && info.Mode().IsRegular(), err
}

// SetAside moves a file or folder out of git's way, to chipset-aside in the common folder, and returns where it is
// kept; "" when there is nothing. It is durable when it returns nil.
func SetAside(r *git.Repo, path string) (string, error) { return gitfile.SetAside(r.CommonDir(), path) }

// EmptyObjects lists the loose objects of no bytes at all, which a power cut leaves of what no git had synced. They
// hold nothing, but git takes them for there, and would write their content never again.
func EmptyObjects(r *git.Repo) (empty []string, err error) {
	root := filepath.Join(r.CommonDir(), "objects")
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path != root:
			return nil // another git tidies up
		case err != nil:
			return err
		case e.IsDir() && path != root && len(e.Name()) != 2:
			return fs.SkipDir
		}
		if _, notHash := git.ParseHash(filepath.Base(filepath.Dir(path)) + e.Name()); notHash != nil {
			return nil
		}
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			empty = append(empty, path)
		}
		return ignoreGone(err)
	})
	return empty, err
}

// ignoreGone is an error that is not about a file that another git has taken away.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// RemoveEmptyObjects removes what EmptyObjects lists.
func RemoveEmptyObjects(r *git.Repo) error {
	empty, err := EmptyObjects(r)
	for _, path := range empty {
		err = errors.Join(err, gitfile.Remove(path))
	}
	return err
}

// keepMark is what fast-import writes into the file that keeps a pack of its own from being repacked while no ref
// holds it yet (keep_pack in git's builtin/fast-import.c).
const keepMark = "fast-import"

// RemoveKeepFiles removes the files that a fast-import which was killed left so at least age ago, and counts them. They
// keep their packs from being repacked for good, and the same pack from being written again. What a person keeps stays.
func RemoveKeepFiles(r *git.Repo, now time.Time, age time.Duration) (int, error) {
	folder := filepath.Join(r.CommonDir(), "objects", "pack")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return 0, ignoreGone(err)
	}
	n := 0
	for _, e := range entries {
		stale, err := staleKeepFile(folder, e, now.Add(-age))
		if err == nil && stale {
			err = gitfile.Remove(filepath.Join(folder, e.Name()))
			n++
		}
		if err = ignoreGone(err); err != nil {
			return n, err
		}
	}
	return n, nil
}

// staleKeepFile reports whether a file among the packs is one that a fast-import left, no later than at a time.
func staleKeepFile(folder string, e fs.DirEntry, latest time.Time) (bool, error) {
	pack, isKeep := strings.CutSuffix(e.Name(), ".keep")
	if !isKeep {
		return false, nil
	}
	info, err := e.Info()
	if err != nil || !info.Mode().IsRegular() || info.Size() > int64(len(keepMark)) || info.ModTime().After(latest) {
		return false, err
	}
	data, err := os.ReadFile(filepath.Join(folder, e.Name()))
	text := strings.Trim(string(data), "\x00") // a power cut leaves any part of it
	if err != nil || text != "" {
		return err == nil && strings.HasPrefix(keepMark, text), err
	}
	// An empty one is how a person keeps a pack.
	_, isPack, err := regularFile(filepath.Join(folder, pack+".pack"))
	return err == nil && !isPack, err
}
