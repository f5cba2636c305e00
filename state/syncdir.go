package state

import (
	"errors"
	"sync"
	"sync/atomic"
)

// SyncDir makes the entries of a folder durable. Callers that want it of the same
// folder at once share what it costs.
func (t *Tree) SyncDir(dir Path) error {
	if inRun(dir) {
		return nil // run/ is volatile by contract
	}
	return wrapPath(dir, t.syncs.sync(dir, func() error { return t.disk.SyncDir(t.Abs(dir)) }))
}

// errLostName says that another sync failed while the name was not yet durable.
// The folder's next sync succeeds then, though the name may be lost.
var errLostName = errors.New("another sync of a folder failed since")

// syncNames is SyncDir for names that were given after failed syncs were counted.
func (t *Tree) syncNames(dir Path, since int64) error {
	if err := t.SyncDir(dir); err != nil {
		return err
	}
	if t.syncs.failed.Load() != since {
		return wrapPath(dir, errLostName)
	}
	return nil
}

// syncsBeside is how many syncs of a folder run side by side before they are
// shared: a few overlap on the disk, and to wait for the next would only take longer.
const syncsBeside = 4

// dirSyncs lets callers share syncs of folders: who comes while enough of them are
// running waits for the next one, which one of those who wait makes for all.
type dirSyncs struct {
	mu sync.Mutex
	of map[Path]*dirSync // the folders that are being synced

	// failed counts the syncs that did.
	failed atomic.Int64
}

// dirSync is a folder that is being synced.
type dirSync struct {
	running int
	next    *sharedSync // what the others wait for, or nil
}

// sharedSync is a sync that has not begun.
type sharedSync struct {
	turn   chan struct{} // holds the right to make it
	done   chan struct{} // closed when err is known
	err    error
	before error // of a sync that ran when those who wait came
}

// sync calls do, or waits for somebody who has called it later than now.
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
		// What the one before has lost, this one would not hear of.
		next.err = errors.Join(next.before, s.run(dir, d, do))
		close(next.done)
	}
	return next.err
}

// run makes one sync and hands its place on.
func (s *dirSyncs) run(dir Path, d *dirSync, do func() error) error {
	err := do()
	if err != nil {
		s.failed.Add(1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if next := d.next; next != nil {
		next.before = err
		d.next = nil
		next.turn <- struct{}{}
		return err
	}
	if d.running--; d.running == 0 {
		delete(s.of, dir)
	}
	return err
}
