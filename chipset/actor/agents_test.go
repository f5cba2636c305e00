package actor

import (
	"errors"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

func TestCrewIsNobodyElse(t *testing.T) {
	r := rigtest.New(t, "")
	for range 2 {
		id, err := Crew(t.Context(), r, "claude", "claude")
		if err != nil || id != "claude" {
			t.Fatalf("%s, %v", id, err)
		}
	}
	a, err := r.Agents.Get("claude")
	if err != nil || a.Role != agent.Crew || a.Rig != "r" || a.Status != agent.Active || !a.IsSession() {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := HookOf(r, "claude"); err != nil {
		t.Error(err)
	}
	rigtest.Must(t, r.Agents.SetStatus(t.Context(), "claude", agent.Terminated, r.Clock.Now()))
	if _, err := Crew(t.Context(), r, "claude", "claude"); err != nil {
		t.Error(err)
	}
	if a, err = r.Agents.Get("claude"); err != nil || a.Status != agent.Active {
		t.Errorf("not back: %+v, %v", a, err)
	}
	if id, err := Crew(t.Context(), r, "polecat-alpha", "polecat-alpha"); err != nil || id != "polecat-alpha-crew" {
		t.Errorf("where a role has the name: %s, %v", id, err)
	}
	if _, err := Crew(t.Context(), r, "x", "../x"); !errors.Is(err, ErrInvalid) {
		t.Errorf("a bad name: %v", err)
	}
	if err := as(r, "claude").Authority("sling"); !errors.Is(err, state.ErrConflict) {
		t.Errorf("crew has the person's authority: %v", err)
	}
}
