package fault

import (
	"testing"

	"github.com/gastown-chipset/chipset/state/statetest/decodetest"
)

// FuzzDecodeFault: what is accepted has one form, and loses nothing that it does not know.
func FuzzDecodeFault(f *testing.F) {
	f.Add([]byte(`{"class":"capacity","kind":"usage_limit","until":"2026-11-22T22:30:00Z","reason":"usage limit reached"}`))
	f.Add([]byte(`{"class":"environment","kind":"a_new_kind","reason":"r","more":1}`))
	f.Add([]byte(`{"class":"work","kind":"rate_limit","reason":"r"}`))
	f.Add([]byte(`{"class":"","kind":"","reason":""}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		decodetest.Object(t, data, (*Fault).Check)
	})
}
