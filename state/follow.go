package state

import (
	"errors"
	"os"
	"sync"
	"time"
)

// feed collects the names in one folder that something happened to.
type feed struct {
	mu sync.Mutex
	// names are what was noted since they were taken, temp files left out.
	names map[string]bool
	// stirred is true when anything was noted, temp files included.
	stirred bool
	// lost is true when names do not tell everything.
	lost bool
}

// maxFeed bounds the names that a feed keeps for a follower that does not ask. With
// more of them a rescan is cheaper anyway.
const maxFeed = 10_000

func (f *feed) note(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stirred = true
	switch {
	case f.lost || IsTemp(name):
	case len(f.names) >= maxFeed:
		f.names, f.lost = nil, true
	default:
		if f.names == nil {
			f.names = map[string]bool{}
		}
		f.names[name] = true
	}
}

func (f *feed) lose() {
	f.mu.Lock()
	f.names, f.lost = nil, true
	f.mu.Unlock()
}

func (f *feed) take() (names map[string]bool, stirred, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	names, stirred, lost = f.names, f.stirred, f.lost
	f.names, f.stirred, f.lost = nil, false, false
	return names, stirred, lost
}

// Follower reports the changes of a folder to one who caches its content. It uses
// notifications of the system but does not rely on them: it asks for a rescan when the
// folder's own stamp changed without a notification, and from time to time anyway. It
// is used by one goroutine at a time. The zero Follower asks for a rescan each time.
type Follower struct {
	tree *Tree
	dir  Path
	// watcher is nil when every look must be at the whole folder.
	watcher *Watcher
	feed    *feed
	watched Stamp // the folder when its watch was set up
	seen    Stamp // the folder at the last look
	whole   time.Time
	refused time.Time // when a watch could not be had, or zero
	missing bool      // there was no folder at the last look
}

// wholeInterval is how often a followed folder is rescanned without a reason, and how
// long it takes until a watch that was refused is asked for again.
const wholeInterval = 30 * time.Second

// NewFollower follows a folder. A nil watcher makes every change a rescan.
func NewFollower(t *Tree, dir Path, w *Watcher) Follower {
	return Follower{tree: t, dir: dir, watcher: w}
}

// FolderChanges is what may have changed in a folder since it was asked for before.
type FolderChanges struct {
	// Rescan is true when every name must be looked at; Names are none then.
	Rescan bool
	Names  map[string]bool
}

// Next returns the changes since the last call. They include every change that was
// acknowledged before Next was called.
func (f *Follower) Next() (FolderChanges, error) {
	if f.watcher == nil || !f.watcher.src.follows() {
		return FolderChanges{Rescan: true}, nil
	}
	now := time.Now() //nolint:forbidigo // how long ago something was, on the clock that never jumps
	stamp, err := lstat(f.tree.Abs(f.dir))
	if errors.Is(err, os.ErrNotExist) {
		known := f.missing
		f.watched, f.missing = Stamp{}, true
		return FolderChanges{Rescan: !known}, nil
	}
	if err != nil {
		return FolderChanges{}, wrapPath(f.dir, err)
	}
	f.missing = false
	if f.feed == nil {
		f.feed = f.watcher.feed(f.tree.Abs(f.dir))
	}
	f.watcher.src.drain()
	names, stirred, lost := f.feed.take()
	if lost || !f.watched.SameFile(stamp) {
		if !f.watch(stamp, now) {
			return FolderChanges{Rescan: true}, nil
		}
		lost = true
	}
	// The folder changed without a notification, so the names are not complete.
	silent := stamp != f.seen && !stirred
	f.seen = stamp
	if lost || silent || now.Sub(f.whole) >= wholeInterval {
		f.whole = now
		return FolderChanges{Rescan: true}, nil
	}
	return FolderChanges{Names: names}, nil
}

// watch begins to watch the folder and reports whether it could. After a failure it
// tries again after wholeInterval.
func (f *Follower) watch(stamp Stamp, now time.Time) bool {
	if !f.refused.IsZero() && now.Sub(f.refused) < wholeInterval {
		return false
	}
	if err := f.watcher.src.add(f.tree.Abs(f.dir)); err != nil {
		f.watcher.fail(err)
		f.watched, f.refused = Stamp{}, now
		return false
	}
	f.refused = time.Time{}
	f.watched = stamp
	return true
}

// feed registers one more listener to a folder.
func (w *Watcher) feed(dir string) *feed {
	f := &feed{lost: true}
	w.mu.Lock()
	w.feeds[dir] = append(w.feeds[dir], f)
	w.mu.Unlock()
	return f
}
