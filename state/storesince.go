package state

import (
	"slices"
	"strings"
)

// maxHistory bounds how many changes a store remembers.
const maxHistory = 4096

// Cursor is a place in the changes that a store of this process has seen. The zero Cursor is
// before all of it.
type Cursor struct{ after int64 }

// Changes is what has changed in a store since a Cursor.
type Changes[T any] struct {
	// All is true when Values are all objects, because too much has changed to
	// tell, and Removed is empty.
	All bool
	// Values are the objects that are new, or may be other ones.
	Values []T
	// Removed are the names (without .json) of which there is no object, or none that
	// can be read.
	Removed []string
	// Bad are all that can't be read, each a *Corruption, as All returns them.
	Bad []error
	// Next is the Cursor of this answer.
	Next Cursor
}

// Since returns what has changed since a cursor. It takes time in proportion to the
// changes, not to the number of objects.
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
	told := map[string]bool{}
	for _, file := range s.history[int64(len(s.history))-missed:] {
		if told[file] {
			continue
		}
		told[file] = true
		if kept, known := s.cache[file]; known && kept.err == nil {
			c.Values = append(c.Values, kept.value)
		} else {
			c.Removed = append(c.Removed, strings.TrimSuffix(file, suffix))
		}
	}
	return c, nil
}

// note remembers that a file has changed.
func (s *Store[T]) note(file string) {
	s.changes++
	if len(s.history) == 2*maxHistory {
		s.history = slices.Delete(s.history, 0, maxHistory)
	}
	s.history = append(s.history, file)
}
