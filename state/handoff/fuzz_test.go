package handoff

import (
	"testing"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest/decodetest"
)

// FuzzDecodeHandoff: what is accepted has one form, and loses nothing that it does
// not know.
func FuzzDecodeHandoff(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		decodetest.Object(t, data, func(h *Handoff) error { return state.CheckID(string(h.AgentID)) })
	})
}
