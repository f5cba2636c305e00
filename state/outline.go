package state

import (
	"bytes"
	"unicode/utf8"
)

// Field is a field of a JSON object as it stands in a file.
type Field struct {
	// Name is without its quotes, Value with all that belongs to it.
	Name, Value []byte
}

// outlineFields and outlineKeys bound what Outline looks at: past them, in the
// whole object and in an inner one, comparing every name with every other would
// cost more than decoding.
const (
	outlineFields = 64
	outlineKeys   = 16
)

// Outline takes the JSON object in data apart without decoding it, and puts its
// fields into buf. When it is true, Decode would find nothing wrong with the
// text as such: it is valid UTF-8 and valid JSON, no key stands twice, nothing
// is nested too deep. When it is false that is not known, for example because a
// key holds an escape: Decode finds out.
func Outline(data []byte, buf []Field) ([]Field, bool) {
	if !utf8.Valid(data) {
		return nil, false
	}
	s := outliner{data: data}
	fields, ok := s.object(buf[:0], outlineFields, 1)
	s.space()
	return fields, ok && s.at == len(data)
}

// FieldNamed is the value of a field, or nil.
func FieldNamed(fields []Field, name string) []byte {
	for _, f := range fields {
		if string(f.Name) == name {
			return f.Value
		}
	}
	return nil
}

// PlainText is the content of a JSON string in which nothing is escaped.
func PlainText(value []byte) ([]byte, bool) {
	if len(value) < 2 || value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 {
		return nil, false
	}
	return value[1 : len(value)-1], true
}

type outliner struct {
	data []byte
	at   int
}

func (s *outliner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// next skips white space and takes c.
func (s *outliner) next(c byte) bool {
	s.space()
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *outliner) object(fields []Field, most, depth int) ([]Field, bool) {
	if !s.next('{') || depth > MaxDepth {
		return nil, false
	}
	if s.next('}') {
		return fields, true
	}
	for {
		s.space()
		start := s.at
		if unescaped, ok := s.text(); !ok || !unescaped {
			return nil, false
		}
		name := s.data[start+1 : s.at-1]
		if len(fields) == most || FieldNamed(fields, string(name)) != nil || !s.next(':') {
			return nil, false
		}
		s.space()
		start = s.at
		if !s.value(depth) {
			return nil, false
		}
		fields = append(fields, Field{name, s.data[start:s.at]})
		if s.next('}') {
			return fields, true
		}
		if !s.next(',') {
			return nil, false
		}
	}
}

func (s *outliner) list(depth int) bool {
	if !s.next('[') || depth > MaxDepth {
		return false
	}
	if s.next(']') {
		return true
	}
	for s.value(depth) {
		if s.next(']') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
	return false
}

func (s *outliner) value(depth int) bool {
	s.space()
	if s.at == len(s.data) {
		return false
	}
	switch s.data[s.at] {
	case '{':
		var buf [outlineKeys]Field
		_, ok := s.object(buf[:0], outlineKeys, depth+1)
		return ok
	case '[':
		return s.list(depth + 1)
	case '"':
		_, ok := s.text()
		return ok
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *outliner) word(w string) bool {
	if !bytes.HasPrefix(s.data[s.at:], []byte(w)) {
		return false
	}
	s.at += len(w)
	return true
}

// text takes a string and tells whether nothing in it is escaped.
func (s *outliner) text() (unescaped, ok bool) {
	if s.at == len(s.data) || s.data[s.at] != '"' {
		return false, false
	}
	unescaped = true
	for s.at++; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; {
		case c == '"':
			s.at++
			return unescaped, true
		case c < ' ':
			return false, false
		case c == '\\':
			unescaped = false
			if !s.escape() {
				return false, false
			}
		}
	}
	return false, false
}

// escape takes all of an escape but its last byte.
func (s *outliner) escape() bool {
	s.at++
	if s.at == len(s.data) {
		return false
	}
	switch s.data[s.at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			s.at++
			if s.at == len(s.data) || !isHex(s.data[s.at]) {
				return false
			}
		}
		return true
	}
	return false
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (s *outliner) number() bool {
	if s.at < len(s.data) && s.data[s.at] == '-' {
		s.at++
	}
	zero := s.at < len(s.data) && s.data[s.at] == '0'
	if n := s.digits(); n == 0 || zero && n > 1 {
		return false
	}
	if s.at < len(s.data) && s.data[s.at] == '.' {
		s.at++
		if s.digits() == 0 {
			return false
		}
	}
	if s.at < len(s.data) && (s.data[s.at] == 'e' || s.data[s.at] == 'E') {
		s.at++
		if s.at < len(s.data) && (s.data[s.at] == '+' || s.data[s.at] == '-') {
			s.at++
		}
		return s.digits() > 0
	}
	return true
}

func (s *outliner) digits() int {
	start := s.at
	for s.at < len(s.data) && s.data[s.at] >= '0' && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at - start
}
