// Package act holds what a person can do on a board: which acts a need, an agent, a bead or a
// merge request offers, what the board asks first, what the act loses, and its command line.
//
// An act is a command line, run by the code of the command line: a board can do what chipset
// can, and is refused what chipset is refused.
package act

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Subject is what acts are about. Fields that don't apply are nil or "".
type Subject struct {
	Need  *view.Need
	Agent *view.AgentStatus
	Item  *view.WorkItem
	Merge *view.QueueEntry
	// Mail is a message of the person's mailbox.
	Mail mail.Name
}

// Status is that of the bead, or "".
func (s Subject) Status() bead.Status {
	if s.Item == nil {
		return ""
	}
	return s.Item.Bead.Status
}

// Is reports whether the subject is a need of one of some kinds.
func (s Subject) Is(kinds ...view.NeedKind) bool {
	return s.Need != nil && slices.Contains(kinds, s.Need.Kind)
}

// Act is one thing that a person can do.
type Act struct {
	// Key is the key that does it, Name its name.
	Key, Name string
	// About explains it in the help.
	About string
	Can   func(s Subject) bool
	// Ask returns a question to the person, and the text that the answer starts with; nil asks nothing.
	Ask func(s Subject) (question, begin string)
	// Lost names what is lost, for a confirmation; nil needs no confirmation.
	Lost func(s Subject) []string
	// Command returns the command line without its first word. text is the person's answer.
	Command func(s Subject, text string) []string
	// Terminal: the command takes the person's terminal.
	Terminal bool
}

// Of returns the acts that a subject offers, in the order of All.
func Of(s Subject) []Act {
	return slices.DeleteFunc(All(), func(a Act) bool { return !a.Can(s) })
}

// Named returns the act with a name, and whether there is one.
func Named(name string) (Act, bool) {
	all := All()
	if at := slices.IndexFunc(all, func(a Act) bool { return a.Name == name }); at >= 0 {
		return all[at], true
	}
	return Act{}, false
}

// All returns all acts, in the order in which they are offered.
func All() []Act { return append(WithoutMail(), ofMail()...) }

// WithoutMail returns all acts except those on a message.
func WithoutMail() []Act {
	return slices.Concat(decisions(), ofWork(), ofAgents(), endings())
}

// OnTerminal returns the acts of a board on a terminal: those without mail, and attach.
func OnTerminal() []Act {
	return append(WithoutMail(), Act{Key: "a", Name: "attach", Terminal: true, About: "take over the session of an agent's worker; leaving its client gives it back",
		Can: func(s Subject) bool {
			return s.Need == nil && s.Agent != nil && s.Agent.Role == agent.Polecat && s.Agent.Hook == hook.Active && s.Agent.Session != "" && s.Agent.Lease == nil
		},
		Command: func(s Subject, _ string) []string { return []string{"attach", string(s.Agent.ID)} }})
}

// decisions are the acts on needs.
func decisions() []Act {
	decides := func(s Subject) bool {
		return s.Is(view.NeedPermission, view.NeedPlan, view.NeedProtected, view.NeedHost)
	}
	return []Act{
		{Key: "a", Name: "approve", About: "approve a permission, a plan, a host or a change to protected files", Can: decides,
			Command: func(s Subject, _ string) []string { return []string{"approve", s.Need.Handle()} }},
		{Key: "d", Name: "deny", About: "deny one of those, with a reason", Can: decides,
			Ask:     func(Subject) (string, string) { return "Why not?", "" },
			Command: func(s Subject, text string) []string { return []string{"deny", s.Need.Handle(), "--reason=" + text} }},
		{Key: "r", Name: "answer", About: "answer a question, or reopen a blocked bead with the answer",
			Can:     func(s Subject) bool { return s.Is(view.NeedQuestion, view.NeedBlocked) },
			Ask:     func(Subject) (string, string) { return "Answer:", "" },
			Command: func(s Subject, text string) []string { return []string{"answer", "--", s.Need.Handle(), text} }},
	}
}

// ofWork are the acts on beads and merge requests.
func ofWork() []Act {
	return []Act{
		{Key: "o", Name: "reopen", About: "reopen a bead that is blocked, failed, closed or cancelled",
			Can: func(s Subject) bool {
				return slices.Contains([]bead.Status{bead.Blocked, bead.Failed, bead.Closed, bead.Cancelled}, s.Status())
			},
			Command: func(s Subject, _ string) []string { return []string{"reopen", string(s.Item.Bead.ID)} }},
		{Key: "t", Name: "retry", About: "retry a merge request, or end a pause",
			Can: func(s Subject) bool { return retryable(s) || s.Is(view.NeedPause) }, Command: retry},
		{Key: "x", Name: "drop", About: "drop a merge request", Can: func(s Subject) bool { return s.Merge != nil },
			Ask: func(Subject) (string, string) { return "Why is it dropped?", "" },
			Lost: func(s Subject) []string {
				return []string{fmt.Sprintf("%s will not land, and %s will wait for you.", s.Merge.ID, s.Merge.BeadID),
					"Its branch " + s.Merge.SourceBranch + " is kept."}
			},
			Command: func(s Subject, text string) []string {
				return []string{"queue", "drop", string(s.Merge.ID), "--reason=" + text}
			}},
		{Key: "p", Name: "priority", About: "change the priority of a bead that no agent works on",
			Can: func(s Subject) bool { return s.Item != nil && s.Item.Bead.Editable() },
			Ask: func(s Subject) (string, string) { return "Priority, P1 (first) to P3:", string(s.Item.Bead.Priority) },
			Command: func(s Subject, text string) []string {
				return []string{"work", "edit", string(s.Item.Bead.ID), "--priority=" + strings.ToUpper(text)}
			}},
	}
}

