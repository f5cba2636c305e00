package nudge

import (
	"testing"

	"github.com/gastown-chipset/chipset/state/statetest/decodetest"
)

// FuzzDecodeNudge: what is accepted has one form, and loses nothing that it does
// not know.
func FuzzDecodeNudge(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		decodetest.Object(t, data, func(n *Nudge) error { return n.check() })
	})
}

// FuzzDecodeSeen does the same for what an agent has processed.
func FuzzDecodeSeen(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		decodetest.Object(t, data, func(*Seen) error { return nil })
	})
}
