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

// workRow is a line of the work: a convoy, or a bead below the one that it waits for. A
// search also finds agents, messages and events. One of the pointers is set.
type workRow struct {
	convoy *view.ConvoyStatus
	item   *view.WorkItem
	agent  *view.AgentStatus
	letter *mail.Entry
	event  *event.Event
	depth  int
	// rail is what a graph draws before the bead; "*" is the place of the bead's mark.
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

// sorting says which beads are shown, and how.
type sorting struct {
	// filter is the text of a search; all shows finished beads, too.
	filter string
	all    bool
	// graph shows all dependencies, instead of a tree.
	graph bool
}

// tree returns the lines of the beads of a view: each below the first of its dependencies,
// those of a convoy below the convoy, those in progress first; or as a graph. hidden counts
// the finished beads that are not shown.
func tree(v *view.View, s sorting) (lines []workRow, hidden int) {
	shown := make([]*view.WorkItem, 0, len(v.Work))
	for _, item := range v.Work {
		if s.all || !item.Bead.Status.Finished() {
			shown = append(shown, item)
		}
	}
	hidden = len(v.Work) - len(shown)
	if s.graph {
		return graphRows(shown), hidden
	}
	g := grower{view: v, sorting: s, lines: make([]workRow, 0, len(shown)+len(v.Convoys)),
		below: map[*view.WorkItem][]*view.WorkItem{}, done: make(map[*view.WorkItem]bool, len(shown))}
	var roots []*view.WorkItem
	for _, item := range shown {
		if parent := g.parent(item); parent != nil {
			g.below[parent] = append(g.below[parent], item)
		} else {
			roots = append(roots, item)
		}
	}
	g.plant(roots)
	// A cycle has no root.
	for _, item := range shown {
		g.grow(item, 0)
	}
	return g.lines, hidden
}

// grower makes a tree.
type grower struct {
	view *view.View
	sorting
	lines []workRow
	// below are the beads shown below each one.
	below map[*view.WorkItem][]*view.WorkItem
	done  map[*view.WorkItem]bool
}

// parent returns the bead below which another one is shown: its first dependency that is
// shown, if both are in the same convoy, or nil.
func (g *grower) parent(item *view.WorkItem) *view.WorkItem {
	for _, id := range item.Bead.BlockedBy {
		if p := g.view.Work.Find(id); p != nil && (g.all || !p.Bead.Status.Finished()) {
			if p.Bead.ConvoyID != item.Bead.ConvoyID {
				return nil
			}
			return p
		}
	}
	return nil
}

// plant adds the convoys, and then the beads without one.
func (g *grower) plant(roots []*view.WorkItem) {
	slices.SortStableFunc(roots, order)
	convoys := make(map[state.ConvoyID][]*view.WorkItem, len(g.view.Convoys))
	for i := range g.view.Convoys {
		convoys[g.view.Convoys[i].ID] = nil
	}
	var loose []*view.WorkItem
	for _, item := range roots {
		if of, known := convoys[item.Bead.ConvoyID]; known {
			convoys[item.Bead.ConvoyID] = append(of, item)
		} else {
			loose = append(loose, item)
		}
	}
	for i := range g.view.Convoys {
		c := &g.view.Convoys[i]
		if len(convoys[c.ID]) == 0 && !g.all {
			continue
		}
		g.lines = append(g.lines, workRow{convoy: c})
		for _, item := range convoys[c.ID] {
			g.grow(item, 1)
		}
	}
	for _, item := range loose {
		g.grow(item, 0)
	}
}

func (g *grower) grow(item *view.WorkItem, depth int) {
	if g.done[item] {
		return
	}
	g.done[item] = true
	g.lines = append(g.lines, workRow{item: item, depth: depth})
	below := g.below[item]
	slices.SortStableFunc(below, order)
	for _, child := range below {
		g.grow(child, depth+1)
	}
}

// order sorts beads: those in progress, those that wait for the person, those in the queue,
// the ready ones, those that wait for others, and the finished ones.
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
