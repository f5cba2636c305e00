package actor

import (
	"errors"
	"sync"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
)

func TestConvoyIsTakenBack(t *testing.T) {
	r := rigtest.New(t, "")
	s := as(r, state.Human)
	var names []string
	for range 3 {
		names = append(names, string(add(t, r, "Thing").ID))
	}
	c, err := s.loadConvoy("late", names)
	rigtest.Must(t, err)
	c.ID = "cv-mine0"
	rigtest.Must(t, r.Convoys.Create(string(c.ID), c))
	rigtest.Must(t, s.setConvoy(t.Context(), c.BeadIDs[1], "", "cv-other")) // somebody is faster
	if err := s.joinConvoy(t.Context(), &c); !errors.Is(err, state.ErrConflict) {
		t.Errorf("joined: %v, expected a conflict", err)
	}
	for i, want := range []state.ConvoyID{"", "cv-other", ""} {
		b, err := r.Beads.Get(names[i])
		if err != nil || b.ConvoyID != want {
			t.Errorf("bead %d is in convoy %q, %v, expected %q", i, b.ConvoyID, err, want)
		}
	}
	if _, err := r.Convoys.Get(string(c.ID)); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("the convoy is still there: %v", err)
	}
}

func TestClaimOnlyInPullMode(t *testing.T) {
	r := rigtest.New(t, "")
	add(t, r, "one")
	if _, err := as(r, "polecat-alpha").Claim(t.Context(), ""); !errors.Is(err, state.ErrConflict) {
		t.Errorf("claimed beside the mayor: %v", err)
	}
}

// TestClaimsAtOnce: two who claim the same bead at once get one each, or
// nothing, and never the same.
func TestClaimsAtOnce(t *testing.T) {
	r := rigtest.New(t, "dispatch: {strategy: auto_claim, max_parallel: 5}\n")
	want := add(t, r, "one")
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, id := range []state.AgentID{"polecat-alpha", "polecat-bravo"} {
		wg.Go(func() { _, errs[i] = as(r, id).Claim(t.Context(), "") })
	}
	wg.Wait()
	won := 0
	for i, id := range []state.AgentID{"polecat-alpha", "polecat-bravo"} {
		h, err := r.Hooks.Get(string(id))
		rigtest.Must(t, err)
		if (errs[i] == nil) != (h.Status == hook.Pending) {
			t.Errorf("%s: %v, and the hook is %s", id, errs[i], h.Status)
		}
		if errs[i] == nil {
			won++
			if h.WorkItem.BeadID != want.ID {
				t.Errorf("%s claimed %s", id, h.WorkItem.BeadID)
			}
		} else if !errors.Is(errs[i], state.ErrNotFound) {
			t.Errorf("%s: %v", id, errs[i])
		}
	}
	if won != 1 {
		t.Errorf("%d of two won", won)
	}
	for _, id := range []state.AgentID{"mayor", state.Human} {
		second := add(t, r, "two")
		if _, err := as(r, id).Claim(t.Context(), second.ID); !errors.Is(err, state.ErrConflict) {
			t.Errorf("%s claimed: %v", id, err)
		}
	}
}
