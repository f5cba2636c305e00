package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
)

// WorkItem is a bead with its place in the graph. It shares memory with others: treat it
// as read-only.
type WorkItem struct {
	Bead *bead.Bead
	// Waits are the dependencies that have not landed or don't exist, in the order of the bead.
	Waits []state.BeadID
	// Blocks are the beads that depend on this one, by ID.
	Blocks []state.BeadID
}

// Ready reports whether the bead could be slung now.
func (w *WorkItem) Ready(now state.Time) bool { return w.startable() && !w.Bead.Cooling(now) }

func (w *WorkItem) startable() bool { return w.Bead.Status == bead.Open && len(w.Waits) == 0 }

// Matches reports whether the bead contains each of some words in lower case.
func (w *WorkItem) Matches(words []string) bool {
	b := w.Bead
	text := strings.ToLower(strings.Join(append([]string{string(b.ID), b.Title, string(b.Status), string(b.Assignee), string(b.ConvoyID), b.Type}, b.Labels...), " "))
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// Work is every bead, by ID.
type Work []*WorkItem

// Find returns a bead, or nil.
func (w Work) Find(id state.BeadID) *WorkItem {
	if at, found := w.search(id); found {
		return w[at]
	}
	return nil
}

func (w Work) search(id state.BeadID) (int, bool) {
	return slices.BinarySearchFunc(w, id, func(i *WorkItem, id state.BeadID) int { return cmp.Compare(i.Bead.ID, id) })
}

// workIndex holds the beads, indexed so that an update costs as much as its change.
type workIndex struct {
	items map[state.BeadID]*WorkItem
	// beads are the beads of items, for the functions of package bead.
	beads map[state.BeadID]*bead.Bead
	// blocks are the beads that depend on each bead, by ID.
	blocks map[state.BeadID][]state.BeadID
	counts map[bead.Status]int
	// blocked are the beads that wait for a person; startable those whose dependencies have
	// landed, and cooling those of them that may have to wait for their time.
	blocked, startable, cooling map[state.BeadID]bool
	convoys                     convoyIndex
	// touched are the beads whose items have changed since the last call of apply.
	touched map[state.BeadID]bool
}

func newWorkIndex() workIndex {
	return workIndex{items: map[state.BeadID]*WorkItem{}, beads: map[state.BeadID]*bead.Bead{}, blocks: map[state.BeadID][]state.BeadID{},
		counts: map[bead.Status]int{}, blocked: map[state.BeadID]bool{}, startable: map[state.BeadID]bool{}, cooling: map[state.BeadID]bool{}, touched: map[state.BeadID]bool{},
		convoys: convoyIndex{of: map[state.BeadID][]state.ConvoyID{}, landed: map[state.ConvoyID]int{}}}
}

// put replaces beads by their present version, nil if they are gone.
func (w *workIndex) put(now map[state.BeadID]*bead.Bead) {
	affected := map[state.BeadID]bool{}
	for id, b := range now {
		old := w.beads[id]
		w.convoys.count(id, landed(b)-landed(old))
		if old != nil {
			w.counts[old.Status]--
			w.link(old, false, affected)
			delete(w.beads, id)
		}
		if b != nil {
			w.counts[b.Status]++
			w.link(b, true, affected)
			w.beads[id] = b
		}
		affected[id] = true
		for _, other := range w.blocks[id] {
			affected[other] = true
		}
	}
	for id := range affected {
		w.remake(id)
	}
}

func landed(b *bead.Bead) int {
	if b != nil && b.Status.Landed() {
		return 1
	}
	return 0
}

// link adds the edges of a bead to blocks, or removes them.
func (w *workIndex) link(b *bead.Bead, add bool, affected map[state.BeadID]bool) {
	for _, dep := range b.BlockedBy {
		affected[dep] = true
		list := slices.Clone(w.blocks[dep]) // items share the old one
		at, found := slices.BinarySearch(list, b.ID)
		switch {
		case add && !found:
			list = slices.Insert(list, at, b.ID)
		case !add && found:
			list = slices.Delete(list, at, at+1)
		}
		w.blocks[dep] = list
		if len(list) == 0 {
			delete(w.blocks, dep)
		}
	}
}

// remake makes a new item of a bead.
func (w *workIndex) remake(id state.BeadID) {
	for _, set := range []map[state.BeadID]bool{w.blocked, w.startable, w.cooling} {
		delete(set, id)
	}
	w.touched[id] = true
	b := w.beads[id]
	if b == nil {
		delete(w.items, id)
		return
	}
	item := &WorkItem{Bead: b, Waits: bead.Unmet(b, w.beads), Blocks: w.blocks[id]}
	w.items[id] = item
	if b.Status == bead.Blocked {
		w.blocked[id] = true
	}
	if item.startable() {
		w.startable[id] = true
		if b.ReadyAt != nil {
			w.cooling[id] = true
		}
	}
}

// ready counts the beads that could be slung now.
func (w *workIndex) ready(now state.Time) int {
	n := len(w.startable)
	for id := range w.cooling {
		if w.items[id].Bead.Cooling(now) {
			n--
		}
	}
	return n
}

// all returns every item, by ID.
func (w *workIndex) all() Work {
	all := make(Work, 0, len(w.items))
	for _, id := range slices.Sorted(maps.Keys(w.items)) {
		all = append(all, w.items[id])
	}
	return all
}

// apply returns the work as it is now, given the result of the last call.
func (w *workIndex) apply(before Work) Work {
	touched := slices.Sorted(maps.Keys(w.touched))
	w.touched = map[state.BeadID]bool{}
	if len(touched) > len(before)/8 {
		return w.all()
	}
	after := slices.Clone(before)
	for _, id := range touched {
		at, found := after.search(id)
		switch item := w.items[id]; {
		case item != nil && found:
			after[at] = item
		case item != nil:
			after = slices.Insert(after, at, item)
		case found:
			after = slices.Delete(after, at, at+1)
		}
	}
	return after
}

// convoyIndex counts the landed beads of each convoy.
type convoyIndex struct {
	of     map[state.BeadID][]state.ConvoyID
	landed map[state.ConvoyID]int
}

// count adds to the landed beads of a bead's convoys.
func (c *convoyIndex) count(id state.BeadID, landed int) {
	if landed == 0 {
		return
	}
	for _, of := range c.of[id] {
		c.landed[of] += landed
	}
}

// put replaces all convoys.
func (c *convoyIndex) put(all map[string]*convoy.Convoy, beads map[state.BeadID]*bead.Bead) {
	c.of, c.landed = map[state.BeadID][]state.ConvoyID{}, map[state.ConvoyID]int{}
	for _, v := range all {
		c.landed[v.ID] = v.Landed(beads)
		for _, id := range v.BeadIDs {
			c.of[id] = append(c.of[id], v.ID)
		}
	}
}
