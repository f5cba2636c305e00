package agent

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

var now = state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))

func newStore(t *testing.T) Store {
	t.Helper()
	tree, err := state.Create(filepath.Join(t.TempDir(), ".chipset"))
	if err != nil {
		t.Fatal(err)
	}
	return NewStore(tree, nil)
}

func TestRegister(t *testing.T) {
	s := newStore(t)
	later := state.At(now.Add(time.Hour))
	register := func(role Role, at state.Time, want bool) {
		t.Helper()
		if changed, err := s.Register(t.Context(), "polecat-alpha", role, "rig", nil, at); err != nil || changed != want {
			t.Fatalf("changed %v, %v; want %v", changed, err, want)
		}
	}
	register(Polecat, now, true)
	register(Polecat, later, false)
	if err := s.SetStatus(t.Context(), "polecat-alpha", Active, later); err != nil {
		t.Fatal(err)
	}
	register(Polecat, later, false)
	if a, _ := s.Get("polecat-alpha"); a.Status != Active {
		t.Errorf("registering again moved it to %s", a.Status)
	}
	if changed, err := s.Register(t.Context(), "polecat-alpha", Polecat, "renamed", nil, later); err != nil || !changed {
		t.Fatalf("in a rig of another name: %v, %v", changed, err)
	}
	if a, _ := s.Get("polecat-alpha"); a.Rig != "renamed" || a.Status != Active {
		t.Errorf("in a rig of another name: %+v", a)
	}
	if err := s.SetStatus(t.Context(), "polecat-alpha", Retired, later); err != nil {
		t.Fatal(err)
	}
	register(Polecat, later, true)
	a, err := s.Get("polecat-alpha")
	if err != nil || a.Status != Idle || !a.CreatedAt.Equal(now.Time) {
		t.Errorf("revived: %+v, %v", a, err)
	}
	register(Crew, later, true)
	if err := s.Begin(t.Context(), "polecat-alpha", "ses-1", later); err != nil {
		t.Fatal(err)
	}
	if a, _ := s.Get("polecat-alpha"); a.Session != "ses-1" {
		t.Errorf("session %q", a.Session)
	}
	if err := s.Begin(t.Context(), "polecat-none", "ses-1", later); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("unknown agent: %v, want ErrNotFound", err)
	}
}

func TestWhatIsNoAgent(t *testing.T) {
	s := newStore(t)
	for name, a := range map[string]Agent{
		"name":   {ID: "other", Role: Mayor, Status: Idle},
		"role":   {ID: "mayor", Role: "boss", Status: Idle},
		"status": {ID: "mayor", Role: Mayor, Status: "asleep"},
	} {
		if err := s.Put("mayor", a); err == nil {
			t.Errorf("%s: was written", name)
		}
	}
}
