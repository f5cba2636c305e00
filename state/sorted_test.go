package state

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// viaTree encodes as Encode does, by way of a tree of maps.
func viaTree(v any) ([]byte, error) {
	compact, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(compact))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(tree)
	return escapeControls(out.Bytes()), err
}

// FuzzEncode: whatever another tool has put into a field is written as by way of a tree.
func FuzzEncode(f *testing.F) {
	for _, text := range []string{
		`{"b":1,"a":[{"z":null,"y":{}},[],-1.50e+10]}`, `{"a":1,"a":2,"b":{"c":1,"c":{"d":0,"d":3}}}`, `"\u003cb\u003e & é \u2028   \ud800 \"\\"`,
		`{"<k>":1,"\u003ck\u003e":2,"é":"é","":""}`, "[\"\x7f\", \"\u009b\", \"\u202e\"]", `12345678901234567890123`, `{"a":"\u0000\n\t/\/"}`,
		`[",","{",{",":","}]`,
	} {
		f.Add([]byte(text), "<&>\xff\u2028")
	}
	f.Fuzz(func(t *testing.T, raw []byte, text string) {
		if !utf8.Valid(raw) {
			t.Skip("no reader lets it in")
		}
		for _, v := range []any{json.RawMessage(raw), struct {
			Z string          `json:"z"`
			R json.RawMessage `json:"<r>"`
			A []string        `json:"a"`
		}{text, raw, []string{text, string(raw)}}} {
			want, wantErr := viaTree(v)
			got, err := Encode(v)
			if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
				t.Fatalf("%q: %q, %v\nwant %q, %v", raw, got, err, want, wantErr)
			}
		}
	})
}
