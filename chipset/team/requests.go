package team

import (
	"errors"
	"time"

	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

// Asked is a question about an assignment that its agent put to the person or
// the mayor, and what came back.
type Asked struct {
	// Name and Request are what the agent sent.
	Name    mail.Name
	Request mail.Message
	// Reply is what answered it, nil while nobody did. It decides the question
	// only where AnswerOf says so.
	Reply *mail.Entry
}

// Answered tells whether anything came back.
func (a *Asked) Answered() bool { return a.Reply != nil }

// Questions are the plans and permissions that an agent has asked for about the
// work on its hook, in the order of time. It reads no other mail than that of
// the agents who can have to do with them, since the work was assigned.
func Questions(r *rig.Rig, who state.AgentID, item *hook.WorkItem) ([]Asked, error) {
	var asked []Asked
	known := map[mail.Name]bool{}
	for _, reader := range []state.AgentID{state.Human, r.Mayor()} {
		err := since(r.Mailbox(reader), item.AssignedAt, []state.AgentID{who, r.Mayor()}, func(e *mail.Entry) {
			if e.Type != mail.PlanRequest && e.Type != mail.PermissionRequest || e.Ref == nil || e.Ref.AssignmentID != item.AssignmentID {
				return
			}
			if by, name := Asker(r, e); by == who && !known[name] {
				known[name] = true
				asked = append(asked, Asked{Name: name, Request: e.Message})
			}
		})
		if err != nil {
			return nil, err
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	err := since(r.Mailbox(who), item.AssignedAt, []state.AgentID{state.Human, r.Mayor()}, func(e *mail.Entry) {
		for i := range asked {
			if name := string(asked[i].Name); asked[i].Reply == nil && (e.InReplyTo == name || e.Thread == name) {
				asked[i].Reply = e
			}
		}
	})
	return asked, err
}

// clockSlack is by how much a clock may have been set back while work was on a
// hook. Older mail is not opened; what it speaks of is decided by its reference.
const clockSlack = 24 * time.Hour

// since goes through the mail of some senders from about an instant on, archived or not.
func since(box *mail.Mailbox, from state.Time, senders []state.AgentID, each func(*mail.Entry)) error {
	wanted := func(at state.Time, sender state.AgentID) bool {
		for _, s := range senders {
			if sender == s {
				return !at.Before(from.Add(-clockSlack))
			}
		}
		return false
	}
	for _, archived := range []bool{true, false} { // oldest first
		found, err := box.Select(archived, wanted)
		if err != nil {
			return err
		}
		for i := range found {
			each(&found[i])
		}
	}
	return nil
}

// Open are the questions that nobody has answered.
func Open(asked []Asked) []mail.Name {
	var open []mail.Name
	for i := range asked {
		if !asked[i].Answered() {
			open = append(open, asked[i].Name)
		}
	}
	return open
}

// Waits are the unanswered questions that an agent's work stands still for: its
// worker has ended its turn and goes on with the answer. None while it runs.
func Waits(r *rig.Rig, h *hook.Hook) ([]mail.Name, error) {
	if h.Status != hook.Active || h.WorkItem == nil || h.WorkItem.Session == "" {
		return nil, nil
	}
	exit, found, err := r.WorkerExit(h.WorkItem.Session)
	if err != nil && !errors.Is(err, process.ErrBadRecord) {
		return nil, err
	}
	if found && !exit.Done {
		return nil, nil
	}
	if _, err := r.Retire.Get(string(h.WorkItem.AssignmentID)); err == nil {
		return nil, nil // it is over
	}
	asked, err := Questions(r, h.AgentID, h.WorkItem)
	return Open(asked), err
}
