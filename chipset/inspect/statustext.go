package inspect

import (
	"fmt"
	"io"
	"strings"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// WriteText writes the status as a screen for a person.
func (s *Status) WriteText(w io.Writer, how Text) error {
	out := &screen{Text: how}
	s.writeHead(out)
	s.writeAgents(out)
	s.writeBeads(out)
	s.writeQueue(out)
	s.writeConvoys(out)
	s.writeIncidents(out)
	s.writeMail(out)
	if len(s.Warnings) > 0 {
		out.heading("Warnings", "")
		for _, warning := range s.Warnings {
			out.wrap("  ", "! "+warning, yellow)
		}
	}
	return out.writeTo(w)
}

func (s *Status) writeHead(out *screen) {
	name := out.cut(oneLine(s.Rig), 0)
	out.out.WriteString(out.style(bold, name) + "  " + out.style(dim, out.cut(oneLine(s.Dir), length(name)+2)) + "\n")
	var rows [][]cell
	if s.Target != "" {
		tip := ""
		if s.Tip != "" {
			tip = s.Tip[:min(10, len(s.Tip))]
		}
		rows = append(rows, []cell{{"lands on", dim}, {strings.TrimSpace(s.Target + "  " + tip + "  " + s.TipSubject), plain}})
	}
	test := s.Test
	if test == "" {
		test = "nothing"
	}
	rows = append(rows, []cell{{"tested by", dim}, {test, plain}})
	out.table("", rows)
}

func (s *Status) writeAgents(out *screen) {
	running := 0
	var rows [][]cell
	for _, a := range s.Agents {
		if a.Role == agent.Human {
			continue
		}
		mark, process := cell{"○", dim}, cell{"not running", dim}
		if a.Alive {
			running++
			mark, process = cell{"●", green}, cell{fmt.Sprintf("pid %d", a.PID), plain}
		}
		if a.Role == agent.Crew && !a.Alive {
			process.text = "crew"
		}
		rows = append(rows, []cell{mark, {string(a.ID), plain}, process, s.hookCell(a), {s.workOf(a), plain}})
	}
	out.heading("Agents", fmt.Sprintf("%d of %d running", running, len(rows)))
	out.table("  ", rows)
}

func (s *Status) hookCell(a AgentStatus) cell {
	switch {
	case a.Status == agent.Stalled || a.Status == agent.Retired:
		return cell{string(a.Status), yellow}
	case a.Hook == hookCorrupt:
		return cell{"corrupt hook", red}
	case a.Hook == hook.Active:
		return cell{"active", green}
	case a.Hook == hook.Empty:
		return cell{"idle", dim}
	}
	return cell{string(a.Hook), plain}
}

// workOf says what hangs on an agent's hook, for how long, and when it moved.
func (s *Status) workOf(a AgentStatus) string {
	var parts []string
	if a.BeadID != "" {
		for_ := age(s.At.Sub(a.AssignedAt.Time))
		if a.Hook == hook.Active {
			for_ += ", progress " + age(s.At.Sub(a.LastActivity.Time)) + " ago"
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

func (s *Status) writeBeads(out *screen) {
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
	if len(parts) == 0 {
		parts = []string{"none: chipset work add makes one"}
	}
	out.heading("Beads", strings.Join(parts, ", "))
	var rows [][]cell
	for _, b := range s.Blocked {
		rows = append(rows, []cell{{"blocked", red}, {string(b.ID), plain}, {b.Title + ": " + firstLine(b.Reason), plain}})
	}
	out.table("  ", rows)
}

func (s *Status) writeQueue(out *screen) {
	if len(s.Queue) == 0 {
		return
	}
	out.heading("Merge queue", fmt.Sprintf("%d waiting", len(s.Queue)))
	var rows [][]cell
	for _, q := range s.Queue {
		st := cell{string(q.Request.Status), plain}
		switch q.Request.Status {
		case mergequeue.Merging:
			st = cell{"merging: " + string(q.Stage), green}
		case mergequeue.Conflicted:
			st = cell{"conflicted", red}
		case mergequeue.Pending, mergequeue.Merged, mergequeue.Superseded, mergequeue.Dropped:
		}
		text := q.Title
		if q.Wait != "" {
			text = q.Wait + "  " + text
		}
		rows = append(rows, []cell{{fmt.Sprint(q.Seq), dim}, {string(q.ID), plain}, st, {age(s.At.Sub(q.SubmittedAt.Time)), dim}, {text, plain}})
	}
	out.table("  ", rows)
}

func (s *Status) writeConvoys(out *screen) {
	var rows [][]cell
	for _, c := range s.Convoys {
		style := plain
		if c.Landed == c.All {
			style = green
		}
		rows = append(rows, []cell{{string(c.ID), plain}, {bar(c.Landed, c.All, 20), style},
			{fmt.Sprintf("%d/%d", c.Landed, c.All), plain}, {c.Name, plain}})
	}
	if len(rows) > 0 {
		out.heading("Convoys", "")
		out.table("  ", rows)
	}
}

func (s *Status) writeIncidents(out *screen) {
	var rows [][]cell
	for _, i := range s.Incidents {
		style := yellow
		if i.Severity == incident.Critical {
			style = red
		}
		rows = append(rows, []cell{{string(i.Severity), style}, {string(i.AgentID), plain}, {string(i.Kind), plain},
			{age(s.At.Sub(i.OpenedAt.Time)), dim}, {strings.TrimSpace(string(i.BeadID) + " " + firstLine(i.Detail)), plain}})
	}
	if len(rows) > 0 {
		out.heading("Incidents", "")
		out.table("  ", rows)
	}
}

// mailShown is how many messages the screen lists.
const mailShown = 5

func (s *Status) writeMail(out *screen) {
	if len(s.Mail) == 0 {
		return
	}
	out.heading("Your mail", fmt.Sprintf("%d unread: chipset mail inbox", len(s.Mail)))
	var rows [][]cell
	for _, m := range s.Mail[:min(mailShown, len(s.Mail))] {
		style := plain
		if m.Priority == mail.Urgent {
			style = red
		}
		rows = append(rows, []cell{{age(s.At.Sub(m.At.Time)), dim}, {string(m.From), plain}, {m.Subject, style}})
	}
	out.table("  ", rows)
}
