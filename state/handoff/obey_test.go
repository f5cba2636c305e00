package handoff

import (
	"errors"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

// A hand-off that could not be written or read is said; one that was written is told.
func TestVerbsObey(t *testing.T) {
	store := func(r *model.Run) Store {
		return NewStore(r.Tree, event.NewLog(r.Tree, func() time.Time { return now.Time }))
	}
	h := Handoff{AgentID: "polecat-alpha", BeadID: "gt-1", Summary: "s", Timestamp: now}
	list := func(r *model.Run) (any, error) {
		all, bad, err := store(r).List("polecat-alpha")
		return all, errors.Join(append(bad, err)...)
	}
	model.Obey(t, func(r *model.Run) error {
		for _, at := range []time.Duration{2, 1, 3} {
			h := h
			h.Timestamp = state.At(now.Add(at * time.Hour))
			if _, err := store(r).Write(h); err != nil {
				return err
			}
		}
		return nil
	}, map[string]model.Verb{
		"write": {Tells: " handoff.written", Spares: []string{string(Dir)}, Do: func(r *model.Run) (any, error) { return store(r).Write(h) }},
		"list":  {Do: list},
		"latest": {Overlooks: true, Spares: []string{string(Dir) + "/polecat-alpha/"}, Do: func(r *model.Run) (any, error) {
			return store(r).Latest("polecat-alpha", "gt-1") // of those that can be read
		}},
	})
}

// A hand-off in another agent's folder is none of its.
func TestStrangerInTheFolder(t *testing.T) {
	s, tree := newStore(t)
	if _, err := s.Write(Handoff{AgentID: "polecat-alpha", Summary: "s", Timestamp: now}); err != nil {
		t.Fatal(err)
	}
	data, err := state.Encode(Handoff{AgentID: "polecat-bravo", Summary: "s", Timestamp: now})
	if err != nil {
		t.Fatal(err)
	}
	own, err := state.Encode(Handoff{AgentID: "polecat-alpha", Summary: "s", Timestamp: now})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"x.json": data, "y.txt": own} {
		if err := tree.Replace(Dir.Join("polecat-alpha", name), data); err != nil {
			t.Fatal(err)
		}
	}
	if all, bad, err := s.List("polecat-alpha"); err != nil || len(all) != 1 || len(bad) != 2 {
		t.Errorf("%v, %v, %v", all, bad, err)
	}
}
