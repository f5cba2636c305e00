package convoy

import (
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// A convoy loses no bead, and stays complete.
func TestHistory(t *testing.T) {
	at := state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))
	made := func(complete bool, ids ...state.BeadID) *Convoy {
		c := &Convoy{ID: "cv-1", Name: "one", CreatedAt: at, BeadIDs: ids}
		if complete {
			c.CompletedAt = &at
		}
		return c
	}
	renamed := made(false, "gt-1")
	renamed.Name = "two"
	for name, c := range map[string]struct {
		before, after *Convoy
		legal         bool
	}{
		"new":           {nil, made(false, "gt-1"), true},
		"joined":        {made(false, "gt-1"), made(false, "gt-1", "gt-2"), true},
		"left":          {made(false, "gt-1", "gt-2"), made(false, "gt-1"), false},
		"complete":      {made(false, "gt-1"), made(true, "gt-1"), true},
		"still so":      {made(true, "gt-1"), made(true, "gt-1"), true},
		"not any more":  {made(true, "gt-1"), made(false, "gt-1"), false},
		"of a new name": {made(false, "gt-1"), renamed, false},
	} {
		if err := moved(c.before, c.after); (err == nil) != c.legal {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What has landed of a convoy is counted; a bead that is not there has not.
func TestLanded(t *testing.T) {
	beads := map[state.BeadID]*bead.Bead{"gt-1": {Status: bead.Merged}, "gt-2": {Status: bead.Open}, "gt-3": {Status: bead.Closed}}
	c := &Convoy{BeadIDs: []state.BeadID{"gt-1", "gt-2", "gt-3", "gt-gone"}}
	if n := c.Landed(beads); n != 2 {
		t.Errorf("%d have landed", n)
	}
}
