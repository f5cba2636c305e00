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

// Obstacles finds files in the place of folders of refs, of their reflogs, and of worktree
// registrations, below which git can make nothing. Prefixes end with a slash. On a file system without a journal a power cut leaves
// them: git removes an empty folder of refs, and the old name leads to the inode's new owner. A file that
// holds a commit does not count: it is somebody's branch.
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

// SetAside moves a file or folder to chipset-aside in the common folder, and returns its new
// path, or "" if there was nothing. The move is durable when it returns nil.
func SetAside(r *git.Repo, path string) (string, error) { return gitfile.SetAside(r.CommonDir(), path) }

// EmptyObjects lists empty loose objects, which a power cut leaves of objects that were not synced. Git takes them for
// present, and would never write their content again.
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

// ignoreGone returns err unless it is about a file that another git has removed.
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

// keepMark is the content of the .keep file with which fast-import protects its pack from being repacked while no ref
// holds it yet (keep_pack in git's builtin/fast-import.c).
const keepMark = "fast-import"

// RemoveKeepFiles removes .keep files that a killed fast-import left at least age ago, and returns their number. They
// keep their packs from ever being repacked, and the same pack from being written again. A person's .keep files stay.
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

// staleKeepFile reports whether a file among the packs is a .keep file that a fast-import left, not after latest.
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
	// A person keeps a pack with an empty .keep file.
	_, isPack, err := regularFile(filepath.Join(folder, pack+".pack"))
	return err == nil && !isPack, err
}
