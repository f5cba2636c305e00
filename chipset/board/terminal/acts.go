package terminal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// subject is what is selected: what acts are about. What does not apply is nil or "".
type subject struct {
	need  *view.Need
	agent *view.AgentStatus
	item  *view.WorkItem
	merge *view.QueueEntry
	// convoy is set where nothing else is.
	convoy *view.ConvoyStatus
	// session is that of the last attempt that is known, for the transcript.
	session state.SessionID
}

// same reports whether two subjects are about the same thing.
func (s subject) same(o subject) bool { return s.name() == o.name() && s.session == o.session }

// name is what the detail is called.
func (s subject) name() string {
	switch {
	case s.item != nil:
		return string(s.item.Bead.ID)
	case s.agent != nil:
		return string(s.agent.ID)
	case s.need != nil:
		return string(s.need.Key)
	case s.convoy != nil:
		return string(s.convoy.ID)
	}
	return ""
}

// status is that of the bead, or "".
func (s subject) status() bead.Status {
	if s.item == nil {
		return ""
	}
	return s.item.Bead.Status
}

func (s subject) is(kinds ...view.NeedKind) bool {
	return s.need != nil && slices.Contains(kinds, s.need.Kind)
}

// act is one key for one command.
type act struct {
	key, label string
	// about explains it in the help.
	about string
	can   func(s subject) bool
	// ask is what the person is asked for, with what the answer begins as; nil asks nothing.
	ask func(s subject) (question, begin string)
	// lost names what is lost, for a confirmation; nil confirms nothing.
	lost func(s subject) []string
	// command is the command line, with the answer.
	command func(s subject, text string) []string
}

// acts are all of them, in the order in which they are offered.
func acts() []act {
	decides := func(s subject) bool { return s.is(view.NeedPermission, view.NeedPlan, view.NeedProtected) }
	agentOf := func(s subject) bool { return s.agent != nil && s.agent.Role != agent.Human }
	return []act{
		{key: "a", label: "approve", about: "approve a permission, a plan or a change of protected files", can: decides,
			command: func(s subject, _ string) []string { return []string{"approve", s.need.Handle()} }},
		{key: "d", label: "deny", about: "deny it, with a reason", can: decides,
			ask:     func(subject) (string, string) { return "Why not?", "" },
			command: func(s subject, text string) []string { return []string{"deny", s.need.Handle(), "--reason", text} }},
		{key: "r", label: "answer", about: "answer a question, or reopen a blocked bead with the answer", can: func(s subject) bool { return s.is(view.NeedQuestion, view.NeedBlocked) },
			ask:     func(s subject) (string, string) { return "Answer:", "" },
			command: func(s subject, text string) []string { return []string{"answer", s.need.Handle(), text} }},
		{key: "o", label: "reopen", about: "reopen a bead that is blocked, failed, closed or cancelled",
			can: func(s subject) bool {
				return slices.Contains([]bead.Status{bead.Blocked, bead.Failed, bead.Closed, bead.Cancelled}, s.status())
			},
			command: func(s subject, _ string) []string { return []string{"reopen", string(s.item.Bead.ID)} }},
		{key: "t", label: "retry", about: "retry a merge request, or end a pause", can: func(s subject) bool { return retryable(s) || s.is(view.NeedPause) }, command: retry},
		{key: "x", label: "drop", about: "give a merge request up", can: func(s subject) bool { return s.merge != nil },
			ask: func(subject) (string, string) { return "Why is it given up?", "" },
			lost: func(s subject) []string {
				return []string{fmt.Sprintf("%s will not land, and %s waits for you.", s.merge.ID, s.merge.BeadID), "Its branch " + s.merge.SourceBranch + " stays."}
			},
			command: func(s subject, text string) []string {
				return []string{"queue", "drop", string(s.merge.ID), "--reason", text}
			}},
		{key: "p", label: "priority", about: "change the priority of a bead that nobody works on", can: func(s subject) bool { return s.item != nil && s.item.Bead.Editable() },
			ask: func(s subject) (string, string) { return "Priority, P1 (first) to P3:", string(s.item.Bead.Priority) },
			command: func(s subject, text string) []string {
				return []string{"work", "edit", string(s.item.Bead.ID), "--priority", strings.ToUpper(text)}
			}},
		{key: "n", label: "nudge", about: "nudge an agent: a hint that it sees at its next step", can: agentOf,
			ask: func(s subject) (string, string) { return "Nudge to " + string(s.agent.ID) + ":", "" },
			command: func(s subject, text string) []string {
				return []string{"nudge", "send", string(s.agent.ID), "--type", "sync_request", "--message", text}
			}},
		{key: "m", label: "mail", about: "mail an agent", can: agentOf,
			ask: func(s subject) (string, string) { return "Mail to " + string(s.agent.ID) + ":", "" },
			command: func(s subject, text string) []string {
				return []string{"mail", "send", string(s.agent.ID), "--subject", text}
			}},
		{key: "s", label: "stop", about: "take a bead back from its agent", can: func(s subject) bool { return s.status() == bead.InProgress || s.status() == bead.Hooked },
			lost:    func(s subject) []string { return stopped(s) },
			command: func(s subject, _ string) []string { return []string{"unsling", string(s.item.Bead.ID)} }},
		{key: "c", label: "cancel", about: "give a bead up", can: func(s subject) bool { return s.item != nil && !s.status().Finished() },
			lost:    cancelled,
			command: func(s subject, _ string) []string { return []string{"work", "cancel", string(s.item.Bead.ID)} }},
	}
}

func retryable(s subject) bool {
	return s.merge != nil && (s.merge.Request.Status == mergequeue.Conflicted || s.merge.Waiting != "")
}

func retry(s subject, _ string) []string {
	if s.is(view.NeedPause) {
		return []string{"resume", string(s.need.Scope)}
	}
	return []string{"queue", "retry", string(s.merge.ID)}
}

// stopped is what is lost when a bead is taken back.
func stopped(s subject) []string {
	b := s.item.Bead
	return []string{fmt.Sprintf("%s stops working on it; what it knows of it is gone.", b.Assignee),
		"Its unfinished changes are saved as refs/chipset/salvage/" + string(b.AssignmentID) + ".", "The bead is open again, and is handed out anew."}
}

// cancelled is what is lost when a bead is given up.
func cancelled(s subject) []string {
	var lost []string
	switch b := s.item.Bead; b.Status {
	case bead.InProgress, bead.Hooked:
		lost = stopped(s)[:2]
	case bead.Done:
		lost = []string{"Its finished work will not land; the branch " + b.Branch + " stays."}
	case bead.Open, bead.Failed, bead.Blocked, bead.Merged, bead.Closed, bead.Cancelled:
		lost = []string{"It will not be done."}
	}
	if n := len(s.item.Blocks); n > 0 {
		ids := make([]string, 0, n)
		for _, id := range s.item.Blocks[:min(n, 3)] {
			ids = append(ids, string(id))
		}
		if n > 3 {
			ids = append(ids, "…")
		}
		lost = append(lost, fmt.Sprintf("What waits for it then waits for ever: %s.", strings.Join(ids, ", ")))
	}
	return lost
}
