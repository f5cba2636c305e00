package actor

import (
	"context"
	"errors"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// Crew is the agent as which a client speaks in a person's own session, made
// known when it is new: name itself, or name-crew where that is somebody else in
// this rig. It is crew, so that what a model says is never taken for the person.
func Crew(ctx context.Context, r *rig.Rig, name string) (state.AgentID, error) {
	for _, candidate := range []string{name, name + "-crew"} {
		id, err := state.ParseAgentID(candidate)
		if err != nil {
			return "", Invalidf("crew: %v", err)
		}
		if a, err := r.Agents.Get(string(id)); err == nil && a.Parent == id && a.Status == agent.Active {
			return id, nil // most of the time: nothing is locked
		}
		// Its parent is itself, so that a start of the rig does not retire it as unnamed.
		err = Adopt(ctx, r, id, id)
		if errors.Is(err, state.ErrConflict) {
			continue // a role of this rig has the name
		}
		return id, err
	}
	return "", state.Conflictf("crew "+name, "the rig has other agents of that name")
}

// Adopt registers the helper of an agent, or brings it back. Its hook comes first:
// a registered agent without one counts as corrupt. Errors: state.ErrConflict for
// somebody else's name. Durable when it returns nil.
func Adopt(ctx context.Context, r *rig.Rig, id, parent state.AgentID) error {
	a, err := r.Agents.Get(string(id))
	if err == nil && a.Parent != parent {
		return state.Conflictf("agent "+string(id), "is no helper of %s", parent)
	}
	now := r.Clock.Now()
	if err := r.Hooks.Ensure(ctx, id, now); err != nil {
		return err
	}
	return r.Agents.Adopt(ctx, id, parent, r.Name(), now)
}

// Rest records that a helper's session is over. Adopt brings it back.
func Rest(ctx context.Context, r *rig.Rig, id state.AgentID) error {
	return r.Agents.SetStatus(ctx, id, agent.Terminated, r.Clock.Now())
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
