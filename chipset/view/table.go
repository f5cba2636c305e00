package view

import (
	"maps"
	"reflect"
	"slices"

	"github.com/gastown-chipset/chipset/state"
)

// table holds the objects of one store.
type table[T any] struct {
	since  func(state.Cursor) (state.Changes[T], error)
	name   func(*T) string
	cursor state.Cursor
	rows   map[string]*T
	// bad are the errors of objects that can't be read.
	bad []error
}

func newTable[T any](since func(state.Cursor) (state.Changes[T], error), name func(*T) string) table[T] {
	return table[T]{since: since, name: name, rows: map[string]*T{}}
}

// fill puts objects into an empty table.
func (t *table[T]) fill(all []T) {
	for i := range all {
		t.rows[t.name(&all[i])] = &all[i]
	}
}

// update follows the store. It returns the names of the objects that are new, changed or
// gone, and whether anything changed, damage included.
func (t *table[T]) update() (changed []string, any bool, err error) {
	c, err := t.since(t.cursor)
	if err != nil {
		return nil, false, err
	}
	t.cursor = c.Next
	if c.All {
		c.Removed = t.missing(c.Values)
	}
	for i := range c.Values {
		name := t.name(&c.Values[i])
		if old := t.rows[name]; old != nil && reflect.DeepEqual(*old, c.Values[i]) {
			continue
		}
		row := c.Values[i] // a copy, so that it does not keep the whole array alive
		t.rows[name] = &row
		changed = append(changed, name)
	}
	for _, name := range c.Removed {
		if t.rows[name] != nil {
			delete(t.rows, name)
			changed = append(changed, name)
		}
	}
	any = len(changed) > 0 || !sameErrors(t.bad, c.Bad)
	t.bad = c.Bad
	return changed, any, nil
}

// missing returns the names of the rows that are not among the values.
func (t *table[T]) missing(values []T) []string {
	there := make(map[string]bool, len(values))
	for i := range values {
		there[t.name(&values[i])] = true
	}
	var gone []string
	for name := range t.rows {
		if !there[name] {
			gone = append(gone, name)
		}
	}
	return gone
}

// sorted returns copies of the rows in the order of their names.
func (t *table[T]) sorted() []T {
	all := make([]T, 0, len(t.rows))
	for _, name := range slices.Sorted(maps.Keys(t.rows)) {
		all = append(all, *t.rows[name])
	}
	return all
}

func sameErrors(a, b []error) bool {
	return slices.EqualFunc(a, b, func(x, y error) bool { return x.Error() == y.Error() })
}
