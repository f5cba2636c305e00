package mayor

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles/backlog"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
)

// The ends that a decision asks for are those of everything that is under way.
func TestMatters(t *testing.T) {
	l := backlog.New()
	for id, b := range map[state.BeadID]bead.Bead{"tt-1": {Status: bead.Hooked, AssignmentID: "as-out"}, "tt-2": {Status: bead.Failed, AssignmentID: "as-failed"}, "tt-3": {Status: bead.Done, AssignmentID: "as-done"}} {
		b.ID = id
		l.Put(b)
	}
	f := Facts{Backlog: l, Polecats: []Polecat{{}, {Hook: hook.Hook{WorkItem: &hook.WorkItem{AssignmentID: "as-hook"}}}},
		Queue: []mergequeue.Request{{Status: mergequeue.Conflicted, AssignmentID: "as-conflict"}, {Status: mergequeue.Pending, AssignmentID: "as-pending"}}}
	if got := slices.Sorted(maps.Keys(f.Matters())); !slices.Equal(got, []state.AssignmentID{"as-conflict", "as-failed", "as-hook", "as-out"}) {
		t.Errorf("it asks for %v", got)
	}
}

// The mayor wakes for the first probe that is not due yet.
func TestNextProbe(t *testing.T) {
	now := state.At(time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC))
	in := func(d time.Duration, s pause.Status) pause.Pause {
		return pause.Pause{Status: s, Until: state.At(now.Add(d))}
	}
	f := Facts{Now: now, Pauses: []pause.Pause{in(time.Hour, pause.Paused), in(time.Minute, pause.Paused), in(2*time.Hour, pause.Paused), in(time.Second, pause.Ramping), in(-time.Second, pause.Paused)}}
	if next := f.NextProbe(); !next.Equal(now.Add(time.Minute)) {
		t.Errorf("it wakes at %v", next)
	}
	f.Pauses = f.Pauses[3:]
	if next := f.NextProbe(); !next.IsZero() {
		t.Errorf("nothing is to come, but it wakes at %v", next)
	}
}

// Each charge counts what it is called.
func TestCharges(t *testing.T) {
	for c, want := range map[Charge][3]int{ChargeNothing: {}, ChargeAttempt: {1, 0, 0}, ChargeConflict: {0, 1, 0}, ChargeRestart: {0, 0, 1}} {
		var b bead.Bead
		c.To(&b)
		if got := [3]int{b.Attempts, b.Conflicts, b.Restarts}; got != want {
			t.Errorf("%q counts %v", c, got)
		}
	}
}
