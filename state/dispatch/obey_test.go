package dispatch

import (
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

// Each stage that is stored is told, but for the one between; what could not be stored is said.
func TestVerbsObey(t *testing.T) {
	now := state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))
	store := func(r *model.Run) Store {
		return NewStore(r.Tree, event.NewLog(r.Tree, func() time.Time { return now.Time }))
	}
	at := func(s Stage) Record {
		return Record{BeadID: "gt-1", AssignmentID: "as-1", AgentID: "polecat-alpha", By: "mayor", Branch: "polecat/gt-1", MailName: "x", Stage: s, CreatedAt: now}
	}
	reach := func(s Stage, tells string) model.Verb {
		return model.Verb{Tells: tells, Spares: []string{string(Dir)}, Do: func(r *model.Run) (any, error) { return nil, store(r).Reach(at(s)) }}
	}
	model.Obey(t, func(r *model.Run) error { return store(r).Reach(at(Launched)) }, map[string]model.Verb{
		"stored":    reach(Stored, " dispatch.stored"),
		"launched":  reach(Launched, ""),
		"confirmed": reach(Confirmed, " dispatch.confirmed"),
		"undone":    {Tells: " dispatch.undone", Do: func(r *model.Run) (any, error) { return nil, store(r).Undo(at(Launched), "no") }},
	})
	tree, err := state.Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(r *Record){
		"another bead": func(r *Record) { r.BeadID = "gt-2" },
		"no stage":     func(r *Record) { r.Stage = "half" },
	} {
		rec := at(Stored)
		change(&rec)
		if err := NewStore(tree, nil).Create("gt-1", rec); err == nil || !strings.Contains(err.Error(), "gt-1") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
