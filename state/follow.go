package state

import (
	"errors"
	"os"
	"sync"
	"time"
)

// feed collects the changed names of one folder.
type feed struct {
	mu sync.Mutex
	// names are the names since the last take, without temp files.
	names map[string]bool
	// stirred is true when anything has changed, temp files included.
	stirred bool
	// lost is true when names are not complete.
	lost bool
}

// maxFeed bounds the names that a feed keeps for a follower that does not ask. With
// more names a rescan is cheaper anyway.
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

// Follower reports the changes of a folder to a cache of its content. It uses
// notifications of the system but does not rely on them: it asks for a rescan when the
// folder's own stamp has changed without a notification, and every wholeInterval anyway.
// It is not safe for concurrent use. The zero Follower always asks for a rescan.
type Follower struct {
	tree *Tree
	dir  Path
	// watcher is nil when every call of Next asks for a rescan.
	watcher *Watcher
	feed    *feed
	watched Stamp     // the folder when its watch was added
	seen    Stamp     // the folder at the last call of Next
	whole   time.Time // of the last rescan
	refused time.Time // when the system last refused a watch, or zero
	missing bool      // there was no folder at the last call of Next
}

// wholeInterval is how often a followed folder is rescanned without a reason, and how
// long Next waits before it asks again for a watch that was refused.
const wholeInterval = 30 * time.Second

// NewFollower returns a Follower of dir. With a nil watcher it always asks for a rescan.
func NewFollower(t *Tree, dir Path, w *Watcher) Follower {
	return Follower{tree: t, dir: dir, watcher: w}
}

// FolderChanges are the possible changes of a folder since the last call of Next.
type FolderChanges struct {
	// Rescan is true when every name may have changed; Names is nil then.
	Rescan bool
	Names  map[string]bool
}

// Next returns the changes since the last call. They include every change that was
// acknowledged before Next was called.
func (f *Follower) Next() (FolderChanges, error) {
	if f.watcher == nil || !f.watcher.src.follows() {
		return FolderChanges{Rescan: true}, nil
	}
	now := time.Now() //nolint:forbidigo // for intervals, by the monotonic clock
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

// watch adds a watch for the folder and reports whether that succeeded. After a failure
// it tries again after wholeInterval.
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

// feed returns a new feed of a folder.
func (w *Watcher) feed(dir string) *feed {
	f := &feed{lost: true}
	w.mu.Lock()
	w.feeds[dir] = append(w.feeds[dir], f)
	w.mu.Unlock()
	return f
}
