package terminal

// wide is the least width at which the detail is next to the lists.
const wide = 120

// layout returns the place of each pane; a hidden pane has no height. The first line of
// the screen is for the head, the last one for the keys.
func layout(width, height int, heights [paneCount]int, focus paneID, needs bool) [paneCount]rect {
	var at [paneCount]rect
	room := max(0, height-2)
	if width < wide && focus == detailPane {
		if needs { // they are never hidden
			h := min(heights[needsPane]+2, 5, room/3)
			at[needsPane] = rect{0, 1, width, h}
			at[detailPane] = rect{0, 1 + h, width, room - h}
		} else {
			at[detailPane] = rect{0, 1, width, room}
		}
		return at
	}
	left, shown := width, []paneID{agentsPane, workPane, queuePane}
	if needs {
		shown = append([]paneID{needsPane}, shown...)
	}
	if width >= wide {
		left = width * 46 / 100
		at[detailPane] = rect{left, 1, width - left, room}
	}
	y := 1
	for i, h := range share(room, shown, heights, focus) {
		at[shown[i]] = rect{0, y, left, h}
		y += h
	}
	return at
}

// share divides the height among panes, one below the other: each gets what it wants as
// far as there is room, first the needs, then the focused pane; the work gets the rest.
func share(room int, shown []paneID, wants [paneCount]int, focus paneID) []int {
	const least = 3
	heights := make([]int, len(shown))
	for i := range shown {
		heights[i] = least
		room -= least
	}
	grow := func(p paneID, most int) {
		for i, s := range shown {
			if s == p {
				by := max(0, min(wants[p]+2, most)-heights[i])
				by = min(by, max(0, room))
				heights[i] += by
				room -= by
			}
		}
	}
	grow(needsPane, 7)
	grow(focus, least+room*2/3)
	grow(agentsPane, least+max(4, room/3))
	grow(queuePane, least+max(2, room/4))
	grow(workPane, least+room)
	grow(agentsPane, least+room)
	grow(needsPane, least+room)
	for i, s := range shown {
		if s == workPane {
			heights[i] += max(0, room)
		}
	}
	return heights
}
