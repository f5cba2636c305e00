package bead

import (
	"slices"

	"github.com/gastown-chipset/chipset/state"
)

// Graph maps each bead to the beads that it waits for.
type Graph map[state.BeadID][]state.BeadID

// GraphOf returns the graph of some beads.
func GraphOf(all []Bead) Graph {
	g := make(Graph, len(all))
	for i := range all {
		g[all[i].ID] = all[i].BlockedBy
	}
	return g
}

// Cycle returns a shortest cycle through a bead, which is both its first and its last element, or nil.
func (g Graph) Cycle(id state.BeadID) []state.BeadID {
	from := map[state.BeadID]state.BeadID{}
	todo := []state.BeadID{id}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		for _, next := range g[at] {
			if next == id {
				cycle := []state.BeadID{id}
				for n := at; n != id; n = from[n] {
					cycle = append(cycle, n)
				}
				cycle = append(cycle, id)
				slices.Reverse(cycle)
				return cycle
			}
			if _, seen := from[next]; !seen {
				from[next] = at
				todo = append(todo, next)
			}
		}
	}
	return nil
}

// Cycles returns one cycle for each group of beads that wait for each other.
func (g Graph) Cycles() [][]state.BeadID {
	var found [][]state.BeadID
	for _, group := range g.Groups() {
		if len(group) > 1 || slices.Contains(g[group[0]], group[0]) {
			found = append(found, g.Cycle(group[0]))
		}
	}
	return found
}

// Groups returns the strongly connected components, by Tarjan's algorithm. A group comes
// after the groups that it waits for.
func (g Graph) Groups() [][]state.BeadID {
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
	graph  Graph
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
