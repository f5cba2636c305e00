package witness

import (
	"testing"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles/backlog"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// A patrol counts the requests that can land, and sees the first that is in the way.
func TestQueueOf(t *testing.T) {
	l := backlog.New(bead.Bead{ID: "tt-1", Status: bead.Done, AssignmentID: "as-1"}, bead.Bead{ID: "tt-2", Status: bead.Open})
	with := func(id string, change func(r *mergequeue.Request)) mergequeue.Request {
		r := mergequeue.Request{ID: "mr-1", BeadID: "tt-1", AssignmentID: "as-1", Status: mergequeue.Pending}
		r.Reason = id
		if change != nil {
			change(&r)
		}
		return r
	}
	q := QueueOf([]mergequeue.Request{
		with("landed", func(r *mergequeue.Request) { r.Status = mergequeue.Merged }), with("held", func(r *mergequeue.Request) { r.Held = &mergequeue.Hold{Change: "c"} }),
		with("no bead", func(r *mergequeue.Request) { r.BeadID = "tt-9" }), with("taken away", func(r *mergequeue.Request) { r.AssignmentID = "as-2" }),
		with("open again", func(r *mergequeue.Request) { r.BeadID = "tt-2" }), with("conflicted", func(r *mergequeue.Request) { r.Status = mergequeue.Conflicted }), with("waits", nil),
	}, l)
	if q.Head == nil || q.Head.Reason != "conflicted" || q.Waiting != 1 {
		t.Errorf("%+v", q)
	}
	if q := QueueOf([]mergequeue.Request{with("landed", func(r *mergequeue.Request) { r.Status = mergequeue.Merged })}, l); q.Head != nil || q.Waiting != 0 {
		t.Errorf("what is over: %+v", q)
	}
}

// A disk of unknown size is neither low nor full.
func TestUnknownDisk(t *testing.T) {
	if d := (Disk{}); d.Low() || d.Critical() {
		t.Error("it is taken for a full one")
	}
}

// At a threshold nothing has happened yet; behind it, it has.
func TestEvaluateAtThresholds(t *testing.T) {
	p := newWorld(t).policy
	_, restart := p.thresholds(Sight{})
	for _, c := range []struct {
		sight Sight
		want  Verdict
	}{
		{Sight{Hook: hook.Active, Dead: true, DeadFor: restart}, Verdict{incident.ProcessGone, incident.Alert}},
		{Sight{Hook: hook.Active, Dead: true, DeadFor: restart + 1}, Verdict{incident.ProcessGone, incident.Critical}},
		{Sight{Hook: hook.Pending, Dead: true, Quiet: restart}, Verdict{incident.NotPickedUp, incident.Alert}},
		{Sight{Hook: hook.Pending, Dead: true, Quiet: restart + 1}, Verdict{incident.NotPickedUp, incident.Critical}},
	} {
		if got := Evaluate(c.sight, p); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.sight, got, c.want)
		}
	}
}
