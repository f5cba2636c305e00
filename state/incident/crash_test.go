package incident

import (
	"context"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

func TestCrashIncident(t *testing.T) {
	const id = "in-abc12"
	now := state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))
	step := func(name, shows string, change func(i *Incident)) model.Step {
		return model.Step{Name: name, Shows: shows, Do: func(ctx context.Context, t *state.Tree) error {
			_, err := NewStore(t, nil).Update(ctx, id, func(i *Incident) error {
				change(i)
				return nil
			})
			return err
		}}
	}
	model.Sweep(t, model.Steps("an incident", Dir.Join(id+".json"), nil, "",
		model.Step{Name: "opened", Shows: `"severity": "warning"`, Do: func(_ context.Context, t *state.Tree) error {
			return NewStore(t, nil).Create(id, Incident{ID: id, AgentID: "polecat-alpha", Kind: Stalled, Severity: Warning, OpenedAt: now})
		}},
		step("escalated", `"severity": "critical"`, func(i *Incident) { i.Severity, i.EscalatedAt = Critical, &now }),
		step("resolved", `"resolved_at"`, func(i *Incident) { i.ResolvedAt = &now }),
	))
}
