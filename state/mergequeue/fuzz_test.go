package mergequeue

import (
	"testing"

	"github.com/gastown-chipset/chipset/state/statetest/decodetest"
)

// FuzzDecodeRequest: what is accepted has one form, and loses nothing that it does not know.
func FuzzDecodeRequest(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		decodetest.Object(t, data, func(v *Request) error { return check(string(v.ID), v) })
	})
}
