package witness

import (
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state/incident"
)

func TestEvaluate(t *testing.T) {
	p := newWorld(t).policy
	const s, m = time.Second, time.Minute
	tests := []struct {
		name  string
		sight Sight
		want  Verdict
	}{
		{"corrupt", Sight{Corrupt: true}, Verdict{incident.CorruptHook, incident.Critical}},
		{"empty", Sight{Hook: hook.Empty, Quiet: time.Hour}, Verdict{}},
		{"empty and dead", Sight{Hook: hook.Empty, Dead: true, DeadFor: time.Hour}, Verdict{}},
		{"completed", Sight{Hook: hook.Completed, Quiet: time.Hour}, Verdict{}},
		{"progress", Sight{Hook: hook.Active, Quiet: 300 * s}, Verdict{}},
		{"stalled", Sight{Hook: hook.Active, Quiet: 301 * s}, Verdict{incident.Stalled, incident.Warning}},
		{"slow start", Sight{Hook: hook.Active, Quiet: 360 * s, Starting: true}, Verdict{}},
		{"slow start over", Sight{Hook: hook.Active, Quiet: 361 * s, Starting: true}, Verdict{incident.Stalled, incident.Warning}},
		{"a pending hook starts nothing", Sight{Hook: hook.Pending, Quiet: 301 * s, Starting: true}, Verdict{incident.NotPickedUp, incident.Warning}},
		{"nudge not due", Sight{Hook: hook.Active, Quiet: 400 * s, Nudges: 1, Unanswered: 1, Waiting: 119 * s}, Verdict{incident.Stalled, incident.Warning}},
		{"nudge due", Sight{Hook: hook.Active, Quiet: 420 * s, Nudges: 1, Unanswered: 1, Waiting: 120 * s}, Verdict{incident.Stalled, incident.Alert}},
		{"answered without progress", Sight{Hook: hook.Active, Quiet: 420 * s, Nudges: 1, Waiting: 120 * s}, Verdict{incident.Stalled, incident.Alert}},
		{"second not due", Sight{Hook: hook.Active, Quiet: 500 * s, Nudges: 2, Unanswered: 2, Waiting: 60 * s}, Verdict{incident.Stalled, incident.Warning}},
		{"two unanswered", Sight{Hook: hook.Active, Quiet: 540 * s, Nudges: 2, Unanswered: 2, Waiting: 120 * s}, Verdict{incident.Stalled, incident.Critical}},
		{"one of two answered", Sight{Hook: hook.Active, Quiet: 540 * s, Nudges: 2, Unanswered: 1, Waiting: 120 * s}, Verdict{incident.Stalled, incident.Alert}},
		{"restart threshold", Sight{Hook: hook.Active, Quiet: 601 * s}, Verdict{incident.Stalled, incident.Critical}},
		{"process gone", Sight{Hook: hook.Active, Dead: true, Quiet: s}, Verdict{incident.ProcessGone, incident.Alert}},
		{"process long gone", Sight{Hook: hook.Active, Dead: true, DeadFor: 601 * s}, Verdict{incident.ProcessGone, incident.Critical}},
		{"pending for the dead", Sight{Hook: hook.Pending, Dead: true, Quiet: 301 * s}, Verdict{incident.NotPickedUp, incident.Alert}},
		{"pending for the dead, long", Sight{Hook: hook.Pending, Dead: true, Quiet: 601 * s}, Verdict{incident.NotPickedUp, incident.Critical}},
		{"just slung to the dead", Sight{Hook: hook.Pending, Dead: true, Quiet: 299 * s}, Verdict{}},
		{"restarts left", Sight{Hook: hook.Active, Quiet: 301 * s, Restarts: 2}, Verdict{incident.Stalled, incident.Warning}},
		{"restarted too often", Sight{Hook: hook.Active, Quiet: 301 * s, Restarts: 3}, Verdict{incident.Restarts, incident.Critical}},
		{"restarted too often, but moving", Sight{Hook: hook.Active, Quiet: s, Restarts: 3}, Verdict{}},
		{"patient preset", Sight{Hook: hook.Active, Quiet: 20 * m, Stall: 20 * m}, Verdict{}},
		{"patient preset, ladder moved", Sight{Hook: hook.Active, Quiet: 25 * m, Stall: 20 * m}, Verdict{incident.Stalled, incident.Warning}},
		{"patient preset, restart moved", Sight{Hook: hook.Active, Quiet: 25*m + s, Stall: 20 * m}, Verdict{incident.Stalled, incident.Critical}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Evaluate(tt.sight, p); got != tt.want {
				t.Errorf("Evaluate(%+v) = %+v, want %+v", tt.sight, got, tt.want)
			}
		})
	}
}

// TestNoRestartsAllowed: where the definition allows none, the first stall
// climbs the ladder, and its end is a person.
func TestNoRestartsAllowed(t *testing.T) {
	w := newWorld(t)
	w.policy.MaxRestarts = 0
	w.add("mayor", "mayor", true)
	w.add("polecat-alpha", "polecat", true)
	w.work("polecat-alpha", hook.Active, "gt-abc12", "as-1", "ses-1")
	s := script{world: w}
	s.do("bead gt-abc12 in_progress as=as-1")
	var severities []incident.Severity
	var last Escalate
	for range 100 {
		d := w.tick(-1)
		for _, a := range d.Actions() {
			if e, ok := a.(Escalate); ok {
				severities, last = append(severities, e.Severity), e
			}
		}
		s.pass(10 * time.Second)
	}
	if len(severities) != 2 || severities[0] != incident.Alert || last.Metadata.Recommend != RecommendHuman {
		t.Errorf("severities %v, last recommendation %q", severities, last.Metadata.Recommend)
	}
}
