package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
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

// UnmarshalWithExtra decodes data, which must be valid JSON, into the plain struct
// that v points to, with exact (case-sensitive) field names, and puts all other
// fields into extra.
func UnmarshalWithExtra(data []byte, v any, extra *Extra) error {
	*extra = nil
	text := bytes.TrimSpace(data)
	if len(text) == 0 || text[0] != '{' {
		return json.Unmarshal(data, v)
	}
	names := fieldNames(reflect.TypeOf(v).Elem())
	var buf [24]Field
	known := []byte{'{'}
	for _, f := range split(text, buf[:0]) {
		name := string(f.Name)
		if !names[name] {
			if *extra == nil {
				*extra = Extra{}
			}
			(*extra)[name] = bytes.Clone(f.Value)
			continue
		}
		if len(known) > 1 {
			known = append(known, ',')
		}
		known = fmt.Appendf(known, "%q:%s", name, f.Value)
	}
	if len(*extra) > 0 { // encoding/json would match some of them by another case
		data = append(known, '}')
	}
	return json.Unmarshal(data, v)
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
// two-space indent, no HTML escaping, a newline at the end. Characters that a
// terminal obeys or that turn the direction of text are written as \u escapes,
// so that a file can be looked at with any program.
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
	return escapeControls(out.Bytes()), nil
}

// escapeControls writes what encoding/json leaves as it is: DEL, the C1 controls and the
// bidirectional controls. Outside of a string JSON has none of them.
func escapeControls(data []byte) []byte {
	if !bytes.ContainsFunc(data, actsOnTerminal) {
		return data
	}
	var out bytes.Buffer
	for _, r := range string(data) {
		if actsOnTerminal(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}

func actsOnTerminal(r rune) bool {
	if r <= 0x9f {
		return r >= 0x7f
	}
	return unicode.Is(unicode.Bidi_Control, r)
}

// Decode parses the content of the state file at path into v. In contrast to
// encoding/json it refuses invalid UTF-8, duplicate keys, an empty file, a root
// that is not an object, and nesting deeper than MaxDepth. Every error is a
// *Corruption.
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
