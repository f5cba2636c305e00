package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// MaxFile is the largest state file that is not a message, in bytes.
const MaxFile = 1 << 20

// MaxCounter is the largest gen or seq of an object, the largest whole number that every
// reader of JSON represents exactly. No real counter gets near it.
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
	var buf [40]Field
	known := split(text, buf[:0])
	known = slices.DeleteFunc(known, func(f Field) bool {
		if names[string(f.Name)] {
			return false
		}
		if *extra == nil {
			*extra = Extra{}
		}
		(*extra)[string(f.Name)] = bytes.Clone(f.Value)
		return true
	})
	if *extra != nil { // encoding/json would match some of them by another case
		data = []byte{'{'}
		for _, f := range known {
			data = fmt.Appendf(data, "%q:%s,", f.Name, f.Value)
		}
		data = append(bytes.TrimSuffix(data, []byte{','}), '}')
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

// namesOfFields caches the results of fieldNames.
var namesOfFields sync.Map //nolint:gochecknoglobals // a type's fields never change

// fieldNames returns the names of a struct's fields in JSON.
func fieldNames(t reflect.Type) map[string]bool {
	if found, is := namesOfFields.Load(t); is {
		return found.(map[string]bool)
	}
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
	namesOfFields.Store(t, names)
	return names
}

// Encode returns the canonical form of a value: keys sorted at every level, two-space
// indent, no HTML escaping, a newline at the end. Control characters of terminals and of
// text direction are escaped (\u), so that a file is safe to show with any program.
func Encode(v any) ([]byte, error) { return encode(v, "  ") }

// EncodeLine is Encode on a single line, for append-only logs.
func EncodeLine(v any) ([]byte, error) { return encode(v, "") }

func encode(v any, indent string) ([]byte, error) {
	compact, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	text := append(appendSorted(nil, compact), '\n')
	if indent != "" {
		var out bytes.Buffer
		if err := json.Indent(&out, text, "", indent); err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		text = out.Bytes()
	}
	return escapeControls(text), nil
}

// appendSorted appends a value to out, the fields of its objects sorted by name. The value is text from
// json.Marshal, so a number that another tool wrote loses no digits.
func appendSorted(out, value []byte) []byte {
	if value[0] == '"' {
		return appendString(out, value)
	}
	if value[0] != '{' && value[0] != '[' {
		return append(out, value...)
	}
	var buf [40]Field
	fields := split(value, buf[:0])
	slices.SortStableFunc(fields, func(a, b Field) int { return bytes.Compare(a.Name, b.Name) }) // elements have no names
	out = append(out, value[0])
	for i, f := range fields {
		if f.Name != nil {
			if i+1 < len(fields) && bytes.Equal(f.Name, fields[i+1].Name) {
				continue // the last of two counts
			}
			out = append(appendString(out, f.quoted), ':')
		}
		out = append(appendSorted(out, f.Value), ',')
	}
	return append(bytes.TrimSuffix(out, []byte{','}), value[len(value)-1])
}

// appendString appends a string of JSON to out, without the escapes for HTML that json.Marshal writes.
func appendString(out, quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return append(out, quoted...)
	}
	var s string
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	_ = json.Unmarshal(quoted, &s) // it is valid JSON
	_ = enc.Encode(s)              // a string can be encoded
	return append(out, bytes.TrimSpace(plain.Bytes())...)
}

// escapeControls escapes what encoding/json does not: DEL, the C1 controls and the
// bidirectional controls. Valid JSON has none of them outside of strings.
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

// Decode parses the content of the state file at path into v. Unlike encoding/json it
// refuses invalid UTF-8, duplicate keys, an empty file, a root that is not an object, and
// nesting deeper than MaxDepth. Every error is a *Corruption.
func Decode(path string, data []byte, v any) error {
	if reason := inspect(data); reason != "" {
		return &Corruption{Path: path, Reason: reason}
	}
	decode := func() error { return json.Unmarshal(data, v) }
	if own, ok := v.(json.Unmarshaler); ok {
		decode = func() error { return own.UnmarshalJSON(data) } // json.Unmarshal would validate data again
	}
	if err := decode(); err != nil {
		return &Corruption{Path: path, Reason: mismatch(err)}
	}
	return nil
}

// mismatch describes an error of json.Unmarshal in terms of JSON instead of Go types.
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
	default: // for example "number 1e9", with the value that does not fit
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
		return "the expected type"
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
