package bd

import (
	"slices"

	"github.com/gastown-chipset/chipset/state"
)

// graph is which bead waits for which.
type graph map[state.BeadID][]state.BeadID

// circles are the groups of beads of which each waits for all others of its
// group, and those that wait for themselves.
func (g graph) circles() [][]state.BeadID {
	var found [][]state.BeadID
	for _, group := range g.groups() {
		if len(group) > 1 || slices.Contains(g[group[0]], group[0]) {
			found = append(found, group)
		}
	}
	return found
}

// groups are the strongly connected components, by Tarjan's algorithm: what a
// group waits for comes before it.
func (g graph) groups() [][]state.BeadID {
	t := tarjan{graph: g, index: map[state.BeadID]int{}, low: map[state.BeadID]int{}, on: map[state.BeadID]bool{}}
	nodes := make([]state.BeadID, 0, len(g))
	for n := range g {
		nodes = append(nodes, n)
	}
	slices.Sort(nodes) // the same input gives the same order
	for _, n := range nodes {
		if t.index[n] == 0 {
			t.visit(n)
		}
	}
	return t.groups
}

type tarjan struct {
	graph  graph
	index  map[state.BeadID]int // from 1
	low    map[state.BeadID]int
	on     map[state.BeadID]bool
	stack  []state.BeadID
	groups [][]state.BeadID
}

func (t *tarjan) visit(n state.BeadID) {
	t.index[n] = len(t.index) + 1
	t.low[n] = t.index[n]
	t.stack, t.on[n] = append(t.stack, n), true
	for _, next := range t.graph[n] {
		if t.index[next] == 0 {
			t.visit(next)
			t.low[n] = min(t.low[n], t.low[next])
		} else if t.on[next] {
			t.low[n] = min(t.low[n], t.index[next])
		}
	}
	if t.low[n] != t.index[n] {
		return
	}
	at := len(t.stack) - 1
	for t.stack[at] != n {
		at--
	}
	group := slices.Clone(t.stack[at:])
	t.stack = t.stack[:at]
	for _, m := range group {
		t.on[m] = false
	}
	t.groups = append(t.groups, group)
}

// way is a circle through the first of a group, in the order of waiting: the
// group says that there is one.
func (g graph) way(group []state.BeadID) []state.BeadID {
	from := map[state.BeadID]state.BeadID{}
	todo := []state.BeadID{group[0]}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		for _, next := range g[at] {
			if next == group[0] {
				way := []state.BeadID{next}
				for n := at; n != group[0]; n = from[n] {
					way = append(way, n)
				}
				way = append(way, group[0])
				slices.Reverse(way)
				return way
			}
			if _, seen := from[next]; !seen && slices.Contains(group, next) {
				from[next] = at
				todo = append(todo, next)
			}
		}
	}
	return nil
}
