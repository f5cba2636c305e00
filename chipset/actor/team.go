package actor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/team"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/permission"
)

// RequestPlan mails the actor's plan to the mayor, who decides or passes it
// on to the person. Nothing is to be changed before it is approved.
func (a *Actor) RequestPlan(ctx context.Context, plan string) (mail.Name, error) {
	if strings.TrimSpace(plan) == "" {
		return "", Invalidf("the plan is empty")
	}
	p, err := a.Present()
	if err != nil {
		return "", err
	}
	if err := a.untouched(ctx, &p); err != nil {
		return "", err
	}
	subject := "plan of " + string(a.ID)
	if p.Bead != "" {
		subject = "plan for " + string(p.Bead)
	}
	to := a.Mayor()
	if a.ID == to {
		to = state.Human
	}
	return a.SendMail(ctx, mail.Message{Type: mail.PlanRequest, Subject: subject, Body: plan, Ref: p.ref()}, string(to))
}

// untouched returns an ErrConflict for a worker that must plan first and has
// changed something already. What can't be looked at is not held against it.
func (a *Actor) untouched(ctx context.Context, p *Present) error {
	if a.Git == nil || p.Assignment == "" || !errors.Is(team.CheckPlan(a.Rig, a.ID, p.Assignment), team.ErrNoPlan) {
		return nil
	}
	if changed, err := carry.WorktreeChanged(ctx, a.Rig, a.ID); err != nil || !changed {
		return nil //nolint:nilerr // there may be no worktree at all
	}
	return WithHint(state.Conflictf("plan of "+string(p.Assignment), "the worktree has changed, and nothing is changed before the plan is approved"),
		"undo it (git status shows what), then send the plan again")
}

// ref is what the actor works on, for a message; nil when it works on nothing.
func (p *Present) ref() *mail.Ref {
	if p.Bead == "" && p.Assignment == "" {
		return nil
	}
	return &mail.Ref{BeadID: p.Bead, AssignmentID: p.Assignment, Session: p.Session}
}

