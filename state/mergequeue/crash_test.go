package mergequeue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

func TestCrashAdvance(t *testing.T) {
	const id = "mr-gt-abc12"
	step := func(to Status, sha string) model.Step {
		return model.Step{Name: string(to), Shows: `"status": "` + string(to) + `"`, Do: func(ctx context.Context, t *state.Tree) error {
			_, err := NewStore(t, nil).Update(ctx, id, func(r *Request) error {
				r.MergedSHA = sha
				return r.Become(to, now)
			})
			return err
		}}
	}
	model.Sweep(t, model.Steps("a merge request", Dir.Join(id+".json"), nil, "",
		model.Step{Name: "submitted", Shows: `"status": "pending"`, Do: func(ctx context.Context, t *state.Tree) error {
			_, err := NewStore(t, nil).Submit(ctx, Request{BeadID: "gt-abc12", AssignmentID: "as-1", AgentID: "polecat-alpha",
				SourceBranch: "polecat/gt-abc12", TargetBranch: "main"}, now)
			return err
		}},
		step(Merging, ""),
		step(Merged, "0123456789012345678901234567890123456789"),
	))
}

// Three requests keep their order, and no number is given twice, also when the
// second is submitted again by who comes next.
func TestCrashSubmitKeepsTheOrder(t *testing.T) {
	submit := func(r *model.Run) error {
		for i := range 3 {
			mr, err := NewStore(r.Tree, nil).Submit(r, Request{BeadID: state.BeadID(fmt.Sprintf("gt-%d", i)), AssignmentID: state.AssignmentID(fmt.Sprintf("as-%d", i)),
				AgentID: "polecat-alpha", SourceBranch: "polecat/x", TargetBranch: "main"}, now)
			if err != nil {
				return err
			}
			r.Ack(fmt.Sprintf("%s.json %d", mr.ID, mr.Seq))
		}
		return nil
	}
	model.Sweep(t, model.Scenario{
		Name: "the queue", Do: submit, Heal: submit,
		Check: func(c *model.Crash) error {
			stored := map[string]bool{}
			numbers := map[int64]bool{}
			for _, name := range c.Names(string(Dir)) {
				var r Request
				if err := json.Unmarshal(c.Files[name].Data, &r); err != nil {
					return err
				}
				if numbers[r.Seq] {
					return fmt.Errorf("the number %d was given twice", r.Seq)
				}
				numbers[r.Seq], stored[fmt.Sprintf("%s.json %d", r.ID, r.Seq)] = true, true
			}
			return c.Promised(func(fact string) error {
				if !stored[fact] {
					return errors.New("it is lost, or has another number")
				}
				return nil
			})
		},
	})
}
