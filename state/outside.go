package state

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state/disk"
)

// ReadOutside returns the content of a regular file of at most limit bytes outside of
// the state tree. It follows links, because people link their configuration. A FIFO or a
// device can't make it hang. Errors: fs.ErrNotExist, ErrTooLarge, a *Corruption if path is
// not a regular file.
func ReadOutside(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &Corruption{Path: path, Reason: "it is " + kind(info.Mode()) + ", not a regular file", Cause: ErrNotRegular}
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: %w: %d bytes, at most %d", path, ErrTooLarge, max(info.Size(), limit+1), limit)
	}
	return data, nil
}

// ReplaceOutside is Tree.Replace for a small file outside of the state tree:
// chipset.yaml, the ignore file, the pointer in git's own folder.
func ReplaceOutside(path string, data []byte) error {
	return replaceOutside(path, data, renameio.WithPermissions(outsidePerm), renameio.WithExistingPermissions())
}

// outsidePerm are the permissions of new files that others may read: chipset.yaml, files in git's folder.
const outsidePerm = 0o644

// StageOutside durably writes the next content of the file at path to staged, on the
// same file system and with the permissions of path. PutOutside then replaces path.
func StageOutside(path, staged string, data []byte) error {
	perm := os.FileMode(outsidePerm)
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		perm = info.Mode().Perm()
	}
	return replaceOutside(staged, data, renameio.WithStaticPermissions(perm))
}

func replaceOutside(path string, data []byte, perm ...renameio.Option) error {
	dir := filepath.Dir(path)
	f, err := renameio.NewPendingFile(path, append(perm, renameio.WithTempDir(dir))...)
	if err != nil {
		return err
	}
	defer f.Cleanup() //nolint:errcheck // after success a no-op, after an error the first error counts
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return disk.OS{}.SyncDir(dir)
}

// PutOutside replaces the file at path by the one at staged. After a crash, the replacement
// has happened if staged does not exist. Durable when it returns nil.
func PutOutside(staged, path string) error {
	if err := os.Rename(staged, path); err != nil {
		return err
	}
	d := disk.OS{}
	if err := d.SyncDir(filepath.Dir(path)); err != nil {
		return err
	}
	return d.SyncDir(filepath.Dir(staged))
}

// MkdirOutside makes a folder outside of the tree and its parents. Only the entry of the
// folder itself is durable when it returns nil.
func MkdirOutside(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return disk.OS{}.SyncDir(filepath.Dir(path))
}

// ClaimOutside takes a lock as some programs do, by making a folder. Errors: fs.ErrExist
// when the lock is held.
func ClaimOutside(path string) error { return os.Mkdir(path, 0o755) }

// ReleaseOutside releases a lock of ClaimOutside by removing the folder.
func ReleaseOutside(path string) error { return os.Remove(path) }

// MoveOutside renames a file outside of the tree, within its file system, to a name that
// does not exist. Durable when it returns nil. Errors: fs.ErrExist.
func MoveOutside(from, to string) error {
	d := disk.OS{}
	if err := d.RenameNew(from, to); err != nil {
		return err
	}
	if err := d.SyncDir(filepath.Dir(to)); err != nil {
		return err
	}
	return d.SyncDir(filepath.Dir(from))
}
