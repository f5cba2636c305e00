package convoy

import (
	"strings"
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
	if err := takenBack("convoys/cv-1.json", []byte("{"), nil); err == nil {
		t.Error("nobody knows which beads were in what was removed")
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

// What is told, counted and refused of a convoy.
func TestConvoyRules(t *testing.T) {
	at := state.At(time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC))
	open, over := &Convoy{ID: "cv-1"}, &Convoy{ID: "cv-1", CompletedAt: &at}
	for _, c := range []struct {
		before, after *Convoy
		want          string
	}{{nil, open, "created"}, {open, over, "completed"}, {over, over, ""}, {open, open, ""}, {over, open, ""}} {
		if e, is := eventOf(c.before, c.after); is != (c.want != "") || !strings.HasSuffix(e.Type, c.want) {
			t.Errorf("%+v → %+v: %q", c.before, c.after, e.Type)
		}
	}
	for progress, good := range map[float64]bool{-0.1: false, 0: true, 1: true, 1.1: false} {
		if err := check("cv-1", &Convoy{ID: "cv-1", Progress: progress}); (err == nil) != good {
			t.Errorf("progress %v: %v", progress, err)
		}
	}
	c := Convoy{BeadIDs: []state.BeadID{"tt-1", "tt-2", "tt-3"}}
	if n := c.Landed(map[state.BeadID]*bead.Bead{"tt-1": {Status: bead.Merged}, "tt-2": {Status: bead.Open}}); n != 1 {
		t.Errorf("%d have landed", n)
	}
}
