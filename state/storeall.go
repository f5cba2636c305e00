package state

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// All returns every object in the order of their names, and an error for each file that
// could not be read. err is for the folder itself. The result includes every change that
// was acknowledged before All was called.
func (s *Store[T]) All() ([]T, []error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(); err != nil {
		return nil, nil, err
	}
	s.collect()
	return slices.Clone(s.values), slices.Clone(s.bad), nil
}

// Select is All without the objects for which want returns false. want must neither
// change the object nor use the store.
func (s *Store[T]) Select(want func(v *T) bool) ([]T, []error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(); err != nil {
		return nil, nil, err
	}
	s.collect()
	var wanted []T
	for i := range s.values {
		if want(&s.values[i]) {
			wanted = append(wanted, s.values[i])
		}
	}
	return wanted, slices.Clone(s.bad), nil
}

// refresh brings the cache up to date with the folder.
func (s *Store[T]) refresh() error {
	n, err := s.follow.Next()
	if err != nil {
		return err
	}
	if n.Rescan {
		return s.lookAtAll()
	}
	if len(n.Names) == 0 && len(s.young) == 0 {
		return nil
	}
	dir, err := s.openFolder()
	if dir == nil || err != nil {
		return err
	}
	defer dir.Close()
	for file := range s.young {
		if !n.Names[file] {
			s.look(dir, file)
		}
	}
	for file := range n.Names {
		s.look(dir, file)
	}
	return nil
}

// openFolder opens the folder. It empties the cache and returns nil if there is none.
func (s *Store[T]) openFolder() (*Folder, error) {
	dir, err := s.tree.OpenFolder(s.dir)
	if errors.Is(err, ErrNotFound) {
		for file := range s.cache {
			s.remove(file)
		}
		return nil, nil
	}
	return dir, err
}

// collect computes values and bad from cache, unless nothing has changed.
func (s *Store[T]) collect() {
	if s.values != nil {
		return
	}
	if s.order == nil {
		s.order = make([]string, 0, len(s.cache))
		for file := range s.cache {
			s.order = append(s.order, file)
		}
		slices.Sort(s.order)
	}
	s.values, s.bad = make([]T, 0, len(s.order)), nil
	for _, file := range s.order {
		if c := s.cache[file]; c.err != nil {
			s.bad = append(s.bad, c.err)
		} else {
			s.values = append(s.values, c.value)
		}
	}
}

func (s *Store[T]) remove(file string) {
	if _, known := s.cache[file]; known {
		delete(s.cache, file)
		s.order, s.values = nil, nil
		s.note(file)
	}
	delete(s.young, file)
}

func (s *Store[T]) keep(file string, c cached[T]) {
	old, known := s.cache[file]
	s.cache[file] = c
	s.note(file)
	if !known {
		s.order = nil
	}
	// The usual change, of one object in a folder without damage, needs no new collect.
	if at, found := slices.BinarySearch(s.order, file); known && found && s.values != nil && len(s.bad) == 0 && old.err == nil && c.err == nil {
		s.values[at] = c.value
	} else {
		s.values = nil
	}
	if c.fresh {
		delete(s.young, file)
	} else {
		s.young[file] = true
	}
}

// look returns the cached object of a file, after reading the file if its stamp has
// changed. gone is true when there is no file.
func (s *Store[T]) look(dir *Folder, file string) (c cached[T], gone bool) {
	c, known := s.cache[file]
	stamp, err := dir.Stat(file)
	if err != nil {
		if gone := errors.Is(err, ErrNotFound); gone {
			s.remove(file)
			return cached[T]{err: err}, true
		}
		c = cached[T]{err: err}
		s.keep(file, c)
		return c, false
	}
	if known && c.fresh && c.stamp == stamp {
		return c, false
	}
	c, gone = s.readFile(dir, file, nil)
	if gone {
		s.remove(file)
		return c, true
	}
	s.keep(file, c)
	return c, false
}

// readFile reads one file.
func (s *Store[T]) readFile(dir *Folder, file string, buf []byte) (c cached[T], gone bool) {
	name, ok := strings.CutSuffix(file, suffix)
	if !ok || CheckID(name) != nil {
		return cached[T]{fresh: true, err: &Corruption{Path: string(s.dir.Join(file)), Reason: "not a valid name of a " + s.kind}}, false
	}
	s.reads.Add(1)
	now := time.Now() //nolint:forbidigo // compared with time stamps of the system
	data, stamp, err := dir.Read(file, MaxFile, buf)
	if stamp == (Stamp{}) && err != nil { // it was not opened, such as a link
		stamp, _ = dir.Stat(file)
	}
	if errors.Is(err, ErrNotFound) {
		return cached[T]{err: err}, true
	}
	var v T
	if err == nil {
		v, err = s.decode(name, data)
	}
	// Access that the system refused may be granted without a change to the file.
	lasting := err == nil || errors.Is(err, ErrCorrupt)
	return cached[T]{stamp: stamp, fresh: lasting && stamp.Settled(now), value: v, err: err}, false
}

// lookAtAll brings every file of the folder up to date in the cache.
func (s *Store[T]) lookAtAll() error {
	dir, err := s.openFolder()
	if dir == nil || err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Entries()
	if err != nil {
		return err
	}
	var unknown []string
	seen := make(map[string]bool, len(names))
	for _, n := range names {
		seen[n.Name] = true
		if _, known := s.cache[n.Name]; known {
			s.look(dir, n.Name)
		} else {
			unknown = append(unknown, n.Name)
		}
	}
	for file := range s.cache {
		if !seen[file] {
			s.remove(file)
		}
	}
	for i, c := range ReadMany(unknown, func(file string, buf []byte) *cached[T] {
		if c, gone := s.readFile(dir, file, buf); !gone {
			return &c
		}
		return nil
	}) {
		if c != nil {
			s.keep(unknown[i], *c)
		}
	}
	return nil
}

// fewFiles is how many files are needed before reading them in parallel pays.
const fewFiles = 64

// ReadMany calls read for each of many files, on all processors, and returns the
// results. Each call may use the buffer until it returns.
func ReadMany[R any](files []string, read func(file string, buf []byte) R) []R {
	results := make([]R, len(files))
	workers := runtime.GOMAXPROCS(0)
	if len(files) < fewFiles {
		workers = 1
	}
	var wg sync.WaitGroup
	for w := range workers {
		work := func() {
			buf := make([]byte, 16<<10)
			for i := w; i < len(files); i += workers {
				results[i] = read(files[i], buf)
			}
		}
		if workers == 1 {
			work()
			break
		}
		wg.Go(work)
	}
	wg.Wait()
	return results
}
