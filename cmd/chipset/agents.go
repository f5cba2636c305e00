package main

import (
	"context"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

// authority is the speaker, who must be the mayor or the person. what names the
// act for the message.
func (a *app) authority(r *rig.Rig, what string) (state.AgentID, error) {
	id, err := a.speaker(r)
	if err != nil {
		return "", err
	}
	return id, (&actor.Speaker{Rig: r, ID: id}).Authority(what)
}

// voice opens a rig and is who speaks there, with the worker's session and
// assignment where the environment names them.
func (a *app) voice(ctx context.Context, open func(context.Context) (*rig.Rig, error)) (*actor.Speaker, error) {
	r, err := open(ctx)
	if err != nil {
		return nil, err
	}
	s := &actor.Speaker{Rig: r}
	if s.ID, err = a.speaker(r); err != nil {
		return nil, err
	}
	if s.Session, err = a.session(); err != nil {
		return nil, err
	}
	if env := a.env(envAssignment); env != "" {
		if s.Assignment, err = state.ParseAssignmentID(env); err != nil {
			return nil, usagef("$%s: %v", envAssignment, err)
		}
	}
	return s, nil
}
