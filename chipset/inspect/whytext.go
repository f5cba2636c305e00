package inspect

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/state/event"
)

// addTimeline puts everything in the order of time. What an event tells already
// (a mail that was sent, a request that was submitted) is not told twice.
func (s *Story) addTimeline() {
	told := map[string]bool{}
	for _, e := range s.Events {
		told[e.Type+" "+e.Subject] = true
		told[e.Type+" "+string(e.Assignment)] = true
		s.Timeline = append(s.Timeline, Line{At: e.Time, Kind: "event", Who: e.Agent, What: e.Type, Text: eventText(&e)})
	}
	for _, m := range s.Mail {
		if told["mail.sent "+string(m.Message.To)+"/"+string(m.Name)] {
			continue
		}
		s.Timeline = append(s.Timeline, Line{At: m.Message.Timestamp, Kind: "mail", Who: m.Message.From, What: string(m.Message.Type),
			Text: fmt.Sprintf("to %s: %s", m.Message.To, m.Message.Subject)})
	}
	for _, a := range s.Attempts {
		if told["retire.published "+string(a.AssignmentID)] {
			continue
		}
		text := fmt.Sprintf("%s, stage %s", a.AssignmentID, a.Stage)
		if why := firstLine(a.Reason + "\n" + a.Summary); why != "" {
			text += ": " + why
		}
		s.Timeline = append(s.Timeline, Line{At: a.CreatedAt, Kind: "attempt", Who: a.AgentID, What: "ended: " + string(a.Outcome), Text: text})
	}
	for _, q := range s.Requests {
		if told["mr.submitted "+string(q.AssignmentID)] {
			continue
		}
		text := fmt.Sprintf("%s from %s, now %s", q.ID, q.SourceBranch, q.Status)
		if q.Reason != "" {
			text += ": " + firstLine(q.Reason)
		}
		s.Timeline = append(s.Timeline, Line{At: q.SubmittedAt, Kind: "merge_request", Who: q.AgentID, What: "submitted", Text: text})
	}
	for _, h := range s.Handoffs {
		if told["handoff.written "+string(h.AssignmentID)] && h.AssignmentID != "" {
			continue
		}
		s.Timeline = append(s.Timeline, Line{At: h.Timestamp, Kind: "handoff", Who: h.AgentID, What: "hand-off", Text: firstLine(h.Summary)})
	}
	slices.SortStableFunc(s.Timeline, func(a, b Line) int { return a.At.Compare(b.At.Time) })
}

func eventText(e *event.Event) string {
	var parts []string
	if e.From != "" && e.To != "" {
		parts = append(parts, e.From+" → "+e.To)
	}
	if e.Text != "" {
		parts = append(parts, firstLine(e.Text))
	}
	if len(parts) == 0 {
		parts = append(parts, e.Subject)
	}
	return strings.Join(parts, "  ")
}

// WriteText writes the story for a person: one sentence, then everything in order.
func (s *Story) WriteText(w io.Writer, how Text) error {
	out := &screen{Text: how}
	b := &s.Bead
	out.out.WriteString(out.style(bold, string(b.ID)+"  "+out.cut(oneLine(b.Title), length(string(b.ID))+2)) + "\n")
	out.wrap("", s.Now, plain)
	rows := [][]cell{{{"status", dim}, {strings.ReplaceAll(string(b.Status), "_", " "), plain}},
		{{"charged", dim}, {b.FailureCounts(), plain}}}
	if b.Assignee != "" {
		rows = append(rows, []cell{{"assigned", dim}, {string(b.Assignee) + " as " + string(b.AssignmentID), plain}})
	}
	if done := s.Progress.String(); done != "" {
		rows = append(rows, []cell{{"so far", dim}, {s.Progress.Client + ": " + done, plain}})
	}
	for _, note := range b.ReworkNotes {
		rows = append(rows, []cell{{"rework", dim}, {firstLine(note), plain}})
	}
	for _, a := range s.Attempts {
		rows = append(rows, []cell{{"attempt", dim}, {strings.Join([]string{string(a.AssignmentID), string(a.AgentID), string(a.Outcome),
			firstLine(a.Reason + "\n" + a.Summary)}, "  "), plain}})
	}
	for _, q := range s.Requests {
		rows = append(rows, []cell{{"request", dim}, {strings.Join([]string{string(q.ID), string(q.Status), firstLine(q.Reason)}, "  "), plain}})
	}
	for _, h := range s.Handoffs {
		rows = append(rows, []cell{{"hand-off", dim}, {firstLine(h.Summary), plain}})
	}
	for _, ref := range s.Refs {
		text := string(ref.Ref) + "  " + ref.Hash.Short()
		if ref.Landed {
			text += "  (nothing that is not on the target)"
		}
		rows = append(rows, []cell{{"ref", dim}, {text, plain}})
	}
	out.out.WriteString("\n")
	out.table("", rows)
	out.heading("Story", "")
	s.writeTimeline(out)
	if len(s.Problems) > 0 {
		out.heading("Not readable", "")
		for _, problem := range s.Problems {
			out.wrap("  ", problem, yellow)
		}
	}
	return out.writeTo(w)
}

func (s *Story) writeTimeline(out *screen) {
	var rows [][]cell
	day := ""
	for _, line := range s.Timeline {
		today := line.At.Format(time.DateOnly)
		if today == day {
			today = strings.Repeat(" ", len(day))
		} else {
			day = today
		}
		rows = append(rows, []cell{{today + " " + line.At.Format("15:04:05.000"), dim}, {string(line.Who), plain},
			{line.What, plain}, {line.Text, plain}})
	}
	out.table("  ", rows)
}
