package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state/disk"
)

// LockKind is the kind of object that a lock protects. The constants are listed in the
// order in which one process may take several.
type LockKind string

// Lock kinds, in lock order.
const (
	LockAgent    LockKind = "agent" // held by a role process as long as it lives
	LockLease    LockKind = "lease" // held by the process that has taken over an agent's session
	LockDispatch LockKind = "dispatch"
	LockBead     LockKind = "bead"
	LockHook     LockKind = "hook"
	LockQueue    LockKind = "queue"
	LockMailbox  LockKind = "mailbox"
	LockRecord   LockKind = "record" // retire records, incidents, convoys, nudges, permissions
	// LockAgentRecord protects an identity file; LockAgent is liveness.
	LockAgentRecord LockKind = "agent-record"
	LockGit         LockKind = "git"
	LockAppend      LockKind = "append" // held for one write to a log
)

// LockDeadline is how long Lock waits when the context has no deadline.
const LockDeadline = 15 * time.Second

// Lock is a held lock.
type Lock struct {
	f    *os.File
	path Path
}

// Lock takes the lock of one object, waiting until ctx ends or LockDeadline.
// Before it returns, it makes the entries of dirs durable, so that the holder
// never acts on an entry that a power cut could still undo. Errors: ErrLockTimeout.
func (t *Tree) Lock(ctx context.Context, kind LockKind, name string, dirs ...Path) (*Lock, error) {
	var l *Lock
	err := retryLock(ctx, string(kind)+" "+name, func() (err error) {
		l, err = t.TryLock(kind, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, t.syncAll(l, dirs)
}

// retryLock calls try until it returns another error than ErrLockTimeout, ctx ends, or
// LockDeadline has passed.
func retryLock(ctx context.Context, what string, try func() error) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, LockDeadline)
		defer cancel()
	}
	wait := 200 * time.Microsecond
	for {
		if err := try(); !errors.Is(err, ErrLockTimeout) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			if err := ctx.Err(); errors.Is(err, context.Canceled) { // the caller has given up
				return fmt.Errorf("%s: %w: %w", what, ErrLockTimeout, err)
			}
			return fmt.Errorf("%s: %w", what, ErrLockTimeout)
		case <-timer.C:
		}
		wait = min(wait*2, 10*time.Millisecond)
	}
}

func (t *Tree) syncAll(l *Lock, dirs []Path) error {
	for _, dir := range dirs {
		if err := t.SyncDir(dir); err != nil && !errors.Is(err, ErrNotFound) {
			l.Unlock()
			return err
		}
	}
	return nil
}

// lockPath returns the path of the lock file of an object.
func lockPath(kind LockKind, name string) Path {
	return RunDir.Join("locks", string(kind), name+".lock")
}

// TryLock takes a lock if it is free, and returns ErrLockTimeout at once otherwise.
func (t *Tree) TryLock(kind LockKind, name string) (*Lock, error) {
	p := lockPath(kind, name)
	for {
		if err := t.MkdirAll(p.Dir()); err != nil {
			return nil, err
		}
		f, err := os.OpenFile(t.Abs(p), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, disk.Perm)
		if err != nil {
			return nil, wrapPath(p, err)
		}
		err = flock(f)
		if err != nil {
			_ = f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, fmt.Errorf("%s %s: %w", kind, name, ErrLockTimeout)
			}
			return nil, wrapPath(p, err)
		}
		// A lock file that was deleted meanwhile (run/ was emptied) protects nothing.
		l := &Lock{f: f, path: p}
		held, lost := l.stat(t)
		if !lost && links(held) == 1 {
			return l, nil
		}
		if !lost {
			// A power cut left the file with two names, so two objects would share one
			// lock. No other process holds it now, and those that wait for it look again.
			err = t.Remove(p)
		}
		if closeErr := f.Close(); err == nil && closeErr != nil {
			err = wrapPath(p, closeErr)
		}
		if err != nil {
			return nil, err
		}
	}
}

func flock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Lost reports whether the lock file was removed or replaced while the lock was held,
// so that another process may hold a lock of the same name.
func (l *Lock) Lost(t *Tree) bool {
	_, lost := l.stat(t)
	return lost
}

// stat returns the file that is held. lost is true unless the lock's path still names it.
func (l *Lock) stat(t *Tree) (held os.FileInfo, lost bool) {
	held, _ = l.f.Stat() // os.SameFile(nil, …) is false: an error counts as lost
	named, _ := os.Lstat(t.Abs(l.path))
	return held, !os.SameFile(held, named)
}

// Unlock releases the lock. Further calls do nothing.
func (l *Lock) Unlock() {
	if l != nil && l.f != nil {
		// Closing alone is not enough: a child that was forked just now holds the lock until its exec.
		_ = unix.Flock(int(l.f.Fd()), unix.LOCK_UN)
		_ = l.f.Close()
		l.f = nil
	}
}

// IsLocked reports whether a lock is held now, without waiting.
func (t *Tree) IsLocked(kind LockKind, name string) bool {
	f, err := os.OpenFile(t.Abs(lockPath(kind, name)), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	// A shared probe never makes another probe fail, and Lock tries again if it meets one.
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}
