package actor

import (
	"context"
	"errors"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// The single transitions of a hook, for tests and repairs: they change no bead and
// send no mail.

// SetHook puts a bead on an agent's empty hook, under a new assignment. Only the
// mayor and the person may.
func (a *Actor) SetHook(ctx context.Context, name, beadName string) (hook.Hook, error) {
	id, err := a.hookOwner("hook set", name)
	if err != nil {
		return hook.Hook{}, err
	}
	if who, err := a.Agents.Get(string(id)); err == nil && who.Status == agent.Retired {
		return hook.Hook{}, state.Conflictf("agent "+name, "is retired and gets no more work")
	}
	b, err := a.Beads.Get(beadName)
	if err != nil {
		return hook.Hook{}, err
	}
	if h, err := HookOf(a.Rig, id); err != nil {
		return h, err
	}
	now := a.Clock.Now()
	return a.Hooks.By(a.ID, "").Set(ctx, id, hook.WorkItem{AssignedAt: now, AssignmentID: state.NewAssignmentID(), BeadID: b.ID, Title: b.Title}, now)
}

// ClearHook empties an agent's hook, if an assignment is given only of that one.
// Only the mayor and the person may.
func (a *Actor) ClearHook(ctx context.Context, name string, assignment state.AssignmentID) (hook.Hook, error) {
	id, err := a.hookOwner("hook clear", name)
	if err != nil {
		return hook.Hook{}, err
	}
	if h, err := HookOf(a.Rig, id); err != nil {
		return h, err
	}
	return a.Hooks.By(a.ID, "").Clear(ctx, id, assignment, a.Clock.Now())
}

func (a *Actor) hookOwner(what, name string) (state.AgentID, error) {
	if err := a.Authority(what); err != nil {
		return "", err
	}
	return Lookup(a.Rig, name)
}

// ActivateHook starts the work on the actor's own hook.
func (a *Actor) ActivateHook(ctx context.Context) (hook.Hook, error) {
	p, err := a.Present()
	if err != nil {
		return hook.Hook{}, err
	}
	if p.Session == "" {
		p.Session = state.NewSessionID()
	}
	return a.Hooks.Activate(ctx, a.ID, p.Assignment, p.Session, a.Clock.Now())
}

// CompleteHook ends the work on the actor's own hook.
func (a *Actor) CompleteHook(ctx context.Context) (hook.Hook, error) {
	p, err := a.Present()
	if err != nil {
		return hook.Hook{}, err
	}
	return a.Hooks.Complete(ctx, a.ID, p.Assignment, p.Session, a.Clock.Now())
}

// Progress records that the work on the actor's hook makes progress, at most once
// in hook.TouchInterval. It is no error if the work was taken away meanwhile.
func (a *Actor) Progress(ctx context.Context, item *hook.WorkItem) error {
	now := a.Clock.Now()
	current, err := a.Hooks.Get(string(a.ID))
	if err != nil {
		return err
	}
	if since := now.Sub(current.LastActivity.Time); since >= 0 && since < hook.TouchInterval {
		return nil // the usual case needs no lock
	}
	_, err = a.Hooks.Touch(ctx, a.ID, item.AssignmentID, item.Session, now, hook.TouchInterval)
	if errors.Is(err, state.ErrConflict) {
		return nil
	}
	return err
}
