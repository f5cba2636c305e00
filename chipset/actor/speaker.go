// Package actor is what one agent says and does in a rig, whoever carries
// its words: a command line, a tool call, a client's hook. Who it is was
// settled before; nothing here changes it.
package actor

import (
	"errors"
	"fmt"
	"sort"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// Speaker is an agent in its rig.
type Speaker struct {
	*rig.Rig
	ID state.AgentID
	// Session is the worker's incarnation that speaks, or "".
	Session state.SessionID
	// Assignment is what a worker was started for, or "" for what is on the hook.
	Assignment state.AssignmentID
}

// Lookup is the registered agent that a name means: an id, or the role of an
// agent that exists once. Errors: state.ErrBadID, *state.Unknown.
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
// file is no empty hook but an ErrCorrupt.
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

// Group is everybody that @polecats or @all means: not the speaker, and nobody
// who is retired. Errors: ErrInvalid.
func Group(r *rig.Rig, name string, speaker state.AgentID) ([]state.AgentID, error) {
	if name != "@polecats" && name != "@all" {
		return nil, WithHint(Invalidf("no group %q", name), "there are @polecats and @all")
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

// Authority returns an ErrConflict unless the speaker is the mayor or the
// person. what names the act for the message.
func (s *Speaker) Authority(what string) error {
	if s.ID == state.Human || s.ID == s.Mayor() {
		return nil
	}
	return WithHint(state.Conflictf(what, "only the mayor and human may, and you speak as %s", s.ID),
		fmt.Sprintf("chipset mail send %s --subject … asks for it", s.Mayor()))
}

// Present is what the speaker works on.
type Present struct {
	Bead       state.BeadID
	Assignment state.AssignmentID
	Session    state.SessionID
}

// Present is what the speaker works on: what its worker was started for, else
// what is on its hook. Errors: that of the hook.
func (s *Speaker) Present() (Present, error) {
	p := Present{Session: s.Session}
	h, err := HookOf(s.Rig, s.ID)
	if err != nil {
		return p, err
	}
	if h.WorkItem != nil {
		p.Bead, p.Assignment = h.WorkItem.BeadID, h.WorkItem.AssignmentID
	}
	if s.Assignment != "" {
		p.Assignment = s.Assignment
		if h.Assignment() != p.Assignment {
			p.Bead = ""
		}
	}
	return p, nil
}
