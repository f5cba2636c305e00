package disk

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// Perm are the permissions of new files, FolderPerm those of new folders. No other user may read what agents write.
const (
	Perm       = 0o600
	FolderPerm = 0o700
)

// OS is the disk of this machine.
type OS struct{}

// osFile is a file of this machine.
type osFile struct{ *os.File }

// Create implements Disk.
func (OS) Create(path string) (File, error) {
	return open(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
}

// Append implements Disk. A FIFO or a device can't make it hang.
func (OS) Append(path string) (File, error) {
	return open(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|unix.O_NONBLOCK)
}

func open(path string, flags int) (File, error) {
	f, err := openFile(path, flags|unix.O_NOFOLLOW, Perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// openFile is os.OpenFile without the attempt to add the file to the runtime's poller.
// That always fails for regular files and costs five system calls for each message.
func openFile(path string, flags int, perm uint32) (*os.File, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, perm)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case !errors.Is(err, unix.EINTR):
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// pending is a temp file of renameio, which syncs it before it closes and renames it.
type pending struct{ *renameio.PendingFile }

func (p pending) Replace() error { return p.CloseAtomicallyReplace() }

// Pending implements Disk. The temp file is made beside the file, because renameio would
// otherwise probe $TMPDIR.
func (OS) Pending(path string) (Pending, error) {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(Perm))
	if err != nil {
		return nil, err
	}
	return pending{f}, nil
}

// RenameNew implements Disk.
func (OS) RenameNew(from, to string) error { return renameNew(from, to) }

// Rename implements Disk.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements Disk.
func (OS) Remove(path string) error { return os.Remove(path) }

// Mkdir implements Disk.
func (OS) Mkdir(path string) error { return os.Mkdir(path, FolderPerm) }

// Symlink implements Disk.
func (OS) Symlink(target, path string) error { return os.Symlink(target, path) }

// SyncFile implements Disk.
func (OS) SyncFile(path string) error { return syncAt(path, unix.O_NOFOLLOW) }

// SyncDir implements Disk.
func (OS) SyncDir(path string) error { return syncAt(path, unix.O_DIRECTORY) }

func syncAt(path string, flags int) error {
	f, err := openFile(path, os.O_RDONLY|flags, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// linkThenUnlink is RenameNew for systems and file systems without such a call. A crash
// between its steps leaves both names; package state recognises and removes a temp file
// that is left.
func linkThenUnlink(from, to string) error {
	if info, err := os.Lstat(from); err == nil && info.IsDir() {
		if _, err := os.Lstat(to); err == nil {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: os.ErrExist}
		}
		return os.Rename(from, to)
	}
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}
