package dispatch

import (
	"context"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

func TestCrashStages(t *testing.T) {
	const id = "gt-abc12"
	rec := Record{BeadID: id, AgentID: "polecat-alpha", AssignmentID: "as-1", By: "mayor",
		CreatedAt: state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))}
	put := func(stage Stage) model.Step {
		return model.Step{Name: string(stage), Shows: `"stage": "` + string(stage) + `"`, Do: func(_ context.Context, t *state.Tree) error {
			rec := rec
			rec.Stage = stage
			return NewStore(t, nil).Put(id, rec)
		}}
	}
	model.Sweep(t, model.Steps("a dispatch", Dir.Join(id+".json"), nil, "", put(Stored), put(Launched), put(Confirmed)))
}
