// Package decodetest holds what every decoder of the state tree must keep, for
// the fuzzers of the packages that have one.
package decodetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/gastown-chipset/chipset/state"
)

// Object checks a decoder of T with data: it refuses with state.ErrCorrupt, or
// what it takes has one canonical form that decodes to itself, that sound takes
// as well, and that keeps every field which T does not know.
func Object[T any](t *testing.T, data []byte, sound func(v *T) error) {
	t.Helper()
	var v T
	if err := state.Decode("p", data, &v); err != nil {
		if !errors.Is(err, state.ErrCorrupt) {
			t.Fatalf("not an ErrCorrupt: %v", err)
		}
		return
	}
	if sound(&v) != nil {
		return
	}
	once := encode(t, v)
	again := decode[T](t, once)
	if err := sound(&again); err != nil {
		t.Fatalf("its own form is not sound: %v\n%s", err, once)
	}
	if twice := encode(t, again); !bytes.Equal(once, twice) {
		t.Fatalf("%s\nthen\n%s", once, twice)
	}
	unknown := bytes.Replace(once, []byte("{"), []byte(`{"zz_unknown": {"kept": [1, 2.50, null]},`), 1)
	if bytes.Equal(once, []byte("{}\n")) {
		unknown = []byte(`{"zz_unknown": {"kept": [1, 2.50, null]}}`)
	}
	if bytes.Contains(once, []byte(`"zz_unknown"`)) {
		return
	}
	var kept map[string]json.RawMessage
	if err := json.Unmarshal(encode(t, decode[T](t, unknown)), &kept); err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, kept["zz_unknown"]); err != nil || compact.String() != `{"kept":[1,2.50,null]}` {
		t.Fatalf("an unknown field became %s, %v", kept["zz_unknown"], err)
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := state.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decode[T any](t *testing.T, data []byte) T {
	t.Helper()
	var v T
	if err := state.Decode("p", data, &v); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return v
}
