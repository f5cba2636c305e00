package witness

import (
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/incident"
)

// An escalation says all that its reader has to go by, and of what is not known nothing.
func TestEscalationSaysWhatIsKnown(t *testing.T) {
	at := state.At(time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC))
	w := newWorld(t)
	w.add("polecat-alpha", agent.Polecat, true)
	w.work("polecat-alpha", hook.Active, "gt-1", "as-1", "ses-1")
	f := w.facts()
	f.Scan.Backlog.Put(bead.Bead{ID: "gt-1", Title: "add subtraction", Status: bead.InProgress, Attempts: 2, Priority: bead.P2})
	newDecision := func() *decision {
		return &decision{f: f, told: map[state.IncidentID]bool{}, since: map[state.IncidentID]state.Time{}}
	}
	i := incident.Incident{ID: "in-1", Kind: incident.Stalled, Severity: incident.Critical, AgentID: "polecat-alpha", BeadID: "gt-1", AssignmentID: "as-1",
		OpenedAt: at, Activity: &at, Nudges: 2, Answers: 1, Detail: "no output"}
	d := newDecision()
	e := d.escalation(&i)
	for _, want := range []string{string(incident.Critical) + ": " + e.Subject + ".\n", "in-1, open since " + at.String(), "polecat-alpha\n", "bead:", "gt-1\n", "assignment:", "as-1\n",
		"title:", "add subtraction", "held against:", "last on " + at.String(), "2 sent, 1 answered", "no output", "\nRecommended: "} {
		if !strings.Contains(e.Body, want) {
			t.Errorf("it does not say %q:\n%s", want, e.Body)
		}
	}
	if !strings.Contains(e.Body[strings.Index(e.Body, "incident:"):], "agent:") || strings.Index(e.Body, "Recommended") < strings.Index(e.Body, "no output") {
		t.Errorf("in another order:\n%s", e.Body)
	}
	if !d.told["in-1"] || e.Ref == nil || e.Ref.Session != "ses-1" || e.Ref.AssignmentID != "as-1" {
		t.Errorf("%+v, told %v", e.Ref, d.told)
	}
	other := i
	other.AssignmentID, other.BeadID, other.Activity, other.Nudges, other.Detail = "as-2", "", nil, 0, ""
	e = newDecision().escalation(&other)
	for _, no := range []string{"bead:", "title:", "progress:", "nudges:", "detail:"} {
		if strings.Contains(e.Body, no) {
			t.Errorf("it says %q of what is not known:\n%s", no, e.Body)
		}
	}
	if e.Ref.Session != "" {
		t.Errorf("the session of another assignment: %+v", e.Ref)
	}

	d = newDecision()
	d.open = []incident.Incident{i}
	report := d.report()
	for _, want := range []string{"in-1", "2 nudges", "chipset status --health"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report does not say %q:\n%s", want, report)
		}
	}
	if first, _, _ := strings.Cut(report, "\n"); first != strings.ToUpper(d.summary()[:1])+d.summary()[1:]+"." {
		t.Errorf("the report begins with %q", first)
	}
}

// A disk of which nothing is known is neither low nor full; at the bounds it is not yet.
func TestBoundsOfADisk(t *testing.T) {
	big := Disk{Total: 1 << 50}
	for _, c := range []struct {
		disk          Disk
		low, critical bool
	}{
		{Disk{}, false, false},
		{Disk{Free: big.low(), Total: big.Total}, false, false},
		{Disk{Free: big.low() - 1, Total: big.Total}, true, false},
		{Disk{Free: criticalBytes, Total: big.Total}, true, false},
		{Disk{Free: criticalBytes - 1, Total: big.Total}, true, true},
		{Disk{Free: 0, Total: 1 << 20}, true, true},
	} {
		if c.disk.Low() != c.low || c.disk.Critical() != c.critical {
			t.Errorf("%+v: low %t, critical %t", c.disk, c.disk.Low(), c.disk.Critical())
		}
	}
}

// A duration is said in minutes from two on.
func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{2*time.Minute - 50*time.Millisecond: "2m0s", 2 * time.Minute: "2 min", 119 * time.Second: "1m59s", 181 * time.Second: "3 min"} {
		if got := span(d); got != want {
			t.Errorf("%s: %q", d, got)
		}
	}
}
