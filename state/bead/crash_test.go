package bead

import (
	"context"
	"errors"
	"testing"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

func TestCrashMove(t *testing.T) {
	const id, as = state.BeadID("gt-abc12"), state.AssignmentID("as-1")
	step := func(shows string, from, to Status, owner state.AssignmentID) model.Step {
		return model.Step{Name: string(to), Shows: shows, Do: func(ctx context.Context, t *state.Tree) error {
			s := NewStore(t, nil)
			_, err := s.Update(ctx, string(id), func(b *Bead) error {
				if b.Status != from {
					return state.Conflictf("bead", "is %s", b.Status)
				}
				b.AssignmentID, b.Assignee = as, "polecat-alpha"
				return b.Become(to, "", now)
			})
			if errors.Is(err, state.ErrConflict) {
				_, err = s.Update(ctx, string(id), func(b *Bead) error { return errors.Join(b.CheckAssignment(owner, from), b.Become(to, "", now)) })
			}
			return err
		}}
	}
	made := func(_ context.Context, t *state.Tree) error {
		return NewStore(t, nil).Create(string(id), Bead{ID: id, Title: "title", Status: Open, Priority: P2, CreatedAt: now, UpdatedAt: now, Gen: 1})
	}
	model.Sweep(t, model.Steps("a bead that lands", Dir.Join(string(id)+".json"), made, `"gen": 1`,
		step(`"gen": 2`, Open, Hooked, ""),
		step(`"gen": 3`, Hooked, InProgress, as),
		step(`"gen": 4`, InProgress, Done, as),
		step(`"gen": 5`, Done, Merged, as),
	))
}

// What Add has returned is there.
func TestCrashAdd(t *testing.T) {
	add := func(r *model.Run) error {
		if all, _, err := NewStore(r.Tree, nil).All(); err != nil || len(all) > 0 {
			return err
		}
		b, err := NewStore(r.Tree, nil).Add(Bead{Title: "title"}, "gt", now)
		if err == nil {
			r.Ack(string(b.ID))
		}
		return err
	}
	model.Sweep(t, model.Scenario{
		Name: "a new bead", Do: add, Heal: add,
		Check: func(c *model.Crash) error {
			return c.Promised(func(id string) error {
				if _, there := c.Files[string(Dir.Join(id+".json"))]; !there {
					return errors.New("it is lost")
				}
				return nil
			})
		},
	})
}
