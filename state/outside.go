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

// ReadOutside returns the content of a regular file of at most limit bytes that
// lies outside of the state tree. Links are followed, because people keep their
// configuration behind them; a FIFO or a device is never opened in a way that
// could hang. Errors: fs.ErrNotExist, ErrTooLarge, a *Corruption for what is not a file.
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

// ReplaceOutside durably puts a small file in place that belongs to a rig but
// lies outside of its state tree: chipset.yaml, the ignore file, the pointer in
// git's own folder. It follows the rules of Tree.Replace.
func ReplaceOutside(path string, data []byte) error {
	return replaceOutside(path, data, renameio.WithPermissions(outsidePerm), renameio.WithExistingPermissions())
}

// outsidePerm are the permissions of new files that are not the rig's alone: chipset.yaml, files in git's folder.
const outsidePerm = 0o644

// StageOutside durably writes what is to take the place of a file, under another
// name on the same file system and with the file's own permissions, for PutOutside.
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

// PutOutside puts a staged file in the place of another. Whether that has happened
// can be told afterwards: the staged name is gone then. Durable when it returns nil.
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

// MkdirOutside makes one folder outside of the tree durably; one that exists is
// no error.
func MkdirOutside(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return disk.OS{}.SyncDir(filepath.Dir(path))
}

// ClaimOutside makes a folder that nobody has, as programs that lock with mkdir
// do; fs.ErrExist when somebody holds it.
func ClaimOutside(path string) error { return os.Mkdir(path, 0o755) }

// ReleaseOutside takes the folder of ClaimOutside away.
func ReleaseOutside(path string) error { return os.Remove(path) }

// MoveOutside gives a file outside of the tree another name that nobody has, in
// a folder of the same file system; fs.ErrExist when it is taken. Durable when
// it returns nil.
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
