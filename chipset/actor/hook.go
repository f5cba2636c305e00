package actor

import (
	"context"
	"errors"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// The bare transitions of a hook, for tests and repair: they move no bead and send
// no mail.

// SetHook hangs a bead on an agent's empty hook, under a new assignment. Only the
// mayor and the person may.
func (s *Speaker) SetHook(ctx context.Context, name, beadName string) (hook.Hook, error) {
	id, err := s.hookOwner("hook set", name)
	if err != nil {
		return hook.Hook{}, err
	}
	if who, err := s.Agents.Get(string(id)); err == nil && who.Status == agent.Retired {
		return hook.Hook{}, state.Conflictf("agent "+name, "is retired and gets no more work")
	}
	b, err := s.Beads.Get(beadName)
	if err != nil {
		return hook.Hook{}, err
	}
	if h, err := HookOf(s.Rig, id); err != nil {
		return h, err
	}
	now := s.Clock.Now()
	return s.Hooks.By(s.ID, "").Set(ctx, id, hook.WorkItem{AssignedAt: now, AssignmentID: state.NewAssignmentID(), BeadID: b.ID, Title: b.Title}, now)
}

// ClearHook takes the work off an agent's hook; with an assignment that one only.
// Only the mayor and the person may.
func (s *Speaker) ClearHook(ctx context.Context, name string, a state.AssignmentID) (hook.Hook, error) {
	id, err := s.hookOwner("hook clear", name)
	if err != nil {
		return hook.Hook{}, err
	}
	if h, err := HookOf(s.Rig, id); err != nil {
		return h, err
	}
	return s.Hooks.By(s.ID, "").Clear(ctx, id, a, s.Clock.Now())
}

func (s *Speaker) hookOwner(what, name string) (state.AgentID, error) {
	if err := s.Authority(what); err != nil {
		return "", err
	}
	return Lookup(s.Rig, name)
}

// ActivateHook begins what hangs on the speaker's own hook.
func (s *Speaker) ActivateHook(ctx context.Context) (hook.Hook, error) {
	p, err := s.Present()
	if err != nil {
		return hook.Hook{}, err
	}
	if p.Session == "" {
		p.Session = state.NewSessionID()
	}
	return s.Hooks.Activate(ctx, s.ID, p.Assignment, p.Session, s.Clock.Now())
}

// CompleteHook ends what is on the speaker's own hook.
func (s *Speaker) CompleteHook(ctx context.Context) (hook.Hook, error) {
	p, err := s.Present()
	if err != nil {
		return hook.Hook{}, err
	}
	return s.Hooks.Complete(ctx, s.ID, p.Assignment, p.Session, s.Clock.Now())
}

// Progress records that the work on the speaker's hook makes progress, at most once
// in hook.TouchInterval. Work that was taken away makes none, which is no error.
func (s *Speaker) Progress(ctx context.Context, item *hook.WorkItem) error {
	now := s.Clock.Now()
	current, err := s.Hooks.Get(string(s.ID))
	if err != nil {
		return err
	}
	if since := now.Sub(current.LastActivity.Time); since >= 0 && since < hook.TouchInterval {
		return nil // most of the time: nothing is locked
	}
	_, err = s.Hooks.Touch(ctx, s.ID, item.AssignmentID, item.Session, now, hook.TouchInterval)
	if errors.Is(err, state.ErrConflict) {
		return nil
	}
	return err
}
