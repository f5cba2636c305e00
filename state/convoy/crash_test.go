package convoy

import (
	"context"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

func TestCrashConvoy(t *testing.T) {
	const id = "cv-abc12"
	now := state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))
	progress := func(name, shows string, to float64) model.Step {
		return model.Step{Name: name, Shows: shows, Do: func(ctx context.Context, t *state.Tree) error {
			_, err := NewStore(t, nil).Update(ctx, id, func(c *Convoy) error {
				c.Progress = to
				if to == 1 {
					c.CompletedAt = &now
				}
				return nil
			})
			return err
		}}
	}
	model.Sweep(t, model.Steps("a convoy", Dir.Join(id+".json"), nil, "",
		model.Step{Name: "created", Shows: `"progress": 0`, Do: func(_ context.Context, t *state.Tree) error {
			return NewStore(t, nil).Create(id, Convoy{ID: id, Name: "name", BeadIDs: []state.BeadID{"gt-abc12"}, CreatedAt: now})
		}},
		progress("half", `"progress": 0.5`, 0.5),
		progress("completed", `"progress": 1`, 1),
	))
}
