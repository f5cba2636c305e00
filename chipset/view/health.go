package view

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/wording"
)

// HealthReport is what the witness would say if it were asked now.
type HealthReport struct {
	At  state.Time `json:"at"`
	Rig string     `json:"rig"`
	// Watched is true while the witness is running. Without it no incident is opened or
	// resolved.
	Watched bool        `json:"watched"`
	Totals  AgentTotals `json:"totals"`
	// Stalled are the agents with something wrong on their hooks.
	Stalled []AgentHealth `json:"stalled"`
	// Incidents are the open ones, oldest first.
	Incidents []incident.Incident `json:"incidents"`
}

// AgentTotals counts the agents, without the person and the retired.
type AgentTotals struct {
	Agents     int `json:"agents"`
	Alive      int `json:"alive"`
	Idle       int `json:"idle"`
	Active     int `json:"active"`
	Stalled    int `json:"stalled"`
	Terminated int `json:"terminated"`
}

// AgentHealth is one agent whose work makes no progress.
type AgentHealth struct {
	Agent      state.AgentID      `json:"agent_id"`
	Alive      bool               `json:"alive"`
	Hook       hook.Status        `json:"hook,omitempty"`
	Bead       state.BeadID       `json:"bead_id,omitempty"`
	Title      string             `json:"title,omitempty"`
	Assignment state.AssignmentID `json:"assignment_id,omitempty"`
	// Minutes is the time without progress, in whole minutes.
	Minutes int `json:"minutes"`
	// Nudges counts the health checks that were sent, Answers those that were answered.
	Nudges  int `json:"nudges"`
	Answers int `json:"answers"`
	// Severity is the highest of its open incidents, "" without one.
	Severity incident.Severity `json:"severity,omitempty"`
	// Kinds are those of its open incidents.
	Kinds []incident.Kind `json:"kinds"`
	// Error is why the hook can't be read.
	Error string `json:"error,omitempty"`
	// quiet is the exact time without progress; 0 for a person's own session, which may take as long as it likes.
	quiet time.Duration
}

// Health returns the health of every agent, and the open incidents. It changes nothing.
func Health(ctx context.Context, r *rig.Rig) (*HealthReport, error) {
	now := r.Clock.Now()
	report := &HealthReport{At: now, Stalled: []AgentHealth{}, Incidents: []incident.Incident{}}
	if r.Def != nil {
		report.Rig = r.Def.Rig.Name
	}
	_, report.Watched = r.Alive(r.Witness())
	all, _, err := r.Incidents.All()
	if err != nil {
		return nil, err
	}
	for _, i := range all {
		if i.Open() {
			report.Incidents = append(report.Incidents, i)
		}
	}
	slices.SortStableFunc(report.Incidents, func(a, b incident.Incident) int { return a.OpenedAt.Compare(b.OpenedAt.Time) })
	agents, _, err := r.Agents.All()
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if a.Role == agent.Human || a.Status == agent.Retired {
			continue
		}
		h := healthOf(r, a.ID, report.Incidents, now)
		report.Totals.count(a.Status, h.Alive)
		if h.Error != "" || len(h.Kinds) > 0 || h.quietTooLong(r) {
			report.Stalled = append(report.Stalled, h)
		}
	}
	return report, nil
}

func (t *AgentTotals) count(s agent.Status, alive bool) {
	t.Agents++
	if alive {
		t.Alive++
	}
	switch s {
	case agent.Idle:
		t.Idle++
	case agent.Active:
		t.Active++
	case agent.Stalled:
		t.Stalled++
	case agent.Terminated:
		t.Terminated++
	case agent.Retired:
	}
}

