package pause

import (
	"testing"

	"github.com/gastown-chipset/chipset/state/statetest/decodetest"
)

// FuzzDecodePause: what is accepted has one form, and loses nothing that it does not know.
func FuzzDecodePause(f *testing.F) {
	f.Add([]byte(`{"scope":"client:claude","status":"paused","class":"capacity","kind":"overloaded","reason":"r","since":"2026-03-05T10:30:00Z",` +
		`"until":"2026-03-05T10:30:05Z","tries":1,"tried":[{"at":"2026-03-05T10:30:00Z","bead_id":"gt-1","reason":"r"}],"updated_at":"2026-03-05T10:30:00Z","more":1}`))
	f.Add([]byte(`{"scope":"rig","status":"ramping","class":"environment","kind":"disk_full","reason":"r","tries":1,"width":2,"tried":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		decodetest.Object(t, data, func(v *Pause) error { return check(v.Scope.File(), v) })
	})
}
