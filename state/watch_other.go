//go:build !linux

package state

import (
	"errors"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// source reads notifications with the fsnotify library.
type source struct{ fs *fsnotify.Watcher }

func newSource(w *Watcher) (*source, error) {
	inner, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			select {
			case ev, ok := <-inner.Events:
				if !ok {
					return
				}
				if ev.Op != fsnotify.Chmod {
					w.changed(filepath.Dir(ev.Name), filepath.Base(ev.Name))
				}
			case err, ok := <-inner.Errors:
				if !ok {
					return
				}
				if errors.Is(err, fsnotify.ErrEventOverflow) {
					w.overflow(err)
				} else {
					w.fail(err)
				}
			}
		}
	}()
	return &source{inner}, nil
}

// follows returns false, because a notification may come long after its change. It only
// wakes subscribers.
func (s *source) follows() bool { return false }

func (s *source) add(dir string) error { return s.fs.Add(dir) }

func (s *source) drain() {}

func (s *source) close() error { return s.fs.Close() }
