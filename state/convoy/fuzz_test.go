package convoy

import (
	"testing"

	"github.com/gastown-chipset/chipset/state/statetest/decodetest"
)

// FuzzDecodeConvoy: what is accepted has one form, and loses nothing that it does not know.
func FuzzDecodeConvoy(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		decodetest.Object(t, data, func(v *Convoy) error { return check(string(v.ID), v) })
	})
}
