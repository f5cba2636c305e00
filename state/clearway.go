package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// QuarantineNonFolder moves what stands where a folder belongs into the quarantine, with its
// reason; the next use makes the folder anew. It is no error when nothing is there,
// or a folder by now: of many who clear the same way one does. Durable when it
// returns nil. Errors: ErrLockTimeout, while others clear; a *Corruption for what
// is reached through a link.
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
		return err // nobody knows what stands there
	}
	if err := t.check(dir); err != nil {
		return err
	}
	if dir == QuarantineDir {
		// It has to make room for its own quarantine. A crash in between leaves it under a name of which the doctor tells.
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

// lockRoot keeps others from clearing ways. The locks of objects can't be taken
// when it is their own folder that is in question.
func (t *Tree) lockRoot(ctx context.Context) (*os.File, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, LockDeadline)
		defer cancel()
	}
	root, err := os.OpenFile(t.root, os.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	for {
		err := flock(root)
		if err == nil {
			return root, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			_ = root.Close()
			return nil, &fs.PathError{Op: "flock", Path: t.root, Err: err}
		}
		timer := time.NewTimer(10 * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			_ = root.Close()
			return nil, fmt.Errorf("%s: %w", t.root, ErrLockTimeout)
		case <-timer.C:
		}
	}
}
