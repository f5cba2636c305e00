package state

import "sync"

// Watcher wakes its subscribers when something has changed in their folders, and reports
// the changed names to its followers. A process has one Watcher, because systems limit
// their number. A lost notification costs only latency: every role also wakes with the
// tick.
type Watcher struct {
	tree *Tree
	src  *source // of this system's notifications

	mu    sync.Mutex
	subs  map[string][]subscription // by absolute folder
	feeds map[string][]*feed        // by absolute folder
	errs  chan error
}

// subscription is one subscriber's interest in a folder.
type subscription struct {
	ch chan struct{}
	// wants reports whether the subscriber wants changes of a name; nil wants all.
	wants func(name string) bool
}

// NewWatcher starts a watcher. It returns an error when the system refuses
// notifications, for example because of a limit.
func NewWatcher(t *Tree) (*Watcher, error) {
	w := &Watcher{tree: t, subs: map[string][]subscription{}, feeds: map[string][]*feed{}, errs: make(chan error, 1)}
	src, err := newSource(w)
	if err != nil {
		return nil, err
	}
	w.src = src
	return w, nil
}

// Subscribe returns a channel that holds at most one signal, which is sent after
// something has changed in one of dirs. Missing folders are made.
func (w *Watcher) Subscribe(dirs ...Path) (<-chan struct{}, error) {
	return w.SubscribeTo(nil, dirs...)
}

// SubscribeTo is Subscribe for changes of the paths for which wants returns true; nil
// wants all. wants is called from another goroutine and must not use the tree.
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
		// Adding a folder again does nothing, unless the folder was replaced.
		if err := w.src.add(abs); err != nil {
			return ch, wrapPath(dir, err)
		}
	}
	return ch, nil
}

// Errors returns a channel that holds at most one error of the notifications, for a
// warning.
func (w *Watcher) Errors() <-chan error { return w.errs }

// Close ends all notifications.
func (w *Watcher) Close() error { return w.src.close() }

// changed is called by the source: something happened to a name in a folder.
func (w *Watcher) changed(dir, name string) {
	w.mu.Lock()
	for _, f := range w.feeds[dir] {
		f.note(name)
	}
	w.mu.Unlock()
	if !IsTemp(name) {
		w.signal(dir, name)
	}
}

// lose is called by the source: the folder is no longer watched, because it
// was removed or replaced.
func (w *Watcher) lose(dir string) {
	w.mu.Lock()
	for _, f := range w.feeds[dir] {
		f.lose()
	}
	w.mu.Unlock()
	w.signal(dir, "")
}

// overflow is called by the source: changes were missed.
func (w *Watcher) overflow(err error) {
	w.fail(err)
	w.mu.Lock()
	for _, feeds := range w.feeds {
		for _, f := range feeds {
			f.lose()
		}
	}
	w.mu.Unlock()
	w.signalAll()
}

// fail puts err into errs, unless an earlier error is still there.
func (w *Watcher) fail(err error) {
	select {
	case w.errs <- err:
	default:
	}
}

// signal wakes the subscribers of dir that want changes of name; "" wakes all of them.
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
