package main

import (
	"errors"
	"fmt"
	"sort"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// lookup is the registered agent that a name means: an id, or the role of an
// agent that exists once. Errors: state.ErrBadID, *state.Unknown.
func lookup(r *rig.Rig, name string) (state.AgentID, error) {
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

// authority is the speaker, who must be the mayor or the person. what names the
// act for the message.
func (a *app) authority(r *rig.Rig, what string) (state.AgentID, error) {
	id, err := a.speaker(r)
	if err != nil {
		return "", err
	}
	if id != state.Human && id != r.Mayor() {
		return "", withHint(state.Conflictf(what, "only the mayor and human may, and you speak as %s", id),
			fmt.Sprintf("chipset mail send %s --subject … asks for it", r.Mayor()))
	}
	return id, nil
}

// group is everybody that @polecats or @all means: not the speaker, and nobody
// who is retired.
func group(r *rig.Rig, name string, speaker state.AgentID) ([]state.AgentID, error) {
	if name != "@polecats" && name != "@all" {
		return nil, withHint(usagef("no group %q", name), "there are @polecats and @all")
	}
	all, bad, err := r.Agents.All()
	if err != nil {
		return nil, err
	}
	if len(bad) > 0 { // a group that can't be known whole is not sent to in part
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
	delete(members, speaker)
	ids := make([]state.AgentID, 0, len(members))
	for id := range members {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	return ids, nil
}

// hookOf reads an agent's hook. A registered agent always has one, so a missing
// file is no empty hook but an ErrCorrupt.
func hookOf(r *rig.Rig, id state.AgentID) (hook.Hook, error) {
	h, err := r.Hooks.Get(string(id))
	if !errors.Is(err, state.ErrNotFound) {
		return h, err
	}
	if _, known := r.Agents.Get(string(id)); known != nil {
		return h, err
	}
	return h, &state.Corruption{Path: string(r.Hooks.Path(string(id))), Reason: "the registered agent has no hook", Cause: state.ErrNotFound}
}

// present is what the speaker works on: from the environment of a worker, else
// from its hook.
type present struct {
	bead       state.BeadID
	assignment state.AssignmentID
	session    state.SessionID
}

func (a *app) present(r *rig.Rig, id state.AgentID) (present, error) {
	session, err := a.session()
	if err != nil {
		return present{}, err
	}
	p := present{session: session}
	h, err := hookOf(r, id)
	if err != nil {
		return p, err
	}
	if h.WorkItem != nil {
		p.bead, p.assignment = h.WorkItem.BeadID, h.WorkItem.AssignmentID
	}
	if env := a.env(envAssignment); env != "" {
		if p.assignment, err = state.ParseAssignmentID(env); err != nil {
			return p, usagef("$%s: %v", envAssignment, err)
		}
		if h.Assignment() != p.assignment {
			p.bead = ""
		}
	}
	return p, nil
}
