package terminal

import (
	"image/color"

	"charm.land/lipgloss/v2"

	"github.com/gastown-chipset/chipset/chipset/view"
)

// theme has one style for each meaning. It uses the sixteen colours that every terminal
// has, in the person's own shades; without colours bold, faint and reverse remain.
type theme struct {
	plain, dim, bold, title, key        lipgloss.Style
	good, busy, warn, bad, moving, code lipgloss.Style
	// selected is for the row under the cursor, there for that of a pane without the focus.
	selected, there lipgloss.Style
	// border and focus are for the frames of panes, need for the frame of the needs.
	border, focus, need lipgloss.Style
}

func newTheme() theme {
	fg := func(c color.Color) lipgloss.Style { return lipgloss.NewStyle().Foreground(c) }
	plain := lipgloss.NewStyle()
	return theme{
		plain: plain, dim: fg(lipgloss.BrightBlack), bold: plain.Bold(true), title: plain.Bold(true), key: fg(lipgloss.Cyan).Bold(true),
		good: fg(lipgloss.Green), busy: fg(lipgloss.Cyan), warn: fg(lipgloss.Yellow), bad: fg(lipgloss.Red).Bold(true), moving: fg(lipgloss.Magenta), code: fg(lipgloss.Blue),
		selected: plain.Reverse(true), there: plain.Bold(true),
		border: fg(lipgloss.BrightBlack), focus: fg(lipgloss.Green), need: fg(lipgloss.Red),
	}
}

// of returns the style of a line of a transcript or a patch.
func (t *theme) of(tone view.Tone) lipgloss.Style {
	switch tone {
	case view.Plain:
		return t.plain
	case view.Heading:
		return t.bold
	case view.Step:
		return t.busy
	case view.Faint:
		return t.dim
	case view.Wrong:
		return t.warn
	case view.Removed:
		return t.bad.Bold(false)
	case view.Added:
		return t.good
	}
	return t.plain
}
