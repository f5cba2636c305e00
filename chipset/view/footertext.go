package view

import (
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Footer returns two lines for the bottom of the screen of a running rig: who works on what,
// and what waits, has landed and was spent.
func (v *View) Footer(how screen.Options) []string {
	var working []screen.Cell
	agents := 0
	for i := range v.Agents {
		a := &v.Agents[i]
		if a.Role == agent.Polecat && a.Alive {
			agents++
		}
		if a.BeadID != "" && a.Alive {
			working = append(working, screen.Plain(fmt.Sprintf("%s %s %s", strings.TrimPrefix(string(a.ID), "polecat-"), a.BeadID, screen.Age(v.At.Sub(a.AssignedAt.Time)))))
		}
	}
	out := screen.New(how)
	out.Row("", append([]screen.Cell{screen.Bold(v.Rig), screen.Dim(fmt.Sprintf("%d of %d at work", len(working), agents))}, working...), nil)
	needs := screen.Green("nothing waits for you")
	if n := len(v.Needs); n > 0 {
		needs = screen.Red(wording.Count(n, "decision") + " for you: chipset inbox")
	}
	rest := []screen.Cell{needs, screen.Plain(fmt.Sprintf("%d ready", v.Ready)), screen.Plain(fmt.Sprintf("%d to land", len(v.Queue))),
		screen.Plain(fmt.Sprintf("%d landed", v.Beads[bead.Merged]+v.Beads[bead.Closed]))}
	if len(v.Pauses) > 0 {
		rest = append(rest, screen.Yellow(string(v.Pauses[0].Scope)+" paused"))
	}
	if spent := v.SpentWords(); spent != "" {
		rest = append(rest, screen.Plain(spent))
	}
	out.Row("", append(rest, screen.Dim("chipset board shows more")), nil)
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}
