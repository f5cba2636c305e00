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
	// empty is shown if there are none.
	empty string
}

// list is a list of rows with a selection, which stays on its row while others come and go.
type list struct {
	rows
	cursor, offset int
}

// set replaces the rows.
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

// show moves the offset so that the cursor is visible.
func (l *list) show(height int) {
	l.offset = max(0, min(l.offset, l.cursor, len(l.keys)-height))
	if l.cursor >= l.offset+height {
		l.offset = l.cursor - height + 1
	}
}

// lines draws the visible rows.
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

// inner returns the size without the frame.
func (r rect) inner() (w, h int) { return max(0, r.w-2), max(0, r.h-2) }

// frame draws a pane: a border with a title, and lines inside. note is at the right of the
// upper border, foot at the right of the lower one.
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

// position is the position of the cursor if not all rows are visible, or "".
func (l *list) position(height int) string {
	if len(l.keys) <= height {
		return ""
	}
	return fmt.Sprintf("%d of %d", l.cursor+1, len(l.keys))
}
