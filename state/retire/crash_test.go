package retire

import (
	"context"
	"testing"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

// The end of an attempt is published once; its stage never falls back.
func TestCrashStages(t *testing.T) {
	const id = "as-1"
	rec := Record{AssignmentID: id, AgentID: "polecat-alpha", BeadID: "gt-abc12", Outcome: Done, Stage: Published}
	reach := func(stage Stage) model.Step {
		return model.Step{Name: string(stage), Shows: `"stage": "` + string(stage) + `"`, Do: func(ctx context.Context, t *state.Tree) error {
			_, err := NewStore(t, nil).Update(ctx, id, func(r *Record) error {
				r.Stage = stage
				return nil
			})
			return err
		}}
	}
	model.Sweep(t, model.Steps("a retire record", Dir.Join(id+".json"), nil, "",
		model.Step{Name: "published", Shows: `"stage": "published"`, Do: func(_ context.Context, t *state.Tree) error {
			return NewStore(t, nil).Create(id, rec)
		}},
		reach(Committed), reach(Recorded), reach(Submitted), reach(Released),
	))
}
