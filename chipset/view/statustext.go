package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

// WriteText writes the status as a screen for a person.
func (s *Status) WriteText(w io.Writer, how screen.Options) error {
	out := screen.New(how)
	s.writeHead(out)
	if len(s.Needs) > 0 {
		out.Heading("Needs you", wording.Count(len(s.Needs), "decision"))
		writeNeeds(out, s.Needs, needsShown, "")
	}
	s.writeAgents(out)
	out.Heading("Beads", cmp.Or(s.BeadWords(), "none: chipset work add makes one"))
	s.writeQueue(out)
	s.writeConvoys(out)
	s.writeIncidents(out)
	s.writeMail(out)
	if len(s.Warnings) > 0 {
		out.Heading("Warnings", "")
		for _, warning := range s.Warnings {
			out.Wrap("  ", screen.Yellow("! "+warning))
		}
	}
	return out.Flush(w)
}

func (s *Status) writeHead(out *screen.Screen) {
	out.Row("", []screen.Cell{screen.Bold(s.Rig), screen.Dim(s.Dir)}, nil)
	var rows [][]screen.Cell
	if s.Target != "" {
		rows = append(rows, []screen.Cell{screen.Dim("lands on"), screen.Plain(strings.TrimSpace(s.Target + "  " + wording.ShortHash(s.Tip) + "  " + s.TipSubject))})
	}
	rows = append(rows, []screen.Cell{screen.Dim("tested by"), screen.Plain(cmp.Or(s.Test, "nothing"))})
	for i := range s.Pauses {
		p := &s.Pauses[i]
		if !slices.ContainsFunc(s.Needs, func(n Need) bool { return n.Scope == p.Scope }) { // which says the same
			rows = append(rows, []screen.Cell{screen.Dim("paused"), screen.Yellow(p.String())})
		}
	}
	if spent := s.Spent.String(); spent != "" {
		rows = append(rows, []screen.Cell{screen.Dim("today"), screen.Plain(spent + " in " + wording.Count(s.Spent.Attempts, "attempt"))})
	}
	if s.Sandbox != "" {
		rows = append(rows, []screen.Cell{screen.Dim("sandbox"), screen.Plain(s.Sandbox)})
	}
	if s.Limits != "" {
		rows = append(rows, []screen.Cell{screen.Dim("at most"), screen.Plain(s.Limits + " for each worker and test")})
	}
	out.Table("", rows)
}

func (s *Status) writeAgents(out *screen.Screen) {
	running := 0
	var rows [][]screen.Cell
	for _, a := range s.Agents {
		if a.Role == agent.Human {
			continue
		}
		mark, process := screen.Dim("○"), screen.Dim("not running")
		if a.Alive {
			running++
			mark, process = screen.Green("●"), screen.Plain(fmt.Sprintf("pid %d", a.PID))
		}
		if a.Role == agent.Crew && !a.Alive {
			process = screen.Dim("crew")
		}
		rows = append(rows, []screen.Cell{mark, screen.Plain(string(a.ID)), process, s.hookCell(a), screen.Plain(s.workOf(a))})
	}
	out.Heading("Agents", fmt.Sprintf("%d of %d running", running, len(rows)))
	out.Table("  ", rows)
}

func (s *Status) hookCell(a AgentStatus) screen.Cell {
	switch {
	case a.Status == agent.Stalled || a.Status == agent.Retired:
		return screen.Yellow(string(a.Status))
	case a.Hook == hookCorrupt:
		return screen.Red("corrupt hook")
	case a.Lease != nil:
		return screen.Yellow("attached")
	case a.Hook == hook.Active:
		return screen.Green("active")
	case a.Hook == hook.Empty:
		return screen.Dim("idle")
	}
	return screen.Plain(string(a.Hook))
}

// workOf says what is on an agent's hook, for how long, and when it last made progress.
func (s *Status) workOf(a AgentStatus) string {
	var parts []string
	if a.BeadID != "" {
		for_ := screen.Age(s.At.Sub(a.AssignedAt.Time))
		if a.Lease != nil {
			for_ += ", " + leaseText(a.Lease, s.At)
		} else if a.Client != "" {
			for_ += ", held by your session"
		} else if a.Hook == hook.Active {
			for_ += ", progress " + screen.Age(s.At.Sub(a.LastActivity.Time)) + " ago"
			if done := a.Progress.String(); done != "" {
				for_ += "; " + done
			}
		}
		parts = append(parts, fmt.Sprintf("%s (%s) %s", a.BeadID, for_, a.Title))
	}
	if a.Unread > 0 {
		parts = append(parts, fmt.Sprintf("%d unread", a.Unread))
	}
	return strings.Join(parts, "  ")
}

