package state

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// QuarantineNonFolder moves a file or link at the path of a folder to the quarantine,
// with the reason; the next use creates the folder. It does nothing when dir is a folder
// or does not exist, so many processes may call it at once. Durable when it returns nil.
// Errors: ErrLockTimeout while another process does it; a *Corruption for a path that
// leads through a link.
func (t *Tree) QuarantineNonFolder(ctx context.Context, dir Path, reason string, now Time) error {
	root, err := t.lockRoot(ctx)
	if err != nil {
		return err
	}
	defer root.Close() // which releases the lock
	switch err := t.folder(dir); {
	case err == nil, errors.Is(err, ErrNotFound):
		return nil
	case !errors.Is(err, ErrNotRegular):
		return err // dir could not be examined
	}
	if err := t.check(dir); err != nil {
		return err
	}
	if dir == QuarantineDir {
		// It is in the place of the quarantine itself. A crash after the rename leaves a name that doctor reports.
		aside := StateDir.Join("quarantine-" + Random(5))
		if err := t.disk.RenameNew(t.Abs(dir), t.Abs(aside)); err != nil {
			return wrapPath(dir, err)
		}
		if err := t.SyncDir(StateDir); err != nil {
			return err
		}
		dir = aside
	}
	_, err = t.Quarantine(dir, reason, now)
	return err
}

// lockRoot excludes other calls of QuarantineNonFolder. It locks the root, because dir
// may be the folder of the lock files.
func (t *Tree) lockRoot(ctx context.Context) (*os.File, error) {
	root, err := os.OpenFile(t.root, os.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	err = retryLock(ctx, t.root, func() error {
		err := flock(root)
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrLockTimeout
		case err != nil:
			return &fs.PathError{Op: "flock", Path: t.root, Err: err}
		}
		return nil
	})
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	return root, nil
}
