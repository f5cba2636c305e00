package incident

import (
	"testing"

	"github.com/gastown-chipset/chipset/state/statetest/decodetest"
)

// FuzzDecodeIncident: what is accepted has one form, and loses nothing that it does not know.
func FuzzDecodeIncident(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		decodetest.Object(t, data, func(v *Incident) error { return check(string(v.ID), v) })
	})
}
