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
