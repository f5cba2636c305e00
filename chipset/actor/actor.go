// Package actor is everything that a person or an agent may do to a rig. The
// command line, MCP tools, hooks of clients and bridges change a rig only
// through it. They determine who acts; this package checks what the actor may do.
package actor

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// Actor is an agent, or the person, acting in a rig.
type Actor struct {
	*rig.Rig
	ID state.AgentID
	// Session is the session of the worker that acts, or "".
	Session state.SessionID
	// Assignment is what a worker was started for, or "" for what is on the hook.
	Assignment state.AssignmentID
}

// Lookup returns the registered agent with a name: its id, or its role where only
// one agent has it. Errors: state.ErrBadID, *state.Unknown.
func Lookup(r *rig.Rig, name string) (state.AgentID, error) {
	id, err := state.ParseAgentID(name)
	if err != nil {
		return "", err
	}
	_, err = r.Agents.Get(name)
	if err == nil || id == state.Human && errors.Is(err, state.ErrNotFound) {
		return id, nil
	}
	if !errors.Is(err, state.ErrNotFound) {
		return "", err
	}
	all, _, listErr := r.Agents.All()
	if listErr != nil {
		return "", listErr
	}
	for i := range all {
		switch role := all[i].Role; role {
		case agent.Mayor, agent.Witness, agent.Refinery:
			if string(role) == name && all[i].Status != agent.Retired {
				return all[i].ID, nil
			}
		case agent.Polecat, agent.Crew, agent.Human:
		}
	}
	return "", err
}

// HookOf reads an agent's hook. A registered agent always has one, so a missing
// file is an ErrCorrupt, not an empty hook.
func HookOf(r *rig.Rig, id state.AgentID) (hook.Hook, error) {
	h, err := r.Hooks.Get(string(id))
	if !errors.Is(err, state.ErrNotFound) {
		return h, err
	}
	if _, known := r.Agents.Get(string(id)); known != nil {
		return h, err
	}
	return h, &state.Corruption{Path: string(r.Hooks.Path(string(id))), Reason: "the registered agent has no hook", Cause: state.ErrNotFound}
}

// Group returns the members of @polecats or @all, without self and without
// retired agents. Errors: ErrInvalid.
func Group(r *rig.Rig, name string, self state.AgentID) ([]state.AgentID, error) {
	if name != "@polecats" && name != "@all" {
		return nil, WithHint(Invalidf("no group %q", name), "there are @polecats and @all")
	}
	all, bad, err := r.Agents.All()
	if err != nil {
		return nil, err
	}
	if len(bad) > 0 { // rather nobody than a part of the group
		return nil, errors.Join(bad...)
	}
	members := map[state.AgentID]bool{}
	if name == "@all" {
		members[state.Human] = true
	}
	for i := range all {
		if all[i].Status != agent.Retired && (name == "@all" || all[i].Role == agent.Polecat) {
			members[all[i].ID] = true
		}
	}
	delete(members, self)
	return slices.Sorted(maps.Keys(members)), nil
}

// Authority returns an ErrConflict unless the actor is the mayor or the
// person. what names the act in the error.
func (a *Actor) Authority(what string) error {
	if a.ID == state.Human || a.ID == a.Mayor() {
		return nil
	}
	return WithHint(state.Conflictf(what, "only the mayor and human may do this, and you speak as %s", a.ID),
		fmt.Sprintf("chipset mail send %s --subject … asks for it", a.Mayor()))
}

// Present is the work of an actor.
type Present struct {
	Bead       state.BeadID
	Assignment state.AssignmentID
	Session    state.SessionID
}

// Present returns what the actor works on: what its worker was started for, else
// what is on its hook. Errors: that of the hook.
func (a *Actor) Present() (Present, error) {
	p := Present{Session: a.Session}
	h, err := HookOf(a.Rig, a.ID)
	if err != nil {
		return p, err
	}
	if h.WorkItem != nil {
		p.Bead, p.Assignment = h.WorkItem.BeadID, h.WorkItem.AssignmentID
	}
	if a.Assignment != "" {
		p.Assignment = a.Assignment
		if h.Assignment() != p.Assignment {
			p.Bead = ""
		}
	}
	return p, nil
}
