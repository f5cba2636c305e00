package state

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Watcher tells its subscribers when something changed in their folders. One
// serves a whole process, because systems limit how many a user may have. A
// lost notification costs latency only: every role also ticks.
type Watcher struct {
	tree *Tree
	fs   *fsnotify.Watcher

	mu   sync.Mutex
	subs map[string][]subscription // by absolute folder
	errs chan error
}

// subscription is one subscriber's interest in a folder.
type subscription struct {
	ch chan struct{}
	// wants tells whether a name in the folder is news, or is nil for all.
	wants func(name string) bool
}

// NewWatcher starts one. An error means that notification is not to be had
// (limits, a network file system) and the tick must do.
func NewWatcher(t *Tree) (*Watcher, error) {
	inner, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &Watcher{tree: t, fs: inner, subs: map[string][]subscription{}, errs: make(chan error, 1)}
	go w.run()
	return w, nil
}

// Subscribe returns a channel that holds at most one signal, sent after
// something changed in one of dirs. The folders are made when missing.
func (w *Watcher) Subscribe(dirs ...Path) (<-chan struct{}, error) {
	return w.SubscribeTo(nil, dirs...)
}

// SubscribeTo is Subscribe for those changes only of which wants, called from
// another goroutine, says that they are news; nil wants all.
func (w *Watcher) SubscribeTo(wants func(Path) bool, dirs ...Path) (<-chan struct{}, error) {
	ch := make(chan struct{}, 1)
	for _, dir := range dirs {
		if err := w.tree.MkdirAll(dir); err != nil {
			return ch, err
		}
		abs := w.tree.Abs(dir)
		w.mu.Lock()
		sub := subscription{ch: ch}
		if wants != nil {
			sub.wants = func(name string) bool { return wants(dir.Join(name)) }
		}
		w.subs[abs] = append(w.subs[abs], sub)
		w.mu.Unlock()
		// Adding a folder again changes nothing, and mends one that was made anew.
		if err := w.fs.Add(abs); err != nil {
			return ch, wrapPath(dir, err)
		}
	}
	return ch, nil
}

// Errors holds at most one error of the notification itself, for a warning.
func (w *Watcher) Errors() <-chan error { return w.errs }

// Close ends all notification.
func (w *Watcher) Close() error { return w.fs.Close() }

func (w *Watcher) run() {
	for {
		select {
		case ev, ok := <-w.fs.Events:
			if !ok {
				return
			}
			if ev.Op == fsnotify.Chmod || strings.HasPrefix(filepath.Base(ev.Name), ".") {
				continue // temp files are nobody's news
			}
			w.signal(filepath.Dir(ev.Name), filepath.Base(ev.Name))
		case err, ok := <-w.fs.Errors:
			if !ok {
				return
			}
			select {
			case w.errs <- err:
			default:
			}
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				w.signalAll()
			}
		}
	}
}

// signal wakes those to whom a change of name in dir is news; "" is to all.
func (w *Watcher) signal(dir, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, sub := range w.subs[dir] {
		if name != "" && sub.wants != nil && !sub.wants(name) {
			continue
		}
		select {
		case sub.ch <- struct{}{}:
		default:
		}
	}
}

func (w *Watcher) signalAll() {
	w.mu.Lock()
	dirs := make([]string, 0, len(w.subs))
	for dir := range w.subs {
		dirs = append(dirs, dir)
	}
	w.mu.Unlock()
	for _, dir := range dirs {
		w.signal(dir, "")
	}
}
