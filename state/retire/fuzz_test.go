package retire

import (
	"testing"

	"github.com/gastown-chipset/chipset/state/statetest/decodetest"
)

// FuzzDecodeRecord: what is accepted has one form, and loses nothing that it does not know.
func FuzzDecodeRecord(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		decodetest.Object(t, data, func(v *Record) error { return check(string(v.AssignmentID), v) })
	})
}
