package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// MaxFile is the largest state file that is not a message, in bytes.
const MaxFile = 1 << 20

// MaxCounter is the largest gen or seq of an object: up to here every reader of
// JSON keeps a whole number as it is, and nothing that counts gets anywhere near.
const MaxCounter = 1 << 53

// Extra holds the unknown fields of newer versions or of other tools. A value type embeds it
// and calls UnmarshalWithExtra and MarshalWithExtra from its JSON methods, so that
// rewriting the file keeps what this version does not understand.
type Extra map[string]json.RawMessage

// UnmarshalWithExtra decodes data into the plain struct that v points to, with
// exact (case-sensitive) field names, and puts all other fields into extra.
func UnmarshalWithExtra(data []byte, v any, extra *Extra) error {
	*extra = nil
	names := fieldNames(reflect.TypeOf(v).Elem())
	if onlyKnown(data, names) {
		return json.Unmarshal(data, v)
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	known := map[string]json.RawMessage{}
	for name := range names {
		if raw, ok := all[name]; ok {
			known[name] = raw
			delete(all, name)
		}
	}
	if len(all) == 0 {
		return json.Unmarshal(data, v) // nothing that could be matched by another case
	}
	exact, err := json.Marshal(known)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(exact, v); err != nil {
		return err
	}
	*extra = all
	return nil
}

// onlyKnown tells, without decoding, that an object has no other fields.
func onlyKnown(data []byte, names map[string]bool) bool {
	var buf [outlineFields]Field
	fields, ok := Outline(data, buf[:0])
	for _, f := range fields {
		ok = ok && names[string(f.Name)]
	}
	return ok
}

// MarshalWithExtra encodes the plain struct v together with extra.
func MarshalWithExtra(v any, extra Extra) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil || len(extra) == 0 {
		return data, err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	names := fieldNames(reflect.TypeOf(v))
	for name, raw := range extra {
		if !names[name] {
			all[name] = raw
		}
	}
	return json.Marshal(all)
}

func fieldNames(t reflect.Type) map[string]bool {
	names := map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-" || !f.IsExported():
		case tag == "":
			names[f.Name] = true
		default:
			names[tag] = true
		}
	}
	return names
}

// Encode gives the one canonical form of a value: keys sorted at every level,
// two-space indent, no HTML escaping, a newline at the end.
func Encode(v any) ([]byte, error) { return encode(v, "  ") }

// EncodeLine is Encode on a single line, for append-only logs.
func EncodeLine(v any) ([]byte, error) { return encode(v, "") }

func encode(v any, indent string) ([]byte, error) {
	compact, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(compact))
	dec.UseNumber() // a number another tool wrote must not lose digits
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(tree); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return out.Bytes(), nil
}

// Decode parses the content of the state file at path into v. It refuses what
// encoding/json would let pass: invalid UTF-8, duplicate keys, an empty file,
// a root that is no object. Every error is a *Corruption.
func Decode(path string, data []byte, v any) error {
	if reason := inspect(data); reason != "" {
		return &Corruption{Path: path, Reason: reason}
	}
	decode := func() error { return json.Unmarshal(data, v) }
	if own, ok := v.(json.Unmarshaler); ok {
		decode = func() error { return own.UnmarshalJSON(data) } // which saves a pass over what was inspected
	}
	if err := decode(); err != nil {
		return &Corruption{Path: path, Reason: mismatch(err)}
	}
	return nil
}

// mismatch says in the words of JSON what a decoder refused.
func mismatch(err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err.Error()
	}
	got := wrong.Value
	switch got {
	case "array", "object":
		got = "an " + got
	case "string", "number":
		got = "a " + got
	case "bool":
		got = "true or false"
	default: // "number 1e9" and the like, with what does not fit
	}
	what := "the value"
	if wrong.Field != "" {
		what = "field " + clip(wrong.Field)
	}
	return what + " is " + got + ", not " + wordFor(wrong.Type)
}

// wordFor is what JSON calls the values of a Go type.
func wordFor(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return "what belongs there"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "a whole number in range"
	}
}

// MaxDepth is how deep objects and lists may be nested in a state file.
const MaxDepth = 64

func inspect(data []byte) string {
	var buf [outlineFields]Field
	if _, ok := Outline(data, buf[:0]); ok {
		return ""
	}
	return inspectTokens(data)
}

// inspectTokens says what is wrong with a text, or "".
func inspectTokens(data []byte) string {
	switch trimmed := bytes.TrimSpace(data); {
	case len(trimmed) == 0:
		return "the file is empty"
	case !utf8.Valid(data):
		return "the file is not valid UTF-8"
	case trimmed[0] != '{':
		return "the file holds no JSON object"
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var stack []map[string]bool // nil stands for a list
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
			return fmt.Sprintf("the key %q stands twice", clip(name))
		}
		stack[len(stack)-1][name] = true
		key = false
	}
}
