package run

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// A power cut between a landing and its mail leaves a request whose bead is
// merged: a rig that takes that for idle would never tell of it.
func TestUntoldLandingKeepsTheRigBusy(t *testing.T) {
	for _, notified := range []bool{false, true} {
		var left remaining
		left.countQueue([]mergequeue.Request{{Status: mergequeue.Merged, NoticeName: "name", Notified: notified}}, nil, false)
		if left.idle() != notified {
			t.Errorf("notified %v: idle %v", notified, left.idle())
		}
	}
}

// A request that is in the way of nobody's landing but its own does not end a rig in which others can land.
func TestPassedRequestIsNoEnd(t *testing.T) {
	passed := mergequeue.Request{Status: mergequeue.Pending, Waiting: "a checkout", InTheWay: true}
	next := mergequeue.Request{Status: mergequeue.Pending}
	for _, tt := range []struct {
		queue []mergequeue.Request
		held  bool
	}{
		{[]mergequeue.Request{passed}, true},
		{[]mergequeue.Request{passed, passed}, true},
		{[]mergequeue.Request{passed, next}, false},
	} {
		var left remaining
		left.countQueue(tt.queue, nil, false)
		if left.Held != tt.held {
			t.Errorf("%d requests: held %t", len(tt.queue), left.Held)
		}
	}
}

// TestSameReasonOnce: fifteen beads that wait for the same reason are one thing that waits for the person.
func TestSameReasonOnce(t *testing.T) {
	var beads []bead.Bead
	for i := range 15 {
		beads = append(beads, bead.Bead{ID: state.BeadID(fmt.Sprintf("gt-%02d", i)), Status: bead.Blocked, CloseReason: "the same\nwith details"})
	}
	for _, why := range []string{"another", "a third", "another"} {
		beads = append(beads, bead.Bead{ID: state.BeadID(fmt.Sprintf("gt-%02d", len(beads))), Status: bead.Blocked, CloseReason: why})
	}
	var left remaining
	left.countBeads(nil, beads, nil, false)
	want := []string{"15 beads: gt-00, gt-01, gt-02, gt-03, gt-04, … (the same)", "gt-15, gt-17 (another)", "gt-16 (a third)"}
	if diff := cmp.Diff(want, left.Waits); diff != "" || left.Busy != 0 {
		t.Errorf("%d busy\n%s", left.Busy, diff)
	}
}
