package state

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzOutline: what Outline vouches for, the decoder finds nothing wrong with,
// and it sees the same fields.
func FuzzOutline(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` {"a" : 1 , "b":[{"c":null},-0.5e+3,true],"d":"\u00e9\n","e":{"f":{"g":""}}} `,
		`{"a":1,"a":2}`, `{"a":{"b":1,"b":2}}`, `{"\u0061":1}`, `{"a":01}`, `{"a":"\x"}`, `{"a":1}x`, `[1]`, `{"a":1,}`, "{\"a\":\"\xff\"}",
		`{"a":1.}`, `{"a":-}`, `{"a":"` + "\t" + `"}`, `{"a":tru}`, "\u00a0{}",
	} {
		f.Add([]byte(seed))
	}
	f.Add(bytes.Repeat([]byte(`{"a":`), MaxDepth+2))
	f.Fuzz(func(t *testing.T, data []byte) {
		fields, ok := Outline(data, nil)
		if !ok {
			return
		}
		if reason := inspectTokens(data); reason != "" {
			t.Fatalf("%q: %s", data, reason)
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(data, &all); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if len(all) != len(fields) {
			t.Fatalf("%q: %d fields, decoded %d", data, len(fields), len(all))
		}
		for _, field := range fields {
			if !bytes.Equal(all[string(field.Name)], field.Value) {
				t.Fatalf("%q: %s is %q, decoded %q", data, field.Name, field.Value, all[string(field.Name)])
			}
		}
	})
}

// What this program writes, it can outline.
func TestOutlineOfCanonicalFiles(t *testing.T) {
	data, err := Encode(map[string]any{"a": 1, "b": []any{"x\ny", nil, map[string]any{"c": 1.5}}, "d": "é<>&", "e": map[string]any{}})
	must(t, err)
	fields, ok := Outline(data, nil)
	if !ok || len(fields) != 4 {
		t.Errorf("%d fields, %v", len(fields), ok)
	}
}
