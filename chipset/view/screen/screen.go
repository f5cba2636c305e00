// Package screen writes lines and tables for a terminal. It removes control characters from
// all text, because text comes from files and agents.
package screen

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Options say how to write a screen. The zero value is plain text.
type Options struct {
	// Width is the most columns of a line; 0 is no limit.
	Width int
	// Colour allows escape sequences.
	Colour bool
}

// Cell is a piece of text with its style.
type Cell struct{ text, style string }

// Plain is text without a style.
func Plain(text string) Cell { return Cell{text, ""} }

// Bold is a name or a title.
func Bold(text string) Cell { return Cell{text, "1"} }

// Dim is text that matters less.
func Dim(text string) Cell { return Cell{text, "2"} }

// Red is for what needs a person.
func Red(text string) Cell { return Cell{text, "31"} }

// Green is for what is fine.
func Green(text string) Cell { return Cell{text, "32"} }

// Yellow is for what a person should look at.
func Yellow(text string) Cell { return Cell{text, "33"} }

// Screen collects text.
type Screen struct {
	opts Options
	out  strings.Builder
}

// New is an empty screen.
func New(opts Options) *Screen { return &Screen{opts: opts} }

// Table writes rows with aligned columns below an indent. Where they are wider than the screen, the
// widest columns are cut.
func (s *Screen) Table(indent string, rows [][]Cell) {
	var widths []int
	for _, row := range rows {
		for i := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], length(Clean(row[i].text)))
		}
	}
	s.fit(widths, length(indent))
	for _, row := range rows {
		cells := make([]Cell, len(row))
		for i, c := range row {
			cells[i] = Cell{ansi.Truncate(Clean(c.text), widths[i], "…"), c.style}
		}
		s.Row(indent, cells, widths)
	}
}

// leastColumn is the width below which no column is cut.
const leastColumn = 8

// fit narrows the widest columns until a line fits the screen.
func (s *Screen) fit(widths []int, indent int) {
	total := indent + gap*(len(widths)-1)
	for _, w := range widths {
		total += w
	}
	for ; s.opts.Width > 0 && total > s.opts.Width; total-- {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if len(widths) == 0 || widths[widest] <= leastColumn {
			return // Row cuts the ends of the lines
		}
		widths[widest]--
	}
}

// gap is the space between two columns.
const gap = 2

// Row writes one line whose columns have at least the given widths.
func (s *Screen) Row(indent string, row []Cell, widths []int) {
	last := len(row) - 1
	for last >= 0 && row[last].text == "" {
		last--
	}
	var line strings.Builder
	line.WriteString(indent)
	used := length(indent)
	for i := 0; i <= last; i++ {
		whole := Clean(row[i].text)
		text := s.cut(whole, used)
		line.WriteString(s.paint(Cell{text, row[i].style}))
		used += length(text)
		if i < last {
			space := gap
			if i < len(widths) {
				space += max(0, widths[i]-length(whole))
			}
			line.WriteString(strings.Repeat(" ", space))
			used += space
		}
	}
	s.out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// Heading writes an empty line and the first line of a section.
func (s *Screen) Heading(title, rest string) {
	s.out.WriteString("\n" + s.paint(Bold(title)))
	if rest != "" {
		s.out.WriteString("  " + s.cut(Clean(rest), length(title)+2))
	}
	s.out.WriteString("\n")
}

// Wrap writes a paragraph, broken at the width.
func (s *Screen) Wrap(indent string, text Cell) {
	line, used := "", length(indent)
	flush := func() {
		if line != "" {
			s.out.WriteString(indent + s.paint(Cell{line, text.style}) + "\n")
		}
		line, used = "", length(indent)
	}
	for word := range strings.FieldsSeq(Clean(text.text)) {
		if s.opts.Width > 0 && line != "" && used+1+length(word) > s.opts.Width {
			flush()
		}
		if line != "" {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+length(word)
	}
	flush()
}

// Blank writes an empty line.
func (s *Screen) Blank() { s.out.WriteString("\n") }

// String returns the collected text.
func (s *Screen) String() string { return s.out.String() }

// Flush writes the collected text.
func (s *Screen) Flush(w io.Writer) error {
	_, err := io.WriteString(w, s.out.String())
	return err
}

func (s *Screen) paint(c Cell) string {
	if !s.opts.Colour || c.style == "" || c.text == "" {
		return c.text
	}
	return "\x1b[" + c.style + "m" + c.text + "\x1b[0m"
}

// cut shortens text so that it fits behind so many used columns of a line.
func (s *Screen) cut(text string, used int) string {
	room := s.opts.Width - used
	if s.opts.Width <= 0 || length(text) <= room {
		return text
	}
	if room < 1 {
		return ""
	}
	return ansi.Truncate(text, room, "…")
}

// length is the width of a text in columns: a Chinese character has two.
func length(s string) int { return ansi.StringWidth(s) }

// OfStatus is the status of a bead or a merge request in a colour: red if a person or the mayor has to
// act, green if it landed, dim if it is over.
func OfStatus(status string) Cell {
	word, _, _ := strings.Cut(status, ":")
	switch word {
	case "blocked", "failed", "conflicted":
		return Red(status)
	case "merged":
		return Green(status)
	case "closed", "cancelled", "superseded", "dropped":
		return Dim(status)
	}
	return Plain(status)
}

// Clean makes text safe for one line of a terminal: it removes control characters and
// changes of the writing direction, and turns line breaks into spaces.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		return Printable(r)
	}, s)
}

// Printable returns r, or -1 if r is a control character or changes the writing direction.
// It is for strings.Map.
func Printable(r rune) rune {
	if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
		return -1
	}
	return r
}

// Age returns a duration as people write it: 5s, 12m, 3h 20m, 2d 4h.
func Age(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < 0:
		return "in the future"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh %dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd %dh", int(d.Hours())/24, int(d.Hours())%24)
}

// Bar draws a progress bar.
func Bar(done, all, width int) string {
	if all <= 0 {
		return "[" + strings.Repeat("-", width) + "]"
	}
	full := width * min(done, all) / all
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", width-full) + "]"
}
