package state

import (
	"slices"
	"strings"
)

// maxHistory is how many changes a store remembers at least.
const maxHistory = 4096

// Cursor is a position in the sequence of changes that a store has seen. The zero Cursor
// is before the first one.
type Cursor struct{ after int64 }

// Changes are the changes of a store since a Cursor.
type Changes[T any] struct {
	// All is true when the store does not remember all changes. Values are all objects
	// then, and Removed is empty.
	All bool
	// Values are the objects that are new or may have changed.
	Values []T
	// Removed are the names (without .json) of objects that were removed or can't be
	// read any more.
	Removed []string
	// Bad are the errors of all files that can't be read, as All returns them.
	Bad []error
	// Next is the Cursor after these changes.
	Next Cursor
}

// Since returns the changes since a cursor. It takes time in proportion to the changes,
// not to the number of objects.
func (s *Store[T]) Since(m Cursor) (Changes[T], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(); err != nil {
		return Changes[T]{}, err
	}
	s.collect()
	c := Changes[T]{Bad: slices.Clone(s.bad), Next: Cursor{s.changes + 1}}
	missed := s.changes + 1 - m.after
	if m.after == 0 || missed > int64(len(s.history)) {
		c.All, c.Values = true, slices.Clone(s.values)
		return c, nil
	}
	reported := map[string]bool{}
	for _, file := range s.history[int64(len(s.history))-missed:] {
		if reported[file] {
			continue
		}
		reported[file] = true
		if kept, known := s.cache[file]; known && kept.err == nil {
			c.Values = append(c.Values, kept.value)
		} else {
			c.Removed = append(c.Removed, strings.TrimSuffix(file, suffix))
		}
	}
	return c, nil
}

// note records that a file has changed.
func (s *Store[T]) note(file string) {
	s.changes++
	if len(s.history) == 2*maxHistory {
		s.history = slices.Delete(s.history, 0, maxHistory)
	}
	s.history = append(s.history, file)
}
