package agent

import (
	"testing"

	"github.com/gastown-chipset/chipset/state/statetest/decodetest"
)

// FuzzDecodeAgent: what is accepted has one form, and loses nothing that it does not know.
func FuzzDecodeAgent(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		decodetest.Object(t, data, func(v *Agent) error { return check(string(v.ID), v) })
	})
}
