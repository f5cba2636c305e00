package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

// WriteNeeds writes a list of needs as a screen for a person.
func WriteNeeds(w io.Writer, needs []Need, now state.Time, how screen.Options) error {
	out := screen.New(how)
	if len(needs) == 0 {
		out.Wrap("", screen.Green("nothing waits for you"))
	}
	for i := range needs {
		n := &needs[i]
		out.Row("", n.cells(), nil)
		if n.Why != "" {
			out.Row("     ", []screen.Cell{screen.Plain(n.Why)}, nil)
		}
		if text := n.surroundings(now); text != "" {
			out.Row("     ", []screen.Cell{screen.Dim(text)}, nil)
		}
		out.Row("     ", []screen.Cell{screen.Bold(strings.Join(n.Commands, ", or "))}, nil)
	}
	return out.Flush(w)
}

// writeNeeds writes at most so many needs on two lines each. about is the bead that the
// screen is about, or "".
func writeNeeds(out *screen.Screen, needs []Need, most int, about state.BeadID) {
	for i := range needs[:min(most, len(needs))] {
		n := &needs[i]
		line := n.Line()
		switch {
		case about == "":
		case n.BeadID != about:
			line += " (it waits for " + string(n.BeadID) + ")"
		case n.Kind == NeedBlocked:
			line = "" // said above
		}
		commands := screen.Bold(strings.Join(n.Commands, ", or "))
		if line == "" {
			out.Row("  ", []screen.Cell{screen.Red(n.mark()), commands}, nil)
			continue
		}
		out.Row("  ", []screen.Cell{screen.Red(n.mark()), screen.Plain(line)}, nil)
		out.Row("     ", []screen.Cell{commands}, nil)
	}
	if len(needs) > most {
		out.Row("  ", []screen.Cell{screen.Plain(fmt.Sprintf("%d more: chipset inbox", len(needs)-most))}, nil)
	}
}

// mark is the number in a column of lists.
func (n *Need) mark() string {
	if n.Number == 0 {
		return " -"
	}
	return fmt.Sprintf("%2d", n.Number)
}

func (n *Need) cells() []screen.Cell {
	return []screen.Cell{screen.Red(n.mark()), screen.Plain(string(n.Kind)), screen.Bold(n.What)}
}

// Line is the need with its reason on one line.
func (n *Need) Line() string {
	text := string(n.Kind) + "  " + n.What
	if n.Why != "" {
		text += ": " + n.Why
	}
	return text
}

// Announcement is the need on one line, with the commands that answer it.
func (n *Need) Announcement() string {
	return fmt.Sprintf("needs you: %s %s (%s)", n.Handle(), n.Line(), strings.Join(n.Commands, ", or "))
}

// surroundings says who waits, for how long, and what else waits.
func (n *Need) surroundings(now state.Time) string {
	var parts []string
	switch {
	case n.AgentID != "" && n.BeadID != "":
		parts = append(parts, fmt.Sprintf("%s waits with %s", n.AgentID, n.BeadID))
	case n.AgentID != "":
		parts = append(parts, string(n.AgentID)+" waits")
	case n.BeadID != "":
		parts = append(parts, string(n.BeadID))
	}
	if !n.Since.IsZero() {
		parts = append(parts, "for "+screen.Age(now.Sub(n.Since.Time)))
	}
	if len(n.Behind) > 0 {
		parts = append(parts, fmt.Sprintf("%s behind it: %s", wording.Count(len(n.Behind), "bead"), wording.JoinFirst(n.Behind, behindShown)))
	}
	return strings.Join(parts, ", ")
}

// behindShown is how many beads behind a need are named.
const behindShown = 3
