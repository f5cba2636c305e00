package actor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// Question is a plan or a permission that an agent asked the person or the mayor for,
// and the reply. The mail is the record; there is no other.
type Question struct {
	// Name and Request are what the agent sent.
	Name    mail.Name
	Request mail.Message
	// Reply is nil while nobody replied. It decides the question only where
	// mail.AnswerOf says so.
	Reply *mail.Entry
}

// Answered reports whether there is a reply.
func (q *Question) Answered() bool { return q.Reply != nil }

// Questions returns the plans and permissions that an agent has asked for about the
// work on its hook, oldest first. It reads only mail between the agent, the mayor and
// the person since the work was assigned.
func Questions(r *rig.Rig, who state.AgentID, item *hook.WorkItem) ([]Question, error) {
	var asked []Question
	known := map[mail.Name]bool{}
	for _, reader := range []state.AgentID{state.Human, r.Mayor()} {
		err := since(r.Mailbox(reader), item.AssignedAt, []state.AgentID{who, r.Mayor()}, func(e *mail.Entry) {
			if e.Type != mail.PlanRequest && e.Type != mail.PermissionRequest || e.Ref == nil || e.Ref.AssignmentID != item.AssignmentID {
				return
			}
			if by, name := Asker(r, e); by == who && !known[name] {
				known[name] = true
				asked = append(asked, Question{Name: name, Request: e.Message})
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

// since calls each for the mail of some senders from about an instant on, archived or not.
func since(box *mail.Mailbox, from state.Time, senders []state.AgentID, each func(*mail.Entry)) error {
	wanted := func(at state.Time, sender state.AgentID) bool {
		return slices.Contains(senders, sender) && !at.Before(from.Add(-clockSlack))
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

// Unanswered returns the questions without a reply.
func Unanswered(asked []Question) []mail.Name {
	var open []mail.Name
	for i := range asked {
		if !asked[i].Answered() {
			open = append(open, asked[i].Name)
		}
	}
	return open
}

// AwaitedAnswers returns the unanswered questions of an agent whose worker has ended
// its turn and goes on with the answer. There are none while it runs.
func AwaitedAnswers(r *rig.Rig, h *hook.Hook) ([]mail.Name, error) {
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
	return Unanswered(asked), err
}

// Asker returns who waits for the answer to a request, and the name of its message:
// the sender, or behind a request that the mayor has passed on who asked the
// mayor.
func Asker(r *rig.Rig, e *mail.Entry) (state.AgentID, mail.Name) {
	if e.From != r.Mayor() || e.Thread == "" || e.Thread != e.InReplyTo {
		return e.From, e.Name
	}
	name, err := mail.ParseName(e.Thread)
	if err != nil {
		return e.From, e.Name
	}
	first, err := r.Mailbox(r.Mayor()).Get(name)
	if err != nil || first.Type != e.Type {
		return e.From, e.Name
	}
	return first.From, name
}

// Decision is an answer to a request.
type Decision struct {
	Approved bool
	Reason   string
	// Remember keeps the decision about a permission for whoever asks for the
	// same again, or with OnlyAgent for who asked now.
	Remember, OnlyAgent bool
}

// Decide answers a request in the actor's mailbox, or as the person in that
// of the mayor, who may not have passed it on yet: a plan as mayor or person,
// a permission as the person, an end as who was asked. The answer goes to who
// asked, also when the mayor passed the request on. Errors: ErrInvalid,
// state.ErrConflict.
func (a *Actor) Decide(ctx context.Context, e *mail.Entry, d Decision) (mail.Name, error) {
	what := "message " + string(e.Name)
	if err := a.mayDecide(e); err != nil {
		return "", err
	}
	if d.Remember && e.Type != mail.PermissionRequest {
		return "", Invalidf("%s asks for no permission that could be remembered", what)
	}
	if !d.Approved && strings.TrimSpace(d.Reason) == "" && e.Type != mail.PermissionRequest {
		return "", Invalidf("sending it back needs a reason")
	}
	to, asked := Asker(a.Rig, e)
	answer := mail.Answer{Approved: &d.Approved, Reason: d.Reason}
	if d.Remember {
		rule, err := a.remember(ctx, mail.AskOf(&e.Message).Rule, to, d)
		if err != nil {
			return "", err
		}
		answer.Remembered = rule.ID
	}
	meta, err := json.Marshal(answer)
	if err != nil {
		return "", err
	}
	word := "approved"
	if !d.Approved {
		word = "denied"
	}
	// The id makes a second answer the first one again: a decision is made once.
	n, err := a.SendMail(ctx, mail.Message{Type: responseTo(e.Type), Priority: mail.Urgent, Subject: word + ": " + e.Subject, Body: d.Reason,
		Thread: string(asked), InReplyTo: string(asked), Ref: e.Ref, Metadata: meta, ID: "decision:" + word + ":" + string(asked)}, string(to))
	if err != nil {
		return n, err
	}
	if e.Read {
		return n, nil
	}
	if err := a.Mailbox(e.To).MarkRead(ctx, e.Name); err != nil {
		return n, fmt.Errorf("the answer is sent, but %s is not marked: %w", e.Name, err)
	}
	return n, nil
}

// mayDecide returns an ErrConflict unless the actor may answer a request.
func (a *Actor) mayDecide(e *mail.Entry) error {
	what := "message " + string(e.Name)
	if e.To != a.ID && a.ID != state.Human {
		return state.Conflictf(what, "it asks %s, and you speak as %s", e.To, a.ID)
	}
	switch e.Type {
	case mail.PlanRequest:
		return a.Authority("approving a plan")
	case mail.PermissionRequest:
		if a.ID != state.Human {
			return state.Conflictf("permission", "only the person grants one, and you speak as %s", a.ID)
		}
		return nil
	case mail.ShutdownRequest:
		who, err := a.Agents.Get(string(a.ID))
		if err == nil && who.Role != agent.Crew {
			return state.Conflictf(what, "the process of %s answers it", a.ID)
		}
		return err
	default:
		return Invalidf("%s is a %s and asks for no decision", what, e.Type)
	}
}

// WaitDecision waits for the answer to a request of the actor, and marks it
// as read. Mail that only looks like one decides nothing. Errors: ErrTimeout.
func (a *Actor) WaitDecision(ctx context.Context, asked mail.Name, timeout time.Duration) (mail.Answer, error) {
	box := a.Mailbox(a.ID)
	var answer mail.Answer
	var found mail.Entry
	err := Wait(ctx, a.Rig, "decision", timeout, func() (bool, error) {
		all, _, err := box.List()
		if err != nil {
			return false, err
		}
		for i := range all {
			e := &all[i]
			if e.InReplyTo != string(asked) && e.Thread != string(asked) {
				continue
			}
			var decides bool
			if answer, decides = mail.AnswerOf(&e.Message, a.Mayor()); decides {
				found = *e
				return true, nil
			}
		}
		return false, nil
	}, box.Dir())
	if err != nil || found.Read {
		return answer, err
	}
	return answer, a.Mailbox(a.ID).MarkRead(ctx, found.Name)
}
