package state

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// HardLinked is a file below state/ that Read refuses because it has other names, all in
// folders of the rig. On a file system without a journal a power cut can leave such
// names: the old name of a lock or of a temp file comes back after its inode was given to
// a file of the state. The content was synced under the file's own name and is valid.
type HardLinked struct {
	Path Path
	// Others are the absolute paths of the other names, free of symbolic links.
	Others []string
}

// fileID identifies a file, whatever its names.
type fileID struct{ device, inode uint64 }

// namesOf are the names of one file that were found so far, of which it has links.
type namesOf struct {
	links int
	found map[string]bool
}

// HardLinkedFiles lists the files below state/ that have other names, if all of these are
// below .chipset or one of the folders in within. A file with a name elsewhere is not
// listed: it stays refused.
func (t *Tree) HardLinkedFiles(within ...string) ([]HardLinked, error) {
	files, paths, err := t.manyNames()
	if err != nil || len(files) == 0 {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(t.root)
	if err != nil {
		return nil, err
	}
	for _, dir := range append([]string{root}, within...) {
		if err := findNames(dir, files); err != nil {
			return nil, err
		}
	}
	var shared []HardLinked
	for _, p := range paths {
		info, err := os.Lstat(t.Abs(p))
		if err != nil {
			continue // gone by now
		}
		names, ok := files[idOf(info)]
		if !ok || len(names.found) < names.links || t.regular(p, info) == nil {
			continue
		}
		s := HardLinked{Path: p}
		for name := range names.found {
			if name != filepath.Join(root, filepath.FromSlash(string(p))) {
				s.Others = append(s.Others, name)
			}
		}
		slices.Sort(s.Others)
		shared = append(shared, s)
	}
	return shared, nil
}

// manyNames finds the files below state/ that have more than one name.
func (t *Tree) manyNames() (files map[fileID]*namesOf, paths []Path, err error) {
	files = map[fileID]*namesOf{}
	err = filepath.WalkDir(t.Abs(StateDir), func(at string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || IsTemp(e.Name()) {
			return skipLost(err)
		}
		info, err := e.Info()
		if err != nil || links(info) < 2 {
			return skipLost(err)
		}
		files[idOf(info)] = &namesOf{links: links(info), found: map[string]bool{}}
		paths = append(paths, t.at(at))
		return nil
	})
	return files, paths, err
}

// findNames adds the names below root to files.
func findNames(root string, files map[fileID]*namesOf) error {
	real, _ := filepath.EvalSymlinks(root) // a missing folder has no names
	return filepath.WalkDir(real, func(at string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return skipLost(err)
		}
		info, err := e.Info()
		if err != nil {
			return skipLost(err)
		}
		if names := files[idOf(info)]; names != nil {
			names.found[at] = true
		}
		return nil
	})
}

// skipLost lets a walk go on after a file was removed meanwhile, or a folder may not be
// read.
func skipLost(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

func idOf(info fs.FileInfo) fileID {
	if st, ok := info.Sys().(*unixStat); ok {
		return fileID{device(info), st.Ino}
	}
	return fileID{}
}

// links is how many names a file has, 1 if that is unknown.
func links(info fs.FileInfo) int {
	if st, ok := info.Sys().(*unixStat); ok {
		return int(st.Nlink)
	}
	return 1
}

// BreakHardLinks replaces a file by a copy of itself, so that it no longer shares its
// inode, and removes its other names below run/, except for locks. Names elsewhere keep
// the old file. It does nothing to a file that has a single name by now. Durable when it
// returns nil.
func (t *Tree) BreakHardLinks(s HardLinked) error {
	if err := t.check(s.Path); err != nil {
		return err
	}
	// The lock excludes appends, which would go to the old file, and a second call, which
	// would undo later changes. Nothing else changes a file that can't be read.
	lock, err := t.Lock(context.Background(), LockAppend, s.Path.Base())
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := t.copyInPlace(s.Path); err != nil {
		return wrapPath(s.Path, err)
	}
	root, err := filepath.EvalSymlinks(t.root)
	if err != nil {
		return err
	}
	for _, other := range s.Others {
		rel, err := filepath.Rel(root, other)
		p := Path(filepath.ToSlash(rel))
		// A lock file may be held; TryLock repairs it.
		if err != nil || !inRun(p) || strings.HasPrefix(string(p), string(RunDir)+"/locks/") {
			continue
		}
		if err := t.Remove(p); err != nil {
			return err
		}
	}
	return t.SyncDir(s.Path.Dir())
}

func (t *Tree) copyInPlace(p Path) error {
	f, err := os.OpenFile(t.Abs(p), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || links(info) < 2 {
		return err
	}
	own, err := t.disk.Pending(t.Abs(p))
	if err != nil {
		return err
	}
	defer own.Cleanup() //nolint:errcheck // after success a no-op, after an error the first error counts
	if _, err := io.Copy(own, f); err != nil {
		return err
	}
	return own.Replace()
}

// BreakAllHardLinks gives every file that HardLinkedFiles lists an inode of its own, and returns how many files.
func (t *Tree) BreakAllHardLinks(within ...string) (int, error) {
	shared, err := t.HardLinkedFiles(within...)
	if err != nil {
		return 0, err
	}
	var failed []error
	for _, s := range shared {
		failed = append(failed, t.BreakHardLinks(s))
	}
	return len(shared), errors.Join(failed...)
}