// ofAgents are the acts on agents.
func ofAgents() []Act {
	agentOf := func(s Subject) bool { return s.Agent != nil && s.Agent.Role != agent.Human }
	return []Act{
		{Key: "n", Name: "nudge", About: "nudge an agent: a hint that it sees at its next step", Can: agentOf,
			Ask: func(s Subject) (string, string) { return "Nudge to " + string(s.Agent.ID) + ":", "" },
			Command: func(s Subject, text string) []string {
				return []string{"nudge", "send", string(s.Agent.ID), "--type=sync_request", "--message=" + text}
			}},
		{Key: "m", Name: "mail", About: "mail an agent: the first line is the subject", Can: agentOf,
			Ask: func(s Subject) (string, string) { return "Mail to " + string(s.Agent.ID) + ":", "" },
			Command: func(s Subject, text string) []string {
				subject, body, _ := strings.Cut(strings.TrimSpace(text), "\n")
				return []string{"mail", "send", string(s.Agent.ID), "--subject=" + strings.TrimSpace(subject), "--body=" + strings.TrimSpace(body)}
			}},
	}
}

// endings are the acts that end the work on a bead.
func endings() []Act {
	return []Act{
		{Key: "s", Name: "stop", About: "take a bead back from its agent",
			Can:     func(s Subject) bool { return s.Status() == bead.InProgress || s.Status() == bead.Hooked },
			Lost:    stopped,
			Command: func(s Subject, _ string) []string { return []string{"unsling", string(s.Item.Bead.ID)} }},
		{Key: "c", Name: "cancel", About: "cancel a bead",
			Can:  func(s Subject) bool { return s.Item != nil && !s.Status().Finished() },
			Lost: cancelled,
			Command: func(s Subject, _ string) []string {
				return []string{"work", "cancel", string(s.Item.Bead.ID)}
			}},
	}
}

// ofMail are the acts on a message.
func ofMail() []Act {
	letter := func(s Subject) bool { return s.Mail != "" }
	return []Act{
		{Key: "y", Name: "reply", About: "reply to a message", Can: letter,
			Ask: func(Subject) (string, string) { return "Reply:", "" },
			Command: func(s Subject, text string) []string {
				return []string{"mail", "reply", string(s.Mail), "--body=" + text}
			}},
		{Key: "e", Name: "read", About: "mark a message as read", Can: letter,
			Command: func(s Subject, _ string) []string { return []string{"mail", "read", string(s.Mail)} }},
	}
}

func retryable(s Subject) bool {
	return s.Merge != nil && (s.Merge.Request.Status == mergequeue.Conflicted || s.Merge.Waiting != "")
}

func retry(s Subject, _ string) []string {
	if s.Is(view.NeedPause) {
		return []string{"resume", string(s.Need.Scope)}
	}
	return []string{"queue", "retry", string(s.Merge.ID)}
}

// stopped names what is lost when a bead is taken back.
func stopped(s Subject) []string {
	b := s.Item.Bead
	return []string{fmt.Sprintf("%s stops working on it, and its session is lost.", b.Assignee),
		"Its unfinished changes are saved as refs/chipset/salvage/" + string(b.AssignmentID) + ".", "The bead is opened, and will be assigned again."}
}

// cancelled names what is lost when a bead is cancelled.
func cancelled(s Subject) []string {
	var lost []string
	switch b := s.Item.Bead; b.Status {
	case bead.InProgress, bead.Hooked:
		lost = stopped(s)[:2]
	case bead.Done:
		lost = []string{"Its finished work will not land; the branch " + b.Branch + " is kept."}
	case bead.Open, bead.Failed, bead.Blocked, bead.Merged, bead.Closed, bead.Cancelled:
		lost = []string{"It will not be done."}
	}
	const most = 3
	if len(s.Item.Blocks) > 0 {
		lost = append(lost, fmt.Sprintf("The beads that wait for it can't start any more: %s.", wording.JoinFirst(s.Item.Blocks, most)))
	}
	return lost
}
