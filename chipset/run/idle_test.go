package run

import (
	"testing"

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
