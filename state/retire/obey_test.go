package retire

import (
	"errors"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

// Each stage of an end is told once it is stored; what could not be stored is said.
func TestVerbsObey(t *testing.T) {
	now := state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))
	store := func(r *model.Run) Store {
		return NewStore(r.Tree, event.NewLog(r.Tree, func() time.Time { return now.Time }))
	}
	rec := func(a state.AssignmentID, s Stage) Record {
		return Record{AssignmentID: a, BeadID: "gt-1", AgentID: "polecat-alpha", Outcome: Fail, Reason: "no luck", Stage: s}
	}
	model.Obey(t, func(r *model.Run) error { return store(r).Publish(rec("as-1", Published)) }, map[string]model.Verb{
		"publish": {Tells: " retire.published", Spares: []string{string(Dir)}, Do: func(r *model.Run) (any, error) {
			return nil, store(r).Publish(rec("as-2", Published))
		}},
		"publish again": {Spares: []string{string(Dir)}, Do: func(r *model.Run) (any, error) {
			err := store(r).Publish(rec("as-1", Published))
			if errors.Is(err, state.ErrExists) {
				return "there", nil
			}
			return nil, err
		}},
		"reach": {Tells: " retire.reported", Spares: []string{string(Dir)}, Do: func(r *model.Run) (any, error) { return nil, store(r).Reach(rec("as-1", Reported)) }},
	})
}