func healthOf(r *rig.Rig, id state.AgentID, open []incident.Incident, now state.Time) AgentHealth {
	h := AgentHealth{Agent: id, Kinds: []incident.Kind{}}
	_, h.Alive = r.Alive(id)
	on, err := r.Hooks.Get(string(id))
	if err != nil {
		h.Error = err.Error()
	} else {
		h.Hook = on.Status
		if w := on.WorkItem; w != nil {
			h.Bead, h.Title, h.Assignment = w.BeadID, w.Title, w.AssignmentID
			h.quiet = max(0, now.Sub(on.LastActivity.Time))
			h.Minutes = int(h.quiet / time.Minute)
			if a, err := r.Agents.Get(string(id)); err == nil && a.IsSession() {
				h.quiet = 0
			}
		}
	}
	for _, i := range open {
		if i.AgentID != id || !aboutHook(i.Kind) {
			continue
		}
		h.Kinds = append(h.Kinds, i.Kind)
		h.Nudges, h.Answers = h.Nudges+i.Nudges, h.Answers+i.Answers
		if i.Severity.Rank() > h.Severity.Rank() {
			h.Severity = i.Severity
		}
	}
	return h
}

// quietTooLong reports whether a witness would call the agent stalled.
func (h *AgentHealth) quietTooLong(r *rig.Rig) bool {
	return r.Def != nil && (h.Hook == hook.Pending || h.Hook == hook.Active) && h.quiet > r.Def.GUPP.Thresholds.StallDetection
}

// aboutHook reports whether an incident is about one agent's work, and not about the rig.
func aboutHook(k incident.Kind) bool {
	return slices.Contains([]incident.Kind{incident.Stalled, incident.NotPickedUp, incident.ProcessGone, incident.Restarts, incident.CorruptHook, incident.HeldLong}, k)
}

// WriteText writes the report as a screen for a person.
func (h *HealthReport) WriteText(w io.Writer, how screen.Options) error {
	out := screen.New(how)
	t := h.Totals
	out.Row("", []screen.Cell{screen.Bold(h.Rig), screen.Plain(fmt.Sprintf("%s, %d alive: %d idle, %d active, %d stalled, %d terminated",
		wording.Count(t.Agents, "agent"), t.Alive, t.Idle, t.Active, t.Stalled, t.Terminated))}, nil)
	if !h.Watched {
		out.Wrap("", screen.Yellow("! the witness is not running: new stalls are not noticed"))
	}
	if len(h.Stalled) == 0 && len(h.Incidents) == 0 {
		out.Wrap("", screen.Green("nothing is stalled"))
	}
	for _, a := range h.Stalled {
		a.write(out)
	}
	var rows [][]screen.Cell
	for _, i := range h.Incidents {
		rows = append(rows, []screen.Cell{severityCell(i.Severity), screen.Plain(string(i.AgentID)), screen.Plain(string(i.Kind)),
			screen.Dim(screen.Age(h.At.Sub(i.OpenedAt.Time))), screen.Dim(string(i.ID)), screen.Plain(wording.FirstLine(i.Detail))})
	}
	if len(rows) > 0 {
		out.Heading("Incidents", "")
		out.Table("  ", rows)
	}
	return out.Flush(w)
}

func (h *AgentHealth) write(out *screen.Screen) {
	out.Heading(string(h.Agent), cmp.Or(string(h.Severity), "quiet"))
	var rows [][]screen.Cell
	line := func(name, text string) { rows = append(rows, []screen.Cell{screen.Dim(name), screen.Plain(text)}) }
	switch {
	case h.Error != "":
		line("hook", h.Error)
	case h.Bead != "":
		line("bead", fmt.Sprintf("%s %s (%s)", h.Bead, h.Title, h.Hook))
		line("progress", "none for "+wording.Count(h.Minutes, "minute"))
	}
	if !h.Alive {
		line("process", "none")
	}
	line("nudges", fmt.Sprintf("%d sent, %d answered", h.Nudges, h.Answers))
	out.Table("  ", rows)
}

func severityCell(s incident.Severity) screen.Cell {
	if s == incident.Critical {
		return screen.Red(string(s))
	}
	return screen.Yellow(string(s))
}
