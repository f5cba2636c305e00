package actor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// RequestPlan mails the actor's plan to the mayor, who decides or passes it
// on to the person. The actor must not change anything before it is approved.
func (a *Actor) RequestPlan(ctx context.Context, plan string) (mail.Name, error) {
	if strings.TrimSpace(plan) == "" {
		return "", Invalidf("the plan is empty")
	}
	p, err := a.Present()
	if err != nil {
		return "", err
	}
	if asked, err := a.askedBefore(func(m *mail.Message) bool { return m.Type == mail.PlanRequest && m.Body == plan }); err != nil || asked != "" {
		return asked, err
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
// already changed something. A worktree that can't be examined counts as unchanged.
func (a *Actor) untouched(ctx context.Context, p *Present) error {
	if a.Git == nil || p.Assignment == "" || !errors.Is(CheckPlan(a.Rig, a.ID, p.Assignment), ErrNoPlan) {
		return nil
	}
	if changed, err := carry.WorktreeChanged(ctx, a.Rig, a.ID); err != nil || !changed {
		return nil //nolint:nilerr // there may be no worktree at all
	}
	return WithHint(state.Conflictf("plan of "+string(p.Assignment), "the worktree was changed before the plan is approved"),
		"undo the changes (git status lists them), then send the plan again")
}

// ref returns a reference to the present work, or nil if there is none.
func (p *Present) ref() *mail.Ref {
	if p.Bead == "" && p.Assignment == "" {
		return nil
	}
	return &mail.Ref{BeadID: p.Bead, AssignmentID: p.Assignment, Session: p.Session}
}

// ErrNoPlan is returned when a worker wants to finish work whose plan was not approved.
var ErrNoPlan = errors.New("its plan is not approved")

// MustPlan reports whether the worker of a bead must have its plan approved
// before it changes anything.
func MustPlan(r *rig.Rig, b *bead.Bead) bool {
	if r.Def == nil {
		return false
	}
	preset, ok := r.Def.Worker.Preset(cmp.Or(b.Worker, r.Def.Worker.Default))
	return ok && preset.Plan
}

// CheckPlan returns an ErrNoPlan while the worker of the assignment on an agent's
// hook must not change anything yet: it must plan first, and neither the mayor nor
// the person has approved a plan for this assignment, or the latest answer sent it
// back.
func CheckPlan(r *rig.Rig, id state.AgentID, a state.AssignmentID) error {
	h, err := r.Hooks.Get(string(id))
	if err != nil || h.WorkItem == nil || h.Assignment() != a {
		return err
	}
	b, err := r.Beads.Get(string(h.WorkItem.BeadID))
	if err != nil || !MustPlan(r, &b) {
		return err
	}
	latest, err := lastPlanAnswer(r, id, h.WorkItem)
	switch {
	case err != nil:
		return err
	case latest == nil:
		return fmt.Errorf("assignment %s: %w", a, ErrNoPlan)
	case !*latest.Approved:
		return fmt.Errorf("assignment %s: %w: it was sent back: %s", a, ErrNoPlan, latest.Reason)
	}
	return nil
}

func lastPlanAnswer(r *rig.Rig, id state.AgentID, item *hook.WorkItem) (*mail.Answer, error) {
	var latest *mail.Answer
	err := since(r.Mailbox(id), item.AssignedAt, []state.AgentID{state.Human, r.Mayor()}, func(e *mail.Entry) {
		if e.Type != mail.PlanResponse || e.Ref == nil || e.Ref.AssignmentID != item.AssignmentID {
			return
		}
		if answer, decides := mail.AnswerOf(&e.Message, r.Mayor()); decides {
			latest = &answer
		}
	})
	return latest, err
}
