package state

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var fixedTime = time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC)

func TestCheckID(t *testing.T) {
	good := []string{"a", "0", "polecat-alpha", "gt-abc12", "a.b_c-d", strings.Repeat("a", 64), "archived", "x.json"}
	bad := []string{"", ".", "..", "-a", "_a", ".a", "A", "ä", "a/b", `a\b`, "a b", "a\nb", "a\x00", "archive", "latest", "from",
		strings.Repeat("a", 65), "../x", "a:b", "%2e"}
	for _, s := range good {
		if err := CheckID(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range bad {
		if err := CheckID(s); !errors.Is(err, ErrBadID) {
			t.Errorf("%q: %v, want ErrBadID", s, err)
		}
	}
}

func TestIDsAreCheckedWhenDecoded(t *testing.T) {
	var v struct {
		A AgentID
		B []BeadID
		C ConvoyID
		D AssignmentID
		E SessionID
		F MergeID
		G IncidentID
		H RigID
	}
	for _, field := range []string{"A", "C", "D", "E", "F", "G", "H"} {
		if err := json.Unmarshal([]byte(`{"`+field+`":"../x"}`), &v); !errors.Is(err, ErrBadID) {
			t.Errorf("%s: %v, want ErrBadID", field, err)
		}
		if err := json.Unmarshal([]byte(`{"`+field+`":""}`), &v); err != nil {
			t.Errorf("%s empty: %v", field, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"B":["gt-aaaaa","A"]}`), &v); !errors.Is(err, ErrBadID) {
		t.Errorf("in a list: %v, want ErrBadID", err)
	}
}

func TestRandomNamesAreLegal(t *testing.T) {
	for range 100 {
		for _, s := range []string{string(NewAssignmentID()), string(NewSessionID()), Random(12)} {
			if err := CheckID(s); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"mayor", "polecat-alpha", "polecat-bravo", "refinery", "witness"}
	for in, want := range map[string][]string{
		"mayr":         {"mayor"},
		"polecat-alfa": {"polecat-alpha", "polecat-bravo"},
		"zzzzzzzz":     nil,
		"mayorxy":      {"mayor"},
		"refi":         nil,
		"wit":          nil,
	} {
		if got := Nearest(in, names); !slices.Equal(got, want) {
			t.Errorf("Nearest(%q) = %v, want %v", in, got, want)
		}
	}
	// Of two letters two may be wrong, of names that are as near the first in the alphabet comes first, and three are enough.
	if got := Nearest("xy", []string{"abc", "d", "c", "ab", "b"}); !slices.Equal(got, []string{"ab", "b", "c"}) {
		t.Errorf("%v", got)
	}
}

func TestParseStamped(t *testing.T) {
	for name, want := range map[string]struct {
		at string
		id AgentID
	}{
		"2026-03-05T10-30-00.000000000Z-mayor.json":    {"2026-03-05T10:30:00.000000000Z", "mayor"},
		"2026-03-05T10-30-00Z-mayor-a1b2c.json":        {"2026-03-05T10:30:00.000000000Z", "mayor-a1b2c"},
		"2026-03-05T10-30-00.5Z-x.json":                {"2026-03-05T10:30:00.500000000Z", "x"},
		"2026-03-05T10-30-00+02-00-mayor.json":         {"2026-03-05T08:30:00.000000000Z", "mayor"},
		"2026-03-05T10-30-00-05-30-polecat-alpha.json": {"2026-03-05T16:00:00.000000000Z", "polecat-alpha"},
		"2026-03-05T10-30-00.123-05-30-0.json":         {"2026-03-05T16:00:00.123000000Z", "0"},
	} {
		at, id, err := ParseTimestampedName(name)
		if err != nil || at.String() != want.at || id != want.id {
			t.Errorf("%s = %s, %s, %v; want %v", name, at, id, err, want)
		}
	}
	for _, name := range []string{"", "x.json", "2026-03-05T10:30:00Z-mayor.json", "2026-03-05T10-30-00Z-mayor", "2026-03-05T10-30-00Z-.json",
		"2026-03-05T10-30-00Z-Mayor.json", "2026-13-05T10-30-00Z-mayor.json", "2026-03-05T10-30-00Z-../x.json",
		"2026-03-05T10-30-00Z-archive.json", "9999-12-31T23-59-59-23-00-mayor.json", "2026-03-05T10-30-00.1234567890Z-mayor.json"} {
		if _, _, err := ParseTimestampedName(name); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %v, want ErrCorrupt", name, err)
		}
	}
}

// The names sort like the times, as long as one writer makes them.
func TestStampsSortByTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Custom(func(t *rapid.T) Time {
			return At(time.Unix(rapid.Int64Range(0, 1<<34).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")))
		})
		a, b := at.Draw(t, "a"), at.Draw(t, "b")
		if got, want := strings.Compare(a.Stamp(), b.Stamp()), a.Compare(b.Time); got != want {
			t.Fatalf("%s and %s compare %d, their times %d", a.Stamp(), b.Stamp(), got, want)
		}
		back, id, err := ParseTimestampedName(a.Stamp() + "-polecat-alpha.json")
		if err != nil || !back.Equal(a.Time) || id != "polecat-alpha" {
			t.Fatalf("%s came back as %s, %s, %v", a, back, id, err)
		}
	})
}

// FuzzParseStamped: what is accepted names a legal agent and a time that can be
// written again.
func FuzzParseStamped(f *testing.F) {
	for _, seed := range []string{"2026-03-05T10-30-00.000000000Z-mayor.json", "2026-03-05T10-30-00-05-30-a.json", "0000-01-01T00-00-00+01-00-a.json", "x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		at, id, err := ParseTimestampedName(name)
		if err != nil {
			return
		}
		if err := CheckID(string(id)); err != nil {
			t.Fatal(err)
		}
		back, again, err := ParseTimestampedName(at.Stamp() + "-" + string(id) + ".json")
		if err != nil || !back.Equal(at.Time) || again != id {
			t.Fatalf("%q: %s, %s came back as %s, %s, %v", name, at, id, back, again, err)
		}
	})
}
