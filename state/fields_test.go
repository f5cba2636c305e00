package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

// inspectTokens is inspect by means of json.Decoder, which is slow.
func inspectTokens(data []byte) string {
	switch trimmed := bytes.TrimSpace(data); {
	case len(trimmed) == 0:
		return "the file is empty"
	case !utf8.Valid(data):
		return "the file is not valid UTF-8"
	case trimmed[0] != '{':
		return "the file is not a JSON object"
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var stack []map[string]bool // nil stands for an array
	key := false
	for {
		tok, err := dec.Token()
		if err != nil {
			if len(stack) == 0 && errors.Is(err, io.EOF) {
				return ""
			}
			return "not valid JSON: " + err.Error()
		}
		if d, ok := tok.(json.Delim); ok {
			switch d {
			case '{':
				stack = append(stack, map[string]bool{})
			case '[':
				stack = append(stack, nil)
			default:
				stack = stack[:len(stack)-1]
			}
			if len(stack) > MaxDepth {
				return fmt.Sprintf("nested deeper than %d levels", MaxDepth)
			}
			key = len(stack) > 0 && stack[len(stack)-1] != nil
			continue
		}
		if len(stack) == 0 || stack[len(stack)-1] == nil {
			continue
		}
		if !key {
			key = true
			continue
		}
		name, _ := tok.(string)
		if stack[len(stack)-1][name] {
			return fmt.Sprintf("the key %q appears twice", clip(name))
		}
		stack[len(stack)-1][name] = true
		key = false
	}
}

// FuzzFields: Fields accepts what a decoder finds nothing wrong with, and nothing
// else, and sees the same fields.
func FuzzFields(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` {"a" : 1 , "b":[{"c":null},-0.5e+3,true],"d":"\u00e9\n","e":{"f":{"g":""}}} `,
		`{"a":1,"a":2}`, `{"a":{"b":1,"b":2}}`, `{"\u0061":1}`, `{"\u0061":1,"a":2}`, `{"a":01}`, `{"a":"\x"}`, `{"a":1}x`, `[1]`, `{"a":1,}`, "{\"a\":\"\xff\"}",
		`{"a":1.}`, `{"a":-}`, `{"a":"` + "\t" + `"}`, `{"a":tru}`, "\u00a0{}", `{}{}`, `{"a":[1,[2,{"b":"]}\\\""}]],"":""}`, `{"a":[{"b":1,"b":1}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Add(bytes.Repeat([]byte(`{"a":`), MaxDepth+2))
	f.Add([]byte(strings.Repeat(`{"a":`, MaxDepth) + "1" + strings.Repeat("}", MaxDepth)))
	f.Add([]byte(strings.Repeat(`{"a":[`, MaxDepth/2) + "{}" + strings.Repeat("]}", MaxDepth/2)))
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf(`"%d":1`, i))
	}
	f.Add([]byte("{" + strings.Join(many, ",") + "}"))
	f.Add([]byte("{" + strings.Join(many, ",") + `,"7":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fields, ok := Fields(data, nil)
		reason := inspectTokens(data)
		if want := reason == "" && json.Valid(data); ok != want {
			t.Fatalf("%q: %t, want %t: %s", data, ok, want, reason)
		}
		if got := inspect(data); !strings.HasPrefix(reason, "not valid JSON") && json.Valid(data) && got != reason {
			t.Fatalf("%q: %q, want %q", data, got, reason)
		}
		if !ok {
			return
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
