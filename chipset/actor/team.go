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

// RequestPlan mails the speaker's plan to the mayor, who decides or passes it
// on to the person. Nothing is to be changed before it is approved.
func (s *Speaker) RequestPlan(ctx context.Context, plan string) (mail.Name, error) {
	if strings.TrimSpace(plan) == "" {
		return "", Invalidf("the plan is empty")
	}
	p, err := s.Present()
	if err != nil {
		return "", err
	}
	if err := s.untouched(ctx, &p); err != nil {
		return "", err
	}
	subject := "plan of " + string(s.ID)
	if p.Bead != "" {
		subject = "plan for " + string(p.Bead)
	}
	to := s.Mayor()
	if s.ID == to {
		to = state.Human
	}
	return s.SendMail(ctx, mail.Message{Type: mail.PlanRequest, Subject: subject, Body: plan, Ref: p.ref()}, string(to))
}

// untouched returns an ErrConflict for a worker that must plan first and has
// changed something already. What can't be looked at is not held against it.
func (s *Speaker) untouched(ctx context.Context, p *Present) error {
	if s.Git == nil || p.Assignment == "" || !errors.Is(team.CheckPlan(s.Rig, s.ID, p.Assignment), team.ErrNoPlan) {
		return nil
	}
	if changed, err := carry.WorktreeChanged(ctx, s.Rig, s.ID); err != nil || !changed {
		return nil //nolint:nilerr // there may be no worktree at all
	}
	return WithHint(state.Conflictf("plan of "+string(p.Assignment), "the worktree has changed, and nothing is changed before the plan is approved"),
		"undo it (git status shows what), then send the plan again")
}

