package terminal

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/gastown-chipset/chipset/chipset/view/screen"
)

// cell is a piece of a row.
type cell struct {
	text  string
	style lipgloss.Style
	// width is that of the column; 0, at most once in a row, takes the rest of the line.
	width int
	// right aligns a number.
	right bool
}

// clean makes text from agents safe, and as wide on every terminal: it removes the characters
// that join emoji, because some terminals draw the parts one after the other.
func clean(text string) string {
	const joiner, emoji = '\u200d', '\ufe0f'
	return strings.Map(func(r rune) rune {
		if r == joiner || r == emoji {
			return -1
		}
		return r
	}, screen.Clean(text))
}

// fit cleans, cuts and pads text to exactly so many columns.
func fit(text string, width int, right bool) string {
	if width <= 0 {
		return ""
	}
	text = clean(text)
	used := ansi.StringWidth(text)
	if used > width {
		text = ansi.Truncate(text, width, "…")
		used = ansi.StringWidth(text)
	}
	pad := strings.Repeat(" ", max(0, width-used))
	if right {
		return pad + text
	}
	return text + pad
}

// line draws cells with a blank between them, exactly width columns wide. over, unless nil,
// replaces all their styles.
func line(width int, over *lipgloss.Style, cells ...cell) string {
	fixed := max(0, len(cells)-1)
	for _, c := range cells {
		fixed += c.width
	}
	var out strings.Builder
	left := width
	for i, c := range cells {
		w := c.width
		if w == 0 {
			w = max(0, width-fixed)
		}
		if i > 0 && left > 0 {
			left--
			w = min(w, left)
			out.WriteString(paint(over, lipgloss.NewStyle(), " "))
		}
		w = min(w, left)
		left -= w
		out.WriteString(paint(over, c.style, fit(c.text, w, c.right)))
	}
	out.WriteString(paint(over, lipgloss.NewStyle(), strings.Repeat(" ", max(0, left))))
	return out.String()
}

func paint(over *lipgloss.Style, own lipgloss.Style, text string) string {
	if text == "" {
		return ""
	}
	if over != nil {
		return over.Render(text)
	}
	return own.Render(text)
}

// styled is a line of the detail pane before it is wrapped.
type styled struct {
	text  string
	style lipgloss.Style
	// indent is how far its further lines begin to the right.
	indent int
}

// wrap cleans lines and breaks them at a width.
func wrap(lines []styled, width int) []styled {
	var out []styled
	for _, l := range lines {
		room := max(1, width-l.indent)
		text := clean(strings.ReplaceAll(l.text, "\t", "    "))
		if ansi.StringWidth(text) <= width {
			out = append(out, styled{text: text, style: l.style})
			continue
		}
		for i, part := range strings.Split(ansi.Wrap(text, room, ""), "\n") {
			if i > 0 {
				part = strings.Repeat(" ", l.indent) + part
			}
			out = append(out, styled{text: part, style: l.style})
		}
	}
	return out
}

// overlay draws a box over the middle of a frame.
func overlay(frame, box []string, width int) []string {
	boxWidth := 0
	for _, l := range box {
		boxWidth = max(boxWidth, ansi.StringWidth(l))
	}
	x, y := max(0, (width-boxWidth)/2), max(0, (len(frame)-len(box))/2)
	for i, l := range box {
		if y+i >= len(frame) {
			break
		}
		under := frame[y+i]
		left, right := ansi.Cut(under, 0, x), ansi.Cut(under, x+boxWidth, width)
		// A cut through a wide character leaves a column empty.
		frame[y+i] = left + strings.Repeat(" ", max(0, x-ansi.StringWidth(left))) + l + strings.Repeat(" ", max(0, width-x-boxWidth-ansi.StringWidth(right))) + right
	}
	return frame
}
