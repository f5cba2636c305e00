package main

import (
	"context"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

// openActor is openState for a command that acts: it returns the agent that runs the
// command, with the worker's session and assignment if the environment names them.
func (a *app) openActor(ctx context.Context) (*actor.Actor, error) {
	return a.actorIn(ctx, a.openState)
}

// openRigActor is openRig for a command that acts.
func (a *app) openRigActor(ctx context.Context) (*actor.Actor, error) {
	return a.actorIn(ctx, a.openRig)
}

func (a *app) actorIn(ctx context.Context, open func(context.Context) (*rig.Rig, error)) (*actor.Actor, error) {
	r, err := open(ctx)
	if err != nil {
		return nil, err
	}
	me := &actor.Actor{Rig: r}
	if me.ID, err = a.identity(r); err != nil {
		return nil, err
	}
	if me.ID, err = a.ownVoice(ctx, r, me.ID); err != nil {
		return nil, err
	}
	if me.Session, err = a.session(); err != nil {
		return nil, err
	}
	if env := a.env(envAssignment); env != "" && !isHelper(r, me.ID) { // the assignment is its spawner's
		if me.Assignment, err = state.ParseAssignmentID(env); err != nil {
			return nil, usagef("$%s: %v", envAssignment, err)
		}
	}
	return me, nil
}
