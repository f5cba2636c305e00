package terminal

import (
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/state"
)

// railsShown is how many rails of a graph are drawn.
const railsShown = 12

// graphRows returns one row for each bead, after all beads that it waits for, with rails
// that lead from a bead to those that wait for it.
func graphRows(shown []*view.WorkItem) []workRow {
	r := rails{at: map[state.BeadID]int{}}
	rows := make([]workRow, 0, len(shown))
	for _, o := range inOrder(shown) {
		rows = append(rows, workRow{item: o.item, rail: r.row(o.item.Bead.ID, o.next)})
	}
	return rows
}

// ordered is a bead in the order of a graph. next are the beads that wait for it and come
// after it: all of those shown, except in a cycle.
type ordered struct {
	item *view.WorkItem
	next []state.BeadID
}

// inOrder sorts beads so that each comes after those that it waits for. Connected beads
// stay together.
func inOrder(shown []*view.WorkItem) []ordered {
	items, open := make(map[state.BeadID]*view.WorkItem, len(shown)), make(map[*view.WorkItem]int, len(shown))
	for _, item := range shown {
		items[item.Bead.ID] = item
	}
	for _, item := range shown {
		for _, id := range item.Blocks {
			if next := items[id]; next != nil {
				open[next]++
			}
		}
	}
	out := make([]ordered, 0, len(shown))
	done := make(map[*view.WorkItem]bool, len(shown))
	var stack []*view.WorkItem
	push := func(some []*view.WorkItem) {
		slices.SortStableFunc(some, func(a, b *view.WorkItem) int { return order(b, a) })
		stack = append(stack, some...)
	}
	drain := func() {
		for len(stack) > 0 {
			item := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if done[item] {
				continue
			}
			done[item] = true
			o := ordered{item: item}
			var free []*view.WorkItem
			for _, id := range item.Blocks {
				next := items[id]
				if next == nil || done[next] {
					continue
				}
				o.next = append(o.next, id)
				if open[next]--; open[next] == 0 {
					free = append(free, next)
				}
			}
			out = append(out, o)
			push(free)
		}
	}
	push(slices.DeleteFunc(slices.Clone(shown), func(i *view.WorkItem) bool { return open[i] > 0 }))
	drain()
	for _, item := range shown { // those in cycles
		push([]*view.WorkItem{item})
		drain()
	}
	return out
}

// rails are the lines of a graph. Each leads to one bead below.
type rails struct {
	to []state.BeadID // "" is free
	at map[state.BeadID]int
}

// free returns a rail without a target.
func (r *rails) free() int {
	if i := slices.Index(r.to, ""); i >= 0 {
		return i
	}
	r.to = append(r.to, "")
	return len(r.to) - 1
}

// row draws the rails next to a bead, and starts those that lead to the beads that wait for
// it. "*" marks the place of the bead, at the end of its rail.
func (r *rails) row(id state.BeadID, next []state.BeadID) string {
	col, reached := r.at[id]
	if !reached {
		col = r.free()
	}
	delete(r.at, id)
	r.to[col] = ""
	passing := slices.Clone(r.to)
	ends := map[int]rune{}
	for _, to := range next {
		at, exists := r.at[to]
		switch {
		case exists && at > col:
			ends[at] = '┤'
		case exists:
			ends[at] = '├'
		case r.to[col] == "":
			at = col
		default:
			at = r.free()
			ends[at] = '╮'
			if at < col {
				ends[at] = '╭'
			}
		}
		r.to[at], r.at[to] = to, at
	}
	low, high := col, col
	for at := range ends {
		low, high = min(low, at), max(high, at)
	}
	text := drawRails(passing, ends, col, low, high)
	for len(r.to) > 0 && r.to[len(r.to)-1] == "" {
		r.to = r.to[:len(r.to)-1]
	}
	return text
}

// drawRails draws one line: passing rails, the bead, and its connection to the ends.
func drawRails(passing []state.BeadID, ends map[int]rune, col, low, high int) string {
	var out strings.Builder
	for i := range min(railsShown, max(len(passing), high+1)) {
		between := i > low && i < high
		c := ' '
		switch {
		case i == col:
			c = '*'
		case ends[i] != 0:
			c = ends[i]
		case i < len(passing) && passing[i] != "" && between:
			c = '┼'
		case i < len(passing) && passing[i] != "":
			c = '│'
		case between:
			c = '─'
		}
		out.WriteRune(c)
		if i >= low && i < high {
			out.WriteRune('─')
		} else {
			out.WriteRune(' ')
		}
	}
	if col >= railsShown {
		return strings.TrimRight(out.String(), " ─") + "… *"
	}
	return strings.TrimRight(out.String(), " ")
}