// ref is what the speaker works on, for a message; nil when it works on nothing.
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
func (s *Speaker) RequestPermission(ctx context.Context, rule, why string) (mail.Name, *permission.Rule, error) {
	if err := permission.CheckRule(rule); err != nil {
		return "", nil, Invalidf("%v", err)
	}
	known, err := s.Permissions.Find(rule, s.ID)
	if err == nil {
		s.Events.Tell(event.PermissionRemembered(s.ID, known.ID, string(known.Decision), rule))
		return "", &known, nil
	}
	if !errors.Is(err, state.ErrNotFound) {
		return "", nil, err
	}
	meta, err := json.Marshal(team.Ask{Rule: rule})
	if err != nil {
		return "", nil, err
	}
	p, err := s.Present()
	if err != nil {
		return "", nil, err
	}
	body := "It asks for: " + rule + "\n\n" + why
	n, err := s.SendMail(ctx, mail.Message{Type: mail.PermissionRequest, Priority: mail.Urgent, Subject: string(s.ID) + " asks for a permission",
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

// Decide answers a request in the speaker's mailbox, or as the person in that
// of the mayor, who may not have passed it on yet: a plan as mayor or person,
// a permission as the person, an end as who was asked. The answer goes to who
// asked, also when the mayor passed the request on. Errors: ErrInvalid,
// state.ErrConflict.
func (s *Speaker) Decide(ctx context.Context, e *mail.Entry, d Decision) (mail.Name, error) {
	what := "message " + string(e.Name)
	if err := s.mayDecide(e); err != nil {
		return "", err
	}
	if d.Remember && e.Type != mail.PermissionRequest {
		return "", Invalidf("%s asks for no permission that could be remembered", what)
	}
	if !d.Approved && strings.TrimSpace(d.Reason) == "" && e.Type != mail.PermissionRequest {
		return "", Invalidf("sending it back needs a reason")
	}
	to, asked := team.Asker(s.Rig, e)
	answer := team.Answer{Approved: &d.Approved, Reason: d.Reason}
	if d.Remember {
		rule, err := s.remember(ctx, team.AskOf(&e.Message).Rule, to, d)
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
	n, err := s.SendMail(ctx, mail.Message{Type: responseTo(e.Type), Priority: mail.Urgent, Subject: word + ": " + e.Subject, Body: d.Reason,
		Thread: string(asked), InReplyTo: string(asked), Ref: e.Ref, Metadata: meta, ID: "decision:" + word + ":" + string(asked)}, string(to))
	if err != nil {
		return n, err
	}
	if e.Read {
		return n, nil
	}
	if err := s.Mailbox(e.To).MarkRead(ctx, e.Name); err != nil {
		return n, fmt.Errorf("the answer is sent, but %s is not marked: %w", e.Name, err)
	}
	return n, nil
}

// mayDecide tells who decides what.
func (s *Speaker) mayDecide(e *mail.Entry) error {
	what := "message " + string(e.Name)
	if e.To != s.ID && s.ID != state.Human {
		return state.Conflictf(what, "it asks %s, and you speak as %s", e.To, s.ID)
	}
	switch e.Type {
	case mail.PlanRequest:
		return s.Authority("approving a plan")
	case mail.PermissionRequest:
		if s.ID != state.Human {
			return state.Conflictf("permission", "only the person grants one, and you speak as %s", s.ID)
		}
		return nil
	case mail.ShutdownRequest:
		a, err := s.Agents.Get(string(s.ID))
		if err == nil && a.Role != agent.Crew {
			return state.Conflictf(what, "the process of %s answers it", s.ID)
		}
		return err
	default:
		return Invalidf("%s is a %s and asks for no decision", what, e.Type)
	}
}

func (s *Speaker) remember(ctx context.Context, rule string, asker state.AgentID, d Decision) (permission.Rule, error) {
	if err := permission.CheckRule(rule); err != nil {
		return permission.Rule{}, Invalidf("there is nothing to remember: %v", err)
	}
	holds := permission.Rule{Rule: rule, Decision: permission.Approve, Reason: d.Reason, By: s.ID, CreatedAt: s.Clock.Now()}
	if !d.Approved {
		holds.Decision = permission.Deny
	}
	if d.OnlyAgent {
		holds.AgentID = asker
	}
	holds.ID = permission.IDOf(rule, holds.AgentID)
	return s.Permissions.Decide(ctx, holds)
}

// Revoke forgets a decision that was remembered. Only the person may.
func (s *Speaker) Revoke(id string) (permission.Rule, error) {
	if s.ID != state.Human {
		return permission.Rule{}, state.Conflictf("permission "+id, "only the person revokes one, and you speak as %s", s.ID)
	}
	return s.Permissions.Revoke(id, s.ID)
}

// WaitDecision waits for the answer to a request of the speaker, and marks it
// as read. Mail that only looks like one decides nothing. Errors: ErrTimeout.
func (s *Speaker) WaitDecision(ctx context.Context, asked mail.Name, timeout time.Duration) (team.Answer, error) {
	box := s.Mailbox(s.ID)
	var answer team.Answer
	var found mail.Entry
	err := Wait(ctx, s.Rig, "decision", timeout, func() (bool, error) {
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
			if answer, decides = team.AnswerOf(s.Rig, &e.Message); decides {
				found = *e
				return true, nil
			}
		}
		return false, nil
	}, box.Dir())
	if err != nil || found.Read {
		return answer, err
	}
	return answer, s.Mailbox(s.ID).MarkRead(ctx, found.Name)
}

// IdleReason is why an agent has nothing in hand.
type IdleReason string

// IdleReasons are the reasons that an idle notification may give: it waits for
// work, it was interrupted, it failed.
func IdleReasons() []IdleReason { return []IdleReason{"available", "interrupted", "failed"} }

// Idle tells the mayor that the speaker has nothing in hand, and why. While an
// earlier one of it waits unread there is no second: its name comes back.
func (s *Speaker) Idle(ctx context.Context, reason IdleReason, summary string) (mail.Name, error) {
	if !slices.Contains(IdleReasons(), reason) {
		return "", Invalidf("%q is no reason to be idle: one of %v", reason, IdleReasons())
	}
	unread, _, err := s.Mailbox(s.Mayor()).Unread()
	if err != nil {
		return "", err
	}
	for i := range unread {
		if e := &unread[i]; e.From == s.ID && e.Type == mail.IdleNotification {
			return e.Name, nil
		}
	}
	meta, err := json.Marshal(map[string]any{"idle_reason": reason, "summary": summary})
	if err != nil {
		return "", err
	}
	p, err := s.Present()
	if err != nil {
		return "", err
	}
	return s.SendMail(ctx, mail.Message{Type: mail.IdleNotification, Priority: mail.Low, Subject: string(s.ID) + " is idle: " + string(reason),
		Body: summary, Ref: p.ref(), Metadata: meta}, string(s.Mayor()))
}

// Card is what may be changed of an agent's card; nil is left as it is.
type Card struct {
	Description             *string
	Capabilities, AllowFrom *[]string
	MaxTasks                *int
}

// SetCard changes an agent's card: one's own, or as mayor or person anybody's.
// Errors: ErrInvalid, state.ErrConflict.
func (s *Speaker) SetCard(ctx context.Context, id state.AgentID, c Card) (agent.Agent, error) {
	if id != s.ID {
		if err := s.Authority("changing the card of " + string(id)); err != nil {
			return agent.Agent{}, err
		}
	}
	if c.Description != nil && *c.Description != "" {
		if err := OneLine("the description", *c.Description, agent.MaxDescription); err != nil {
			return agent.Agent{}, err
		}
	}
	return s.Agents.ChangeCard(ctx, s.ID, id, func(a *agent.Agent) error {
		if c.Description != nil {
			a.Description = *c.Description
		}
		if c.Capabilities != nil {
			a.Capabilities = Words(*c.Capabilities)
		}
		if c.AllowFrom != nil {
			a.AllowFrom = Words(*c.AllowFrom)
		}
		if c.MaxTasks != nil {
			a.MaxTasks = *c.MaxTasks
		}
		if err := a.CheckCard(); err != nil {
			return Invalidf("%v", err)
		}
		a.UpdatedAt = s.Clock.Now()
		return nil
	})
}
