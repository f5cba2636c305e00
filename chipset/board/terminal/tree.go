package terminal

import (
	"cmp"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
)

// workRow is a line of the work: a convoy, or a bead below what it waits for. A search also
// finds agents, messages and events. One of the pointers is set.
type workRow struct {
	convoy *view.ConvoyStatus
	item   *view.WorkItem
	agent  *view.AgentStatus
	letter *mail.Entry
	event  *event.Event
	depth  int
	// rail is what a graph draws before the bead, which stands where it has "*".
	rail string
}

func (r *workRow) key() string {
	switch {
	case r.convoy != nil:
		return string(r.convoy.ID)
	case r.agent != nil:
		return string(r.agent.ID)
	case r.letter != nil:
		return string(r.letter.Name)
	case r.event != nil:
		return "event " + r.event.Time.Stamp() + " " + r.event.Type
	}
	return string(r.item.Bead.ID)
}

// sorting says which beads a tree shows.
type sorting struct {
	// filter is what a title or an ID must hold; all shows finished beads, too.
	filter string
	all    bool
	// graph shows the work with all that waits for what, not as a tree.
	graph bool
}

// tree puts the beads of a view into lines: each below the first of its dependencies,
// those of a convoy below the convoy, what is worked on first; or as a graph. hidden counts
// the finished beads that are not shown.
func tree(v *view.View, s sorting) (lines []workRow, hidden int) {
	g := grower{view: v, sorting: s, done: make(map[state.BeadID]bool, len(v.Work)), convoys: map[state.ConvoyID][]*view.WorkItem{}}
	var shown, roots []*view.WorkItem
	for _, item := range v.Work {
		if !s.all && item.Bead.Status.Finished() {
			hidden++
			continue
		}
		shown = append(shown, item)
		if !g.below(item) {
			roots = append(roots, item)
		}
	}
	if s.graph {
		return graphRows(shown), hidden
	}
	g.plant(roots)
	// What depends on itself has no root.
	for _, item := range v.Work {
		if (s.all || !item.Bead.Status.Finished()) && !g.done[item.Bead.ID] {
			g.grow(item, 0)
		}
	}
	return g.lines, hidden
}

// grower makes a tree.
type grower struct {
	view *view.View
	sorting
	lines   []workRow
	done    map[state.BeadID]bool
	convoys map[state.ConvoyID][]*view.WorkItem
}

// below reports whether a bead stands below another one.
func (g *grower) below(item *view.WorkItem) bool {
	parent := g.parent(item)
	return parent != nil && parent.Bead.ConvoyID == item.Bead.ConvoyID
}

// parent is the first dependency that is shown.
func (g *grower) parent(item *view.WorkItem) *view.WorkItem {
	for _, id := range item.Bead.BlockedBy {
		if p := g.view.Work.Find(id); p != nil && (g.all || !p.Bead.Status.Finished()) {
			return p
		}
	}
	return nil
}

// plant grows the convoys and then the beads of none.
func (g *grower) plant(roots []*view.WorkItem) {
	slices.SortStableFunc(roots, order)
	var loose []*view.WorkItem
	for _, item := range roots {
		if id := item.Bead.ConvoyID; id != "" && slices.ContainsFunc(g.view.Convoys, func(c view.ConvoyStatus) bool { return c.ID == id }) {
			g.convoys[id] = append(g.convoys[id], item)
		} else {
			loose = append(loose, item)
		}
	}
	for i := range g.view.Convoys {
		c := &g.view.Convoys[i]
		if len(g.convoys[c.ID]) == 0 && !g.all {
			continue
		}
		g.lines = append(g.lines, workRow{convoy: c})
		for _, item := range g.convoys[c.ID] {
			g.grow(item, 1)
		}
	}
	for _, item := range loose {
		g.grow(item, 0)
	}
}

func (g *grower) grow(item *view.WorkItem, depth int) {
	if g.done[item.Bead.ID] {
		return
	}
	g.done[item.Bead.ID] = true
	g.lines = append(g.lines, workRow{item: item, depth: depth})
	var below []*view.WorkItem
	for _, id := range item.Blocks {
		child := g.view.Work.Find(id)
		if child != nil && (g.all || !child.Bead.Status.Finished()) && child.Bead.ConvoyID == item.Bead.ConvoyID && g.parent(child) == item {
			below = append(below, child)
		}
	}
	slices.SortStableFunc(below, order)
	for _, child := range below {
		g.grow(child, depth+1)
	}
}

// order puts what is worked on first, then what waits for the person, what is ready,
// what waits, and what is over.
func order(a, b *view.WorkItem) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Bead.Priority.Rank(), b.Bead.Priority.Rank()),
		a.Bead.CreatedAt.Compare(b.Bead.CreatedAt.Time), cmp.Compare(a.Bead.ID, b.Bead.ID))
}

func rank(item *view.WorkItem) int {
	switch item.Bead.Status {
	case bead.InProgress:
		return 0
	case bead.Hooked:
		return 1
	case bead.Blocked:
		return 2
	case bead.Failed:
		return 3
	case bead.Done:
		return 4
	case bead.Open:
		if len(item.Waits) == 0 {
			return 5
		}
		return 6
	case bead.Merged, bead.Closed:
		return 7
	case bead.Cancelled:
		return 8
	}
	return 9
}
