package terminal

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// paneID names a pane.
type paneID int

const (
	needsPane paneID = iota
	agentsPane
	workPane
	queuePane
	detailPane
	paneCount
)

func (p paneID) String() string {
	return []string{"Needs you", "Agents", "Work", "Queue", "Detail"}[p]
}

// rows are the lines of a list, drawn one at a time.
type rows struct {
	keys []string
	draw func(i, width int) []cell
	// empty is said where there are none.
	empty string
}

// list is the state of a list: its rows, and what is selected. The selection follows its
// row when others come and go.
type list struct {
	rows
	cursor, offset int
}

// set takes over other rows.
func (l *list) set(r rows) {
	key := l.key()
	l.rows = r
	if at := slices.Index(r.keys, key); at >= 0 && key != "" {
		l.offset += at - l.cursor
		l.cursor = at
	}
	l.move(0)
}

// key is that of the selected row, or "".
func (l *list) key() string {
	if l.cursor < 0 || l.cursor >= len(l.keys) {
		return ""
	}
	return l.keys[l.cursor]
}

func (l *list) move(by int) { l.cursor = max(0, min(l.cursor+by, len(l.keys)-1)) }

// show moves the offset so that the cursor is among so many lines.
func (l *list) show(height int) {
	l.offset = max(0, min(l.offset, l.cursor, len(l.keys)-height))
	if l.cursor >= l.offset+height {
		l.offset = l.cursor - height + 1
	}
}

// lines draws what is visible.
func (l *list) lines(t *theme, width, height int, focused bool) []string {
	l.show(height)
	if len(l.keys) == 0 {
		return []string{line(width, nil, cell{text: "  " + l.empty, style: t.dim})}
	}
	var out []string
	for i := l.offset; i < min(l.offset+height, len(l.keys)); i++ {
		mark, over := " ", (*lipgloss.Style)(nil)
		if i == l.cursor {
			mark, over = "▸", &t.there
			if focused {
				over = &t.selected
			}
		}
		out = append(out, line(width, over, append([]cell{{text: mark, width: 1, style: t.key}}, l.draw(i, width-2)...)...))
	}
	return out
}

// rect is where a pane is drawn, its frame included.
type rect struct{ x, y, w, h int }

func (r rect) holds(x, y int) bool { return x >= r.x && x < r.x+r.w && y >= r.y && y < r.y+r.h }

// inner is the room inside the frame.
func (r rect) inner() (w, h int) { return max(0, r.w-2), max(0, r.h-2) }

// frame draws a pane: a border with a title, and lines inside. note stands at the right
// of the upper border, foot at that of the lower one.
func frame(border, title lipgloss.Style, r rect, name, note, foot string, lines []string) []string {
	w, h := r.inner()
	rule := func(left, mid, right string) string {
		used := ansi.StringWidth(mid)
		return border.Render(left) + mid + border.Render(strings.Repeat("─", max(0, w-used))+right)
	}
	head := ""
	if room := w - 2; room > 0 {
		head = border.Render("─") + title.Render(ansi.Truncate(" "+name+" ", room, "…"))
		if used := ansi.StringWidth(head); note != "" && used+ansi.StringWidth(note)+3 <= w {
			head += border.Render(strings.Repeat("─", w-used-ansi.StringWidth(note)-3)) + " " + note + " "
		}
	}
	out := []string{rule("╭", head, "╮")}
	for i := range h {
		inside := strings.Repeat(" ", w)
		if i < len(lines) {
			inside = lines[i]
		}
		out = append(out, border.Render("│")+inside+border.Render("│"))
	}
	low := ""
	if foot != "" && ansi.StringWidth(foot)+3 <= w {
		low = border.Render(strings.Repeat("─", w-ansi.StringWidth(foot)-3)) + border.Render(" "+foot+" ")
	}
	return append(out, rule("╰", low, "╯"))
}

// position says where a list stands when not all of it is visible.
func (l *list) position(height int) string {
	if len(l.keys) <= height {
		return ""
	}
	return fmt.Sprintf("%d of %d", l.cursor+1, len(l.keys))
}
