package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

type sample struct {
	Name  string            `json:"name"`
	At    *Time             `json:"at,omitempty"`
	Count int               `json:"count,omitempty"`
	Meta  map[string]string `json:"meta,omitempty"`
	Extra Extra             `json:"-"`
}

func (s *sample) UnmarshalJSON(b []byte) error {
	type plain sample
	return UnmarshalWithExtra(b, (*plain)(s), &s.Extra)
}

func (s sample) MarshalJSON() ([]byte, error) {
	type plain sample
	return MarshalWithExtra(plain(s), s.Extra)
}

func TestCanonicalForm(t *testing.T) {
	const in = `{"zeta":{"b":1e5,"a":[1,{"y":0,"x":12345678901234567890}]},"name":"<&> ü","Name":"other","alpha":1.0}`
	const want = `{
  "Name": "other",
  "alpha": 1.0,
  "name": "<&> ü",
  "zeta": {
    "a": [
      1,
      {
        "x": 12345678901234567890,
        "y": 0
      }
    ],
    "b": 1e5
  }
}
`
	var s sample
	must(t, Decode("p", []byte(in), &s))
	if s.Name != "<&> ü" {
		t.Errorf("name %q: field names are exact", s.Name)
	}
	got, err := Encode(s)
	must(t, err)
	if string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"empty":          "",
		"blank":          " \n\t",
		"a list":         "[]",
		"a string":       `"x"`,
		"null":           "null",
		"not UTF-8":      "{\"name\":\"\xff\"}",
		"duplicate keys": `{"name":"a","name":"b"}`,
		"deep duplicate": `{"x":[{"a":1,"a":2}]}`,
		"escaped twice":  `{"a":1,"\u0061":2}`,
		"torn":           `{"name":"a"`,
		"trailing":       `{"name":"a"} x`,
		"two objects":    `{"name":"a"}{"name":"b"}`,
		"wrong type":     `{"name":7}`,
		"too deep":       `{"x":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`,
		"no time":        `{"name":"a","at":"yesterday"}`,
		"year 10000":     `{"name":"a","at":"9999-12-31T23:59:59-23:00"}`,
		"time a number":  `{"name":"a","at":5}`,
		"conflict mark":  "<<<<<<< HEAD\n{}\n",
	} {
		var s sample
		err := Decode("state/x.json", []byte(in), &s)
		var c *Corruption
		if !errors.As(err, &c) || c.Path != "state/x.json" || c.Reason == "" {
			t.Errorf("%s: %v, want a *Corruption with path and reason", name, err)
		}
	}
}

func TestTimesOfOtherWriters(t *testing.T) {
	for in, want := range map[string]string{
		`"2026-03-05T10:30:00Z"`:                "2026-03-05T10:30:00.000000000Z",
		`"2026-03-05T11:30:00.5+01:00"`:         "2026-03-05T10:30:00.500000000Z",
		`"2026-03-05T11:30:00\u002B01:00"`:      "2026-03-05T10:30:00.000000000Z",
		`"2026-03-05T10:30:00.123456789Z"`:      "2026-03-05T10:30:00.123456789Z",
		`"2026-03-05T00:30:00.000000001-11:30"`: "2026-03-05T12:00:00.000000001Z",
	} {
		var at Time
		if err := json.Unmarshal([]byte(in), &at); err != nil || at.String() != want {
			t.Errorf("%s = %s, %v; want %s", in, at, err, want)
		}
	}
}

// No file holds a character that a terminal acts on; all others stay as they are.
func TestControlsAreEscaped(t *testing.T) {
	for r, want := range map[rune]string{
		'~': "~", 0x7f: `\u007f`, 0x80: `\u0080`, 0x9f: `\u009f`, 0xa0: "\u00a0", 0x200e: `\u200e`, 0x202e: `\u202e`, 0x2066: `\u2066`, 0x2065: "\u2065", 'é': "é",
	} {
		data, err := EncodeLine(map[string]string{"s": string(r)})
		if err != nil || string(data) != `{"s":"`+want+`"}`+"\n" {
			t.Errorf("%U is written as %q, %v", r, data, err)
		}
	}
}

// FuzzInspect: whatever decodes has one canonical form that decodes to itself.
func FuzzInspect(f *testing.F) {
	for _, seed := range []string{`{}`, `{"name":"a","count":3,"x":[1,{"y":null}]}`, `{"at":"2026-03-05T10:30:00+02:00","name":""}`,
		`{"name":"\ud800","q":"\ud800"}`, `{"a":{"b":{"c":[]}},"n":-0,"e":1E+400}`, `{"":0}`, `{"name":"\u009b2J\u202ex\u007f"}`, `{"meta":{"k":"v"},"Meta":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s sample
		if err := Decode("p", data, &s); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("not an ErrCorrupt: %v", err)
			}
			return
		}
		once, err := Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		var again sample
		if err := Decode("p", once, &again); err != nil {
			t.Fatalf("canonical form %q: %v", once, err)
		}
		twice, err := Encode(again)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("%q then %q, %v", once, twice, err)
		}
		if bytes.ContainsFunc(once, actsOnTerminal) {
			t.Fatalf("a terminal would obey %q", once)
		}
		for name := range s.Extra {
			if _, kept := again.Extra[name]; !kept {
				t.Fatalf("unknown field %q was lost", name)
			}
		}
	})
}

func TestDecodeSpeaksJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"name":[]}`:           "field name is an array, not a string",
		`{"name":{}}`:           "field name is an object, not a string",
		`{"name":true}`:         "field name is true or false, not a string",
		`{"count":"x"}`:         "field count is a string, not a whole number in range",
		`{"count":1.5}`:         "field count is number 1.5, not a whole number in range",
		`{"meta":[],"other":1}`: "field meta is an array, not an object",
		`{"meta":{"k":1}}`:      "field meta is a number, not a string",
	} {
		var s sample
		var bad *Corruption
		if err := Decode("p", []byte(in), &s); !errors.As(err, &bad) || bad.Reason != want {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

// TestTimesThatCantBeReadAgain: nothing is written with a year that no reader takes.
func TestTimesThatCantBeReadAgain(t *testing.T) {
	last, err := parseTime("9999-12-31T23:59:59.999999999Z")
	must(t, err)
	if _, err := Encode(map[string]any{"at": last}); err != nil {
		t.Error(err)
	}
	if data, err := Encode(map[string]any{"at": At(last.Add(1))}); err == nil {
		t.Errorf("wrote %s", data)
	}
}
