package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/wording"
)

// addTimeline puts everything in order of time. A record whose event is in the log, such
// as sent mail or a submitted request, is left out.
func (s *BeadHistory) addTimeline() {
	told := map[string]bool{}
	for _, e := range s.Events {
		told[e.Type+" "+e.Subject] = true
		told[e.Type+" "+string(e.Assignment)] = true
		s.Timeline = append(s.Timeline, Line{At: e.Time, Kind: "event", Who: e.Agent, What: e.Type, Text: EventText(&e)})
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
		if why := wording.Reason(a.Reason + "\n" + a.Summary); why != "" {
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
			text += ": " + wording.Reason(q.Reason)
		}
		s.Timeline = append(s.Timeline, Line{At: q.SubmittedAt, Kind: "merge_request", Who: q.AgentID, What: "submitted", Text: text})
	}
	for _, h := range s.Handoffs {
		if told["handoff.written "+string(h.AssignmentID)] && h.AssignmentID != "" {
			continue
		}
		s.Timeline = append(s.Timeline, Line{At: h.Timestamp, Kind: "handoff", Who: h.AgentID, What: "hand-off", Text: wording.FirstLine(h.Summary)})
	}
	slices.SortStableFunc(s.Timeline, func(a, b Line) int { return a.At.Compare(b.At.Time) })
}

// EventText returns the details of an event, besides its agent and type, on one line.
func EventText(e *event.Event) string {
	var parts []string
	if e.From != "" && e.To != "" {
		parts = append(parts, e.From+" → "+e.To)
	}
	if e.Text != "" {
		parts = append(parts, wording.FirstLine(e.Text))
	}
	if len(parts) == 0 && e.Subject != string(e.Agent) {
		parts = append(parts, e.Subject)
	}
	return strings.Join(parts, "  ")
}

// WriteText writes the history for a person: one sentence, then everything in order.
func (s *BeadHistory) WriteText(w io.Writer, how screen.Options) error {
	out := screen.New(how)
	b := &s.Bead
	out.Row("", []screen.Cell{screen.Bold(string(b.ID)), screen.Bold(b.Title)}, nil)
	out.Wrap("", screen.Plain(s.Now))
	if len(s.Needs) > 0 {
		out.Blank()
		writeNeeds(out, s.Needs, len(s.Needs), b.ID)
	}
	rows := [][]screen.Cell{{screen.Dim("status"), screen.Plain(strings.ReplaceAll(string(b.Status), "_", " "))},
		{screen.Dim("failures"), screen.Plain(b.FailureCounts())}}
	if b.Assignee != "" {
		rows = append(rows, []screen.Cell{screen.Dim("assigned"), screen.Plain(string(b.Assignee) + " as " + string(b.AssignmentID))})
	}
	if done := s.Progress.String(); done != "" {
		rows = append(rows, []screen.Cell{screen.Dim("so far"), screen.Plain(s.Progress.Client + ": " + done)})
	}
	for _, note := range b.ReworkNotes {
		rows = append(rows, []screen.Cell{screen.Dim("rework"), screen.Plain(wording.Reason(note))})
	}
	for _, a := range s.Attempts {
		rows = append(rows, []screen.Cell{screen.Dim("attempt"), screen.Plain(strings.Join([]string{string(a.AssignmentID), string(a.AgentID), string(a.Outcome),
			wording.Reason(a.Reason + "\n" + a.Summary)}, "  "))})
	}
	for _, q := range s.Requests {
		rows = append(rows, []screen.Cell{screen.Dim("request"), screen.Plain(strings.Join([]string{string(q.ID), string(q.Status), wording.Reason(q.Reason)}, "  "))})
	}
	for _, h := range s.Handoffs {
		rows = append(rows, []screen.Cell{screen.Dim("hand-off"), screen.Plain(wording.FirstLine(h.Summary))})
	}
	for _, ref := range s.Refs {
		text := string(ref.Ref) + "  " + ref.Hash.Short()
		if ref.Landed {
			text += "  (on the target)"
		}
		rows = append(rows, []screen.Cell{screen.Dim("ref"), screen.Plain(text)})
	}
	out.Blank()
	out.Table("", rows)
	out.Heading("History", "")
	s.writeTimeline(out)
	if len(s.Problems) > 0 {
		out.Heading("Unreadable", "")
		for _, problem := range s.Problems {
			out.Wrap("  ", screen.Yellow(problem))
		}
	}
	return out.Flush(w)
}

func (s *BeadHistory) writeTimeline(out *screen.Screen) {
	var rows [][]screen.Cell
	day := ""
	for _, line := range s.Timeline {
		today := line.At.Format(time.DateOnly)
		if today == day {
			today = strings.Repeat(" ", len(day))
		} else {
			day = today
		}
		rows = append(rows, []screen.Cell{screen.Dim(today + " " + line.At.Format("15:04:05.000")), screen.Plain(string(line.Who)),
			screen.Plain(line.What), screen.Plain(line.Text)})
	}
	out.Table("  ", rows)
}
