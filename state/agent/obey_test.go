package agent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

func logged(r *model.Run) Store {
	return NewStore(r.Tree, event.NewLog(r.Tree, func() time.Time { return now.Time }))
}

// Each verb changes an identity under its lock, says what it could not do, and tells what it did.
func TestVerbsObey(t *testing.T) {
	lock := func(p state.Path) (state.LockKind, string) {
		if p.Dir() != Dir {
			return "", ""
		}
		return state.LockAgentRecord, strings.TrimSuffix(p.Base(), ".json")
	}
	none := []string{string(Dir)} // it is made where there is none
	later := state.At(now.Add(time.Hour))
	verb := func(tells string, spares []string, do func(r *model.Run, s Store) (any, error)) model.Verb {
		return model.Verb{Lock: lock, Tells: tells, Spares: spares, Do: func(r *model.Run) (any, error) { return do(r, logged(r)) }}
	}
	model.Obey(t, func(r *model.Run) error {
		s := logged(r)
		_, err := s.Register(r, "polecat-alpha", Polecat, "rig", nil, now)
		return errors.Join(err, s.Adopt(r, "crew-helper", "polecat-alpha", "rig", now), s.SetStatus(r, "crew-helper", Terminated, now))
	}, map[string]model.Verb{
		"register": verb(" agent.registered", none, func(r *model.Run, s Store) (any, error) {
			return s.Register(r, "polecat-bravo", Polecat, "rig", nil, now)
		}),
		"register again": verb("", nil, func(r *model.Run, s Store) (any, error) {
			return s.Register(r, "polecat-alpha", Polecat, "rig", nil, later)
		}),
		"adopt": verb(" agent.registered", none, func(r *model.Run, s Store) (any, error) {
			return nil, s.Adopt(r, "crew-new", "polecat-alpha", "rig", later)
		}),
		"adopt again": verb("", nil, func(r *model.Run, s Store) (any, error) {
			err := s.Adopt(r, "crew-helper", "polecat-alpha", "rig", later)
			a, getErr := s.Get("crew-helper")
			return a.Status, errors.Join(err, getErr)
		}),
		"begin":  verb(" agent.started", nil, func(r *model.Run, s Store) (any, error) { return nil, s.Begin(r, "polecat-alpha", "ses-1", later) }),
		"end":    verb(" agent.stopped", nil, func(r *model.Run, s Store) (any, error) { return nil, s.End(r, "polecat-alpha", "ses-1", later) }),
		"retire": verb(" agent.retired", nil, func(r *model.Run, s Store) (any, error) { return nil, s.Retire(r, "polecat-alpha", "no work", later) }),
		"card": verb(" agent.card", nil, func(r *model.Run, s Store) (any, error) {
			return s.ChangeCard(r, state.Human, "polecat-alpha", func(a *Agent) error { a.Description = "tests"; return nil })
		}),
	})
}

// An end is written once, and a retired agent stays retired. Only its parent brings a helper back.
func TestEndsAndHelpers(t *testing.T) {
	s := newStore(t)
	later := state.At(now.Add(time.Hour))
	if err := s.Adopt(t.Context(), "crew-helper", "polecat-alpha", "rig", now); err != nil {
		t.Fatal(err)
	}
	stands := func(what string, status Status, at state.Time) {
		t.Helper()
		if a, err := s.Get("crew-helper"); err != nil || a.Status != status || !a.UpdatedAt.Equal(at.Time) || a.Role != Crew || a.Parent != "polecat-alpha" {
			t.Errorf("%s: %+v, %v", what, a, err)
		}
	}
	stands("adopted", Active, now)
	if err := s.Adopt(t.Context(), "crew-helper", "polecat-alpha", "rig", later); err != nil {
		t.Fatal(err)
	}
	stands("adopted again", Active, now)
	if err := s.Adopt(t.Context(), "crew-helper", "polecat-bravo", "rig", later); !errors.Is(err, state.ErrConflict) {
		t.Errorf("adopted by another: %v", err)
	}
	if err := s.End(t.Context(), "crew-helper", "ses-1", later); err != nil {
		t.Fatal(err)
	}
	stands("ended", Terminated, later)
	if err := s.Adopt(t.Context(), "crew-helper", "polecat-alpha", "rig", now); err != nil {
		t.Fatal(err)
	}
	stands("brought back", Active, now)
	for _, end := range []Status{Terminated, Retired} {
		if err := s.SetStatus(t.Context(), "crew-helper", end, now); err != nil {
			t.Fatal(err)
		}
		if err := s.End(t.Context(), "crew-helper", "ses-1", later); err != nil {
			t.Fatal(err)
		}
		stands("ended "+string(end), end, now)
	}
}

// The bounds of a card are what its messages say, and its owner and the person always get through.
func TestCardBounds(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	words := func(n int) []string { return strings.Split(strings.Repeat("mayor ", n)[:6*n-1], " ") }
	for _, c := range []struct {
		card Agent
		ok   bool
	}{
		{Agent{Description: long(MaxDescription), Capabilities: words(MaxWords), AllowFrom: words(MaxWords)}, true},
		{Agent{Description: long(MaxDescription + 1)}, false},
		{Agent{Capabilities: words(MaxWords + 1)}, false},
		{Agent{AllowFrom: words(MaxWords + 1)}, false},
		{Agent{Capabilities: []string{long(MaxWord)}}, true},
		{Agent{Capabilities: []string{long(MaxWord + 1)}}, false},
		{Agent{Capabilities: []string{""}}, false},
		{Agent{AllowFrom: []string{"*", "polecat-alpha"}}, true},
		{Agent{AllowFrom: []string{"../x"}}, false},
		{Agent{MaxTasks: -1}, false},
	} {
		if err := c.card.CheckCard(); (err == nil) != c.ok {
			t.Errorf("%.80v: %v", c.card, err)
		}
	}
	a := Agent{ID: "polecat-alpha", AllowFrom: []string{"mayor"}}
	all := Agent{ID: "polecat-alpha", AllowFrom: []string{"*"}}
	for from, want := range map[state.AgentID]bool{"mayor": true, state.Human: true, "polecat-alpha": true, "witness": false} {
		if a.Accepts(from) != want || !all.Accepts(from) || !(&Agent{}).Accepts(from) {
			t.Errorf("mail of %s: %v", from, a.Accepts(from))
		}
	}
}
