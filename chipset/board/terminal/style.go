package terminal

import (
	"image/color"

	"charm.land/lipgloss/v2"
)

// theme has one style for each meaning. Its colours are the sixteen that every terminal
// has, in the person's own shades; without colours bold, faint and reverse remain.
type theme struct {
	plain, dim, bold, title, key        lipgloss.Style
	good, busy, warn, bad, moving, code lipgloss.Style
	// selected is the row under the cursor, and there in a pane without the focus.
	selected, there lipgloss.Style
	// border and focus are the frames of panes; need is that of a pane that asks for the person.
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
