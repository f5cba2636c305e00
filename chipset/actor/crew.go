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
		now := r.Clock.Now()
		// Its parent is itself, so that a start of the rig does not retire it as unnamed.
		err = r.Agents.Adopt(ctx, id, id, r.Name(), now)
		if errors.Is(err, state.ErrConflict) {
			continue // a role of this rig has the name
		}
		if err != nil {
			return "", err
		}
		return id, r.Hooks.Ensure(ctx, id, now)
	}
	return "", state.Conflictf("crew "+name, "the rig has other agents of that name")
}
