package witness

import "maps"

// memory is a map of the State that a decision changes: what it was given stays as
// it is, and is copied before the first change. Most patrols change little.
type memory[K comparable, V any] struct {
	m   map[K]V
	own bool
}

func (m *memory[K, V]) get(k K) (V, bool) {
	v, ok := m.m[k]
	return v, ok
}

func (m *memory[K, V]) change() map[K]V {
	if !m.own {
		m.own = true
		if m.m = maps.Clone(m.m); m.m == nil {
			m.m = map[K]V{}
		}
	}
	return m.m
}

func (m *memory[K, V]) set(k K, v V) { m.change()[k] = v }

func (m *memory[K, V]) remove(k K) {
	if _, known := m.m[k]; known {
		delete(m.change(), k)
	}
}
