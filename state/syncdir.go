package state

import (
	"errors"
	"io/fs"
	"sync"
)

// SyncDir makes the entries of a folder durable. Concurrent calls for the same
// folder share fsyncs.
func (t *Tree) SyncDir(dir Path) error {
	if inRun(dir) {
		return nil // run/ is volatile by contract
	}
	return wrapPath(dir, t.syncs.sync(dir, func() error { return t.disk.SyncDir(t.Abs(dir)) }))
}

// A failed fsync concerns one inode, here one folder: the kernel keeps a write error with
// its inode, reports it once, and drops the data, so that the next fsync of the same
// folder succeeds although entries may be lost. Therefore failures are counted for each
// folder, and a failure counts against every change of that folder that was made before
// it and is not acknowledged yet. (A failed syncfs concerns the whole file system:
// groups.failed counts these.)

// errLostName is returned when another sync of the folder has failed since the change.
var errLostName = errors.New("another sync of this folder failed")

// syncNames is SyncDir after a change of the folder. since is the result of failures
// from before the change.
func (t *Tree) syncNames(dir Path, since int64) error {
	if err := t.SyncDir(dir); err != nil {
		return err
	}
	if t.syncs.failures(dir) != since {
		return wrapPath(dir, errLostName)
	}
	return nil
}

// syncsBeside is how many syncs of one folder run concurrently. A few of them overlap
// on the disk; with more, sharing is faster.
const syncsBeside = 4

// dirSyncs shares syncs of folders between callers: while syncsBeside syncs of a folder
// are running, further callers wait for the next one, which one of them makes for all.
type dirSyncs struct {
	mu sync.Mutex
	of map[Path]*dirSync // the folders that are being synced
	// failed counts the failed syncs of each folder.
	failed map[Path]int64
}

// failures returns how many syncs of a folder have failed.
func (s *dirSyncs) failures(dir Path) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed[dir]
}

// dirSync is a folder that is being synced.
type dirSync struct {
	running int
	next    *sharedSync // the sync that further callers wait for, or nil
}

// sharedSync is a sync that has not begun.
type sharedSync struct {
	turn   chan struct{} // the caller that receives from it makes the sync
	done   chan struct{} // closed when err is set
	err    error
	before error // of the sync that ended just before
}

// sync returns the error of a call of do that began after sync was called, in this
// goroutine or in another.
func (s *dirSyncs) sync(dir Path, do func() error) error {
	s.mu.Lock()
	d := s.of[dir]
	if d == nil {
		if s.of == nil {
			s.of = map[Path]*dirSync{}
		}
		d = &dirSync{}
		s.of[dir] = d
	}
	if d.running < syncsBeside {
		d.running++
		s.mu.Unlock()
		return s.run(dir, d, do)
	}
	if d.next == nil {
		d.next = &sharedSync{turn: make(chan struct{}, 1), done: make(chan struct{})}
	}
	next := d.next
	s.mu.Unlock()
	select {
	case <-next.done:
	case <-next.turn:
		// The kernel reported what the previous sync lost to that sync alone.
		next.err = errors.Join(next.before, s.run(dir, d, do))
		close(next.done)
	}
	return next.err
}

// run makes one sync and passes its place to the next waiting caller.
func (s *dirSyncs) run(dir Path, d *dirSync, do func() error) error {
	err := do()
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := err
	if notOpened(err) {
		lost = nil
	}
	if lost != nil {
		if s.failed == nil {
			s.failed = map[Path]int64{}
		}
		s.failed[dir]++
	}
	if next := d.next; next != nil {
		next.before = lost
		d.next = nil
		next.turn <- struct{}{}
		return err
	}
	if d.running--; d.running == 0 {
		delete(s.of, dir)
	}
	return err
}

// notOpened reports whether a sync failed because the folder could not be opened, for
// example because it does not exist. Nothing is lost then.
func notOpened(err error) bool {
	var pe *fs.PathError
	return errors.As(err, &pe) && pe.Op == "open"
}