// RequestPermission asks the person for something, named by a rule: one line
// that says all of it, such as Bash(npm publish). What the person has decided
// for good is answered at once, with the rule; then no mail is sent. Errors:
// ErrInvalid.
func (a *Actor) RequestPermission(ctx context.Context, rule, why string) (mail.Name, *permission.Rule, error) {
	if err := permission.CheckRule(rule); err != nil {
		return "", nil, Invalidf("%v", err)
	}
	known, err := a.Permissions.Find(rule, a.ID)
	if err == nil {
		a.Events.Tell(event.PermissionRemembered(a.ID, known.ID, string(known.Decision), rule))
		return "", &known, nil
	}
	if !errors.Is(err, state.ErrNotFound) {
		return "", nil, err
	}
	meta, err := json.Marshal(team.Ask{Rule: rule})
	if err != nil {
		return "", nil, err
	}
	p, err := a.Present()
	if err != nil {
		return "", nil, err
	}
	body := "It asks for: " + rule + "\n\n" + why
	n, err := a.SendMail(ctx, mail.Message{Type: mail.PermissionRequest, Priority: mail.Urgent, Subject: string(a.ID) + " asks for a permission",
		Body: body, Ref: p.ref(), Metadata: meta}, string(state.Human))
	return n, nil, err
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
	to, asked := team.Asker(a.Rig, e)
	answer := team.Answer{Approved: &d.Approved, Reason: d.Reason}
	if d.Remember {
		rule, err := a.remember(ctx, team.AskOf(&e.Message).Rule, to, d)
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

// mayDecide tells who decides what.
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

func (a *Actor) remember(ctx context.Context, rule string, asker state.AgentID, d Decision) (permission.Rule, error) {
	if err := permission.CheckRule(rule); err != nil {
		return permission.Rule{}, Invalidf("there is nothing to remember: %v", err)
	}
	holds := permission.Rule{Rule: rule, Decision: permission.Approve, Reason: d.Reason, By: a.ID, CreatedAt: a.Clock.Now()}
	if !d.Approved {
		holds.Decision = permission.Deny
	}
	if d.OnlyAgent {
		holds.AgentID = asker
	}
	holds.ID = permission.IDOf(rule, holds.AgentID)
	return a.Permissions.Decide(ctx, holds)
}

// Revoke forgets a decision that was remembered. Only the person may.
func (a *Actor) Revoke(id string) (permission.Rule, error) {
	if a.ID != state.Human {
		return permission.Rule{}, state.Conflictf("permission "+id, "only the person revokes one, and you speak as %s", a.ID)
	}
	return a.Permissions.Revoke(id, a.ID)
}

// WaitDecision waits for the answer to a request of the actor, and marks it
// as read. Mail that only looks like one decides nothing. Errors: ErrTimeout.
func (a *Actor) WaitDecision(ctx context.Context, asked mail.Name, timeout time.Duration) (team.Answer, error) {
	box := a.Mailbox(a.ID)
	var answer team.Answer
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
			if answer, decides = team.AnswerOf(a.Rig, &e.Message); decides {
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

// IdleReason is why an agent has nothing in hand.
type IdleReason string

// IdleReasons are the reasons that an idle notification may give: it waits for
// work, it was interrupted, it failed.
func IdleReasons() []IdleReason { return []IdleReason{"available", "interrupted", "failed"} }

// Idle tells the mayor that the actor has nothing in hand, and why. While an
// earlier one of it waits unread there is no second: its name comes back.
func (a *Actor) Idle(ctx context.Context, reason IdleReason, summary string) (mail.Name, error) {
	if !slices.Contains(IdleReasons(), reason) {
		return "", Invalidf("%q is no reason to be idle: one of %v", reason, IdleReasons())
	}
	unread, _, err := a.Mailbox(a.Mayor()).Unread()
	if err != nil {
		return "", err
	}
	for i := range unread {
		if e := &unread[i]; e.From == a.ID && e.Type == mail.IdleNotification {
			return e.Name, nil
		}
	}
	meta, err := json.Marshal(map[string]any{"idle_reason": reason, "summary": summary})
	if err != nil {
		return "", err
	}
	p, err := a.Present()
	if err != nil {
		return "", err
	}
	return a.SendMail(ctx, mail.Message{Type: mail.IdleNotification, Priority: mail.Low, Subject: string(a.ID) + " is idle: " + string(reason),
		Body: summary, Ref: p.ref(), Metadata: meta}, string(a.Mayor()))
}

// Card is what may be changed of an agent's card; nil is left as it is.
type Card struct {
	Description             *string
	Capabilities, AllowFrom *[]string
	MaxTasks                *int
}

// SetCard changes an agent's card: one's own, or as mayor or person anybody's.
// Errors: ErrInvalid, state.ErrConflict.
func (a *Actor) SetCard(ctx context.Context, id state.AgentID, c Card) (agent.Agent, error) {
	if id != a.ID {
		if err := a.Authority("changing the card of " + string(id)); err != nil {
			return agent.Agent{}, err
		}
	}
	if c.Description != nil && *c.Description != "" {
		if err := OneLine("the description", *c.Description, agent.MaxDescription); err != nil {
			return agent.Agent{}, err
		}
	}
	return a.Agents.ChangeCard(ctx, a.ID, id, func(card *agent.Agent) error {
		if c.Description != nil {
			card.Description = *c.Description
		}
		if c.Capabilities != nil {
			card.Capabilities = Words(*c.Capabilities)
		}
		if c.AllowFrom != nil {
			card.AllowFrom = Words(*c.AllowFrom)
		}
		if c.MaxTasks != nil {
			card.MaxTasks = *c.MaxTasks
		}
		if err := card.CheckCard(); err != nil {
			return Invalidf("%v", err)
		}
		card.UpdatedAt = a.Clock.Now()
		return nil
	})
}
