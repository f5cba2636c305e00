package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// MaxDepth is how deep objects and arrays may be nested in a state file.
const MaxDepth = 64

// Field is a field of a JSON object in its textual form.
type Field struct {
	// Name is without its quotes, Value is the text of the value.
	Name, Value []byte

	quoted []byte // the name with its quotes
}

// Fields returns the fields of the JSON object in data without decoding their
// values. It uses the memory of buf if that is large enough. ok is false for a
// text that Decode refuses for every type.
func Fields(data []byte, buf []Field) (fields []Field, ok bool) {
	if inspect(data) != "" {
		return nil, false
	}
	return split(bytes.TrimSpace(data), buf[:0]), true
}

// FieldNamed returns the value of a field, or nil.
func FieldNamed(fields []Field, name string) []byte {
	for _, f := range fields {
		if string(f.Name) == name {
			return f.Value
		}
	}
	return nil
}

// inspect returns what is wrong with the text of a state file, or "". See Decode.
func inspect(data []byte) string {
	text := bytes.TrimSpace(data)
	switch {
	case len(text) == 0:
		return "the file is empty"
	case !utf8.Valid(data):
		return "the file is not valid UTF-8"
	case text[0] != '{':
		return "the file is not a JSON object"
	case !json.Valid(data):
		return fmt.Sprintf("not valid JSON: %v", json.Unmarshal(data, &json.RawMessage{}))
	}
	return inspectValue(text, 1)
}

// inspectValue returns what is wrong with a value of valid JSON, or "": duplicate keys,
// or too much nesting. depth is that of the value.
func inspectValue(value []byte, depth int) string {
	if value[0] != '{' && value[0] != '[' {
		return ""
	}
	if depth > MaxDepth {
		return fmt.Sprintf("nested deeper than %d levels", MaxDepth)
	}
	var buf [24]Field
	fields := split(value, buf[:0])
	if name := duplicate(fields); name != nil {
		return fmt.Sprintf("the key %q appears twice", clip(string(name)))
	}
	for _, f := range fields {
		if reason := inspectValue(f.Value, depth+1); reason != "" {
			return reason
		}
	}
	return ""
}

// duplicate returns the name of two fields, or nil if all names differ.
func duplicate(fields []Field) []byte {
	if len(fields) > 32 { // comparing all pairs would take too long
		fields = slices.Clone(fields)
		slices.SortFunc(fields, func(a, b Field) int { return bytes.Compare(a.Name, b.Name) })
		for i := 1; i < len(fields); i++ {
			if fields[i].Name != nil && bytes.Equal(fields[i-1].Name, fields[i].Name) {
				return fields[i].Name
			}
		}
		return nil
	}
	for i, f := range fields {
		if f.Name != nil && FieldNamed(fields[:i], string(f.Name)) != nil {
			return f.Name
		}
	}
	return nil
}

// split appends the fields of a JSON object to fields, or the elements of an array as
// fields without names. The text must be valid JSON.
func split(text []byte, fields []Field) []Field {
	object := text[0] == '{'
	at := 1
	for {
		at = skipSpace(text, at)
		switch text[at] {
		case '}', ']':
			return fields
		case ',':
			at++
			continue
		}
		var f Field
		if object {
			end := skipValue(text, at)
			f.quoted = text[at:end]
			f.Name = unquote(f.quoted)
			at = skipSpace(text, skipSpace(text, end)+1)
		}
		end := skipValue(text, at)
		f.Value = text[at:end]
		fields = append(fields, f)
		at = end
	}
}

func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // it is valid JSON
	return []byte(s)
}

func skipSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// skipValue returns the end of the value that begins at at.
func skipValue(text []byte, at int) int {
	switch text[at] {
	case '"':
		return skipString(text, at)
	case '{', '[':
		for depth := 0; ; at++ {
			switch text[at] {
			case '"':
				at = skipString(text, at) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return at + 1
				}
			}
		}
	}
	for at < len(text) && bytes.IndexByte([]byte(",:]} \n\t\r"), text[at]) < 0 {
		at++
	}
	return at
}

func skipString(text []byte, at int) int {
	for at++; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at + 1
}
