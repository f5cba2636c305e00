package agent

import (
	"context"
	"testing"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

func TestCrashRegister(t *testing.T) {
	const id = state.AgentID("polecat-alpha")
	model.Sweep(t, model.Steps("an agent", Dir.Join(string(id)+".json"), nil, "",
		model.Step{Name: "registered", Shows: `"status": "idle"`, Do: func(ctx context.Context, t *state.Tree) error {
			_, err := NewStore(t, nil).Register(ctx, id, Polecat, "rig", nil, now)
			return err
		}},
		model.Step{Name: "active", Shows: `"status": "active"`, Do: func(ctx context.Context, t *state.Tree) error {
			return NewStore(t, nil).SetStatus(ctx, id, Active, now)
		}},
		model.Step{Name: "retired", Shows: `"status": "retired"`, Do: func(ctx context.Context, t *state.Tree) error {
			return NewStore(t, nil).SetStatus(ctx, id, Retired, now)
		}},
	))
}
