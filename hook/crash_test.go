package hook

import (
	"context"
	"testing"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

// Every transition, cut at every moment: the hook is as it was or as it was to
// be, and what was promised stays.
func TestCrashTransitions(t *testing.T) {
	const id, as = state.AgentID("polecat-alpha"), state.AssignmentID("as-1")
	step := func(name, shows string, do func(ctx context.Context, s Store) error) model.Step {
		return model.Step{Name: name, Shows: shows, Do: func(ctx context.Context, t *state.Tree) error { return do(ctx, NewStore(t, nil)) }}
	}
	made := func(ctx context.Context, t *state.Tree) error { return NewStore(t, nil).Ensure(ctx, id, now) }
	model.Sweep(t, model.Steps("a hook from empty to empty", Dir.Join(string(id)+".json"), made, `"gen": 0`,
		step("set", `"gen": 1`, func(ctx context.Context, s Store) error {
			_, err := s.Set(ctx, id, WorkItem{AssignedAt: now, AssignmentID: as, BeadID: "gt-abc12", Title: "title"}, now)
			return err
		}),
		step("activate", `"gen": 2`, func(ctx context.Context, s Store) error {
			_, err := s.Activate(ctx, id, as, "ses-1", now)
			return err
		}),
		step("touch", `"gen": 3`, func(ctx context.Context, s Store) error {
			_, err := s.Touch(ctx, id, as, "ses-1", now, 0)
			return err
		}),
		step("lend", `"lease"`, func(ctx context.Context, s Store) error {
			_, err := s.Lend(ctx, id, as, "ses-1", Lease{By: state.Human, Since: now, PID: 7})
			return err
		}),
		step("return", `"gen": 5`, func(ctx context.Context, s Store) error {
			_, err := s.Return(ctx, id, now)
			return err
		}),
		step("resume", `"gen": 6`, func(ctx context.Context, s Store) error {
			_, err := s.Resume(ctx, id, as, "ses-2", now)
			return err
		}),
		step("complete", `"gen": 7`, func(ctx context.Context, s Store) error {
			_, err := s.Complete(ctx, id, as, "ses-2", now)
			return err
		}),
		step("clear", `"gen": 8`, func(ctx context.Context, s Store) error {
			_, err := s.Clear(ctx, id, as, now)
			return err
		}),
	))
	model.Sweep(t, model.Steps("a new hook", Dir.Join(string(id)+".json"), nil, "",
		step("make", `"gen": 0`, func(ctx context.Context, s Store) error { return s.Ensure(ctx, id, now) })))
}