// leaseText says who has taken an agent's session over.
func leaseText(l *hook.Lease, now state.Time) string {
	return fmt.Sprintf("attached by %s %s ago, pid %d", l.By, screen.Age(now.Sub(l.Since.Time)), l.PID)
}

// BeadWords counts the beads by status, such as "4 open (2 ready), 1 in progress"; it is "" if
// there are none.
func (s *Status) BeadWords() string {
	var parts []string
	for _, st := range []bead.Status{bead.Open, bead.Hooked, bead.InProgress, bead.Done, bead.Failed, bead.Blocked,
		bead.Merged, bead.Closed, bead.Cancelled} {
		n := s.Beads[st]
		if n == 0 {
			continue
		}
		part := fmt.Sprintf("%d %s", n, strings.ReplaceAll(string(st), "_", " "))
		if st == bead.Open {
			part += fmt.Sprintf(" (%d ready)", s.Ready)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// needsShown is how many needs the screen lists.
const needsShown = 5

func (s *Status) writeQueue(out *screen.Screen) {
	if len(s.Queue) == 0 {
		return
	}
	out.Heading("Merge queue", fmt.Sprintf("%d waiting", len(s.Queue)))
	var rows [][]screen.Cell
	for _, q := range s.Queue {
		st := screen.Plain(string(q.Request.Status))
		switch q.Request.Status {
		case mergequeue.Merging:
			st = screen.Green("merging: " + string(q.Stage))
		case mergequeue.Conflicted:
			st = screen.Red(strings.ReplaceAll(string(q.Failure), "_", " "))
		case mergequeue.Pending, mergequeue.Merged, mergequeue.Superseded, mergequeue.Dropped:
		}
		text := q.Title
		if q.Wait != "" {
			text = q.Wait + "  " + text
		}
		rows = append(rows, []screen.Cell{screen.Dim(fmt.Sprint(q.Seq)), screen.Plain(string(q.ID)), st, screen.Dim(screen.Age(s.At.Sub(q.SubmittedAt.Time))), screen.Plain(text)})
	}
	out.Table("  ", rows)
}

func (s *Status) writeConvoys(out *screen.Screen) {
	var rows [][]screen.Cell
	for _, c := range s.Convoys {
		bar := screen.Plain(screen.Bar(c.Landed, c.All, 20))
		if c.Landed == c.All {
			bar = screen.Green(screen.Bar(c.Landed, c.All, 20))
		}
		rows = append(rows, []screen.Cell{screen.Plain(string(c.ID)), bar,
			screen.Plain(fmt.Sprintf("%d/%d", c.Landed, c.All)), screen.Plain(c.Name)})
	}
	if len(rows) > 0 {
		out.Heading("Convoys", "")
		out.Table("  ", rows)
	}
}

func (s *Status) writeIncidents(out *screen.Screen) {
	var rows [][]screen.Cell
	for _, i := range s.Incidents {
		rows = append(rows, []screen.Cell{severityCell(i.Severity), screen.Plain(string(i.AgentID)), screen.Plain(string(i.Kind)),
			screen.Dim(screen.Age(s.At.Sub(i.OpenedAt.Time))), screen.Plain(strings.TrimSpace(string(i.BeadID) + " " + wording.FirstLine(i.Detail)))})
	}
	if len(rows) > 0 {
		out.Heading("Incidents", "")
		out.Table("  ", rows)
	}
}

// mailShown is how many messages the screen lists.
const mailShown = 5

func (s *Status) writeMail(out *screen.Screen) {
	if len(s.Mail) == 0 {
		return
	}
	// A message about a need says nothing new.
	others := slices.DeleteFunc(slices.Clone(s.Mail), func(m MailLine) bool {
		return slices.ContainsFunc(s.Needs, func(n Need) bool { return n.Name == m.Name || n.BeadID != "" && n.BeadID == m.BeadID })
	})
	about := ""
	if len(others) == 0 {
		about = ", all about what needs you"
	}
	out.Heading("Your mail", fmt.Sprintf("%d unread%s: chipset mail inbox", len(s.Mail), about))
	var rows [][]screen.Cell
	for _, m := range others[:min(mailShown, len(others))] {
		subject := screen.Plain(m.Subject)
		if m.Priority == mail.Urgent {
			subject = screen.Red(m.Subject)
		}
		rows = append(rows, []screen.Cell{screen.Dim(screen.Age(s.At.Sub(m.At.Time))), screen.Plain(string(m.From)), subject})
	}
	out.Table("  ", rows)
}
