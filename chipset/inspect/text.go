package inspect

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Text says how a screen is written.
type Text struct {
	// Width is where lines are cut; 0 does not cut.
	Width int
	// Colour allows escape sequences.
	Colour bool
}

// Styles of what a person should see first.
const (
	plain  = ""
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// screen collects a text. Everything put on it is cleaned of what a terminal
// would obey, because it comes from files and agents.
type screen struct {
	Text
	out strings.Builder
}

func (s *screen) style(code, text string) string {
	if !s.Colour || code == plain || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// cell is one column of a line.
type cell struct {
	text  string
	style string
}

// table writes rows with aligned columns below an indent. The last column is
// cut at the width.
func (s *screen) table(indent string, rows [][]cell) {
	var widths []int
	for _, row := range rows {
		for i := range row {
			row[i].text = oneLine(row[i].text)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], length(row[i].text))
		}
	}
	for _, row := range rows {
		s.row(indent, row, widths)
	}
}

func (s *screen) row(indent string, row []cell, widths []int) {
	last := len(row) - 1
	for last >= 0 && row[last].text == "" {
		last--
	}
	var line strings.Builder
	line.WriteString(indent)
	used := length(indent)
	for i := 0; i <= last; i++ {
		text := s.cut(row[i].text, used)
		line.WriteString(s.style(row[i].style, text))
		used += length(text)
		if i < last {
			gap := widths[i] - length(row[i].text) + 2
			line.WriteString(strings.Repeat(" ", gap))
			used += gap
		}
	}
	s.out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// cut shortens text so that a line that has used that much already fits.
func (s *screen) cut(text string, used int) string {
	room := s.Width - used
	if s.Width <= 0 || length(text) <= room {
		return text
	}
	if room < 1 {
		return ""
	}
	return string([]rune(text)[:room-1]) + "…"
}

// heading begins a section.
func (s *screen) heading(title, rest string) {
	s.out.WriteString("\n" + s.style(bold, title))
	if rest != "" {
		s.out.WriteString("  " + s.cut(oneLine(rest), length(title)+2))
	}
	s.out.WriteString("\n")
}

// wrap writes a paragraph, broken at the width.
func (s *screen) wrap(indent, text, style string) {
	line, used := "", length(indent)
	flush := func() {
		if line != "" {
			s.out.WriteString(indent + s.style(style, line) + "\n")
		}
		line, used = "", length(indent)
	}
	for word := range strings.FieldsSeq(oneLine(text)) {
		if s.Width > 0 && line != "" && used+1+length(word) > s.Width {
			flush()
		}
		if line != "" {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+length(word)
	}
	flush()
}

func (s *screen) writeTo(w io.Writer) error {
	_, err := io.WriteString(w, s.out.String())
	return err
}

func length(s string) int { return utf8.RuneCountInString(s) }

// oneLine makes text that a terminal shows and does not obey: no control
// characters, no turned writing direction, no second line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, s)
}

// age says a duration the way people do: 5s, 12m, 3h 20m, 2d 4h.
func age(d time.Duration) string {
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

// bar draws how much of a whole is done.
func bar(done, all, width int) string {
	if all <= 0 {
		return "[" + strings.Repeat("-", width) + "]"
	}
	full := width * min(done, all) / all
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", width-full) + "]"
}
