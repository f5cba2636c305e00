package audit_test

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/audit"
)

// note is a record whose number only grows. A new one begins with 1.
type note struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

func check(name string, n *note) error {
	if n.Name != name {
		return errors.New("another name")
	}
	return nil
}

func grows(before, after *note) error {
	switch {
	case before == nil && after.N != 1:
		return fmt.Errorf("it begins with %d", after.N)
	case before != nil && after.N <= before.N:
		return fmt.Errorf("it falls from %d to %d", before.N, after.N)
	}
	return nil
}

var errDisk = errors.New("the disk fails")

// checker knows notes: those of box/ may go to box/archive/, those of keep/ are repaired, those of free/ removed while
// the file "free" is there.
func checker() *audit.Checker {
	typed := audit.Typed(check, grows)
	return audit.NewChecker(
		audit.Rule{Patterns: []string{"box/*.json"}, CheckChange: typed, CheckNew: true,
			MovesTo: func(p string) string { return path.Join("box/archive", path.Base(p)) }},
		audit.Rule{Patterns: []string{"keep/*.json"}, CheckChange: typed, CheckRepair: func(_ string, _, after []byte) error {
			if len(after) == 0 {
				return errors.New("the repair is empty")
			}
			return nil
		}},
		audit.Rule{Patterns: []string{"free/*.json"}, CheckChange: typed, CheckRemoval: func(_ string, _ []byte, later audit.Snapshot) error {
			if f, err := later("free"); err != nil || !f.Exists() {
				return errors.Join(err, errors.New("nothing allows it"))
			}
			return nil
		}},
		audit.Rule{Patterns: []string{"log/*"}, CheckChange: audit.AppendOnly},
		audit.Rule{Patterns: []string{"rig.json"}, CheckChange: audit.WriteOnce},
	)
}

func file(text string) audit.File {
	if text == "" {
		return audit.File{}
	}
	return audit.File{ID: "id of " + text, Data: []byte(text)}
}

func at(name string, n int) string { return fmt.Sprintf(`{"name":%q,"n":%d}`, name, n) }

// reason is the file that explains what is in the quarantine.
func reason(t *testing.T, p string, copied bool) string {
	t.Helper()
	data, err := state.Encode(state.Quarantined{Path: p, File: "q1", Reason: "torn", Copied: copied})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestSteps: each pair of snapshots is judged by what a person would say of it.
func TestSteps(t *testing.T) {
	quarantined := func(p, content string, copied bool) []string {
		return []string{"quarantine/q1", "", content, "quarantine/q1.reason.json", "", reason(t, p, copied)}
	}
	tests := map[string]struct {
		changes []string          // path, before, after
		later   map[string]string // what did not change
		want    string            // "path: reason" of each violation, by path
	}{
		"nobody's file":                {changes: []string{"other/x", "a", "b"}},
		"a note grows":                 {changes: []string{"keep/a.json", at("a", 1), at("a", 2)}},
		"a note means the same":        {changes: []string{"keep/a.json", at("a", 2), " " + at("a", 2)}},
		"a note falls":                 {changes: []string{"keep/a.json", at("a", 2), at("a", 1)}, want: "keep/a.json: it falls from 2 to 1"},
		"a note becomes unreadable":    {changes: []string{"keep/a.json", at("a", 2), "{"}, want: "keep/a.json: can't be read"},
		"a note gets another's name":   {changes: []string{"keep/a.json", at("a", 2), at("b", 3)}, want: "keep/a.json: can't be read: another name"},
		"an unreadable note heals":     {changes: []string{"keep/a.json", "{", at("a", 1)}},
		"one of another name heals":    {changes: []string{"keep/a.json", at("b", 5), at("a", 1)}},
		"a note appears":               {changes: []string{"box/a.json", "", at("a", 1)}},
		"a note appears too late":      {changes: []string{"box/a.json", "", at("a", 3)}, want: "box/a.json: it begins with 3"},
		"anywhere else it may":         {changes: []string{"keep/a.json", "", at("a", 3)}},
		"something unreadable appears": {changes: []string{"box/a.json", "", "{"}},
		"violations come in order": {changes: []string{"keep/b.json", at("b", 2), at("b", 1), "keep/a.json", at("a", 2), at("a", 1)},
			want: "keep/a.json: it falls from 2 to 1\nkeep/b.json: it falls from 2 to 1"},

		"archived":                      {changes: []string{"box/a.json", at("a", 1), "", "box/archive/a.json", "", at("a", 2)}},
		"archived as it never was":      {changes: []string{"box/a.json", at("a", 2), "", "box/archive/a.json", "", at("a", 1)}, want: "box/a.json: moved to box/archive/a.json, but it falls"},
		"archived before":               {changes: []string{"box/a.json", at("a", 1), ""}, later: map[string]string{"box/archive/a.json": at("a", 2)}},
		"gone from the archive as well": {changes: []string{"box/a.json", at("a", 1), "", "box/archive/a.json", at("a", 2), ""}, later: map[string]string{"box/archive/a.json": at("a", 2)}, want: "box/a.json: it was removed"},
		"a name of the archive is used": {changes: []string{"box/a.json", "", at("a", 1)}, later: map[string]string{"box/archive/a.json": at("b", 2)}, want: "box/a.json: there is another file of this name in box/archive"},
		"the same in both places":       {changes: []string{"box/a.json", "", "{"}, later: map[string]string{"box/archive/a.json": "{"}},
		"copied from the archive":       {changes: []string{"box/a.json", "", at("a", 1)}, later: map[string]string{"box/archive/a.json": at("a", 2)}},

		"gone":                           {changes: []string{"keep/a.json", at("a", 2), ""}, want: "keep/a.json: it was removed"},
		"what could never be read":       {changes: []string{"keep/a.json", "{", ""}},
		"removed":                        {changes: []string{"free/a.json", at("a", 2), ""}, later: map[string]string{"free": "x"}},
		"removed although nothing lets":  {changes: []string{"free/a.json", at("a", 2), ""}, want: "free/a.json: nothing allows it"},
		"into the quarantine":            {changes: append(quarantined("state/keep/a.json", at("a", 2), false), "keep/a.json", at("a", 2), "")},
		"into it once it had grown":      {changes: append(quarantined("state/keep/a.json", at("a", 3), false), "keep/a.json", at("a", 2), "")},
		"into it, changed":               {changes: append(quarantined("state/keep/a.json", at("a", 1), false), "keep/a.json", at("a", 2), ""), want: "keep/a.json: it was moved to the quarantine with another content"},
		"copied into it, and gone":       {changes: append(quarantined("state/keep/a.json", at("a", 2), true), "keep/a.json", at("a", 2), ""), want: "keep/a.json: it was removed"},
		"into it, for another's reason":  {changes: append(quarantined("state/keep/b.json", at("a", 2), false), "keep/a.json", at("a", 2), ""), want: "keep/a.json: it was removed"},
		"a reason of nothing in state/":  {changes: append(quarantined("keep/a.json", at("a", 2), false), "keep/a.json", at("a", 2), ""), want: "keep/a.json: it was removed"},
		"a reason without its file":      {changes: []string{"quarantine/q1.reason.json", "", reason(t, "state/keep/a.json", false), "keep/a.json", at("a", 2), ""}, want: "keep/a.json: it was removed"},
		"what lay there before":          {changes: append(quarantined("state/keep/a.json", at("a", 2), false)[3:], "quarantine/q1", at("a", 1), at("a", 2), "keep/a.json", at("a", 2), ""), want: "keep/a.json: it was removed\nquarantine/q1: a file in the quarantine was changed"},
		"something else of its name":     {changes: append(quarantined("state/keep/a.json", at("a", 2), false), "keep/a.json", at("a", 2), "", "elsewhere/q1", "", "x")},
		"repaired":                       {changes: append(quarantined("state/keep/a.json", "{", false), "keep/a.json", at("a", 2), at("a", 1))},
		"repaired with nothing damaged":  {changes: append(quarantined("state/keep/a.json", at("a", 2), false), "keep/a.json", at("a", 2), at("a", 1)), want: "keep/a.json: it falls from 2 to 1"},
		"what is never rebuilt":          {changes: append(quarantined("state/free/a.json", "{", false), "free/a.json", at("a", 2), at("a", 1)), want: "free/a.json: it falls from 2 to 1"},
		"the quarantine is dealt with":   {changes: []string{"quarantine/q1", "x", ""}},
		"what is in it is never changed": {changes: []string{"quarantine/q1", "x", "y"}, want: "quarantine/q1: a file in the quarantine was changed"},

		"a line is added":        {changes: []string{"log/1", "a\n", "a\nb\n"}},
		"a line is changed":      {changes: []string{"log/1", "a\nb\nc\n", "a\nx\nc\n"}, want: "log/1: line 2 was changed, but lines may only be appended"},
		"one is, and it is less": {changes: []string{"log/1", "a\nb\nc\n", "a\nx\n"}, want: "log/1: line 2 was changed"},
		"lines are gone":         {changes: []string{"log/1", "a\nb\n", "a\n"}, want: "log/1: its last 2 bytes were removed"},
		"written once":           {changes: []string{"rig.json", "a", "b"}, want: "rig.json: it was changed, but files of its kind may not be"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var changes []audit.Change
			for c := range slices.Chunk(tc.changes, 3) {
				changes = append(changes, audit.Change{Path: c[0], Before: file(c[1]), After: file(c[2])})
			}
			found, err := checker().Check(changes, func(p string) (audit.File, error) { return file(tc.later[p]), nil })
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range found {
				got = append(got, v.Path+": "+v.Reason)
			}
			want := strings.Split(tc.want, "\n")
			if tc.want == "" {
				want = nil
			}
			if len(got) != len(want) {
				t.Fatalf("found %q, want %q", got, want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], want[i]) {
					t.Errorf("found %q, want %q", got[i], want[i])
				}
			}
		})
	}
}

// TestFailedLookup: what can't be looked up is no judgement.
func TestFailedLookup(t *testing.T) {
	fails := func(string) (audit.File, error) { return audit.File{}, errDisk }
	for _, c := range []audit.Change{
		{Path: "box/a.json", After: file(at("a", 1))},
		{Path: "box/a.json", Before: file(at("a", 1))},
		{Path: "free/a.json", Before: file(at("a", 1))},
	} {
		if found, err := checker().Check([]audit.Change{c}, fails); len(found) > 0 || !errors.Is(err, errDisk) {
			t.Errorf("%s: %v, %v", c.Path, found, err)
		}
	}
}

// TestFixed: the first field that differs is named, with values that fit a sentence.
func TestFixed(t *testing.T) {
	if err := audit.Fixed("id", 1, 1, "name", "a", "a"); err != nil {
		t.Error(err)
	}
	if err := audit.Fixed("id", 1, 1, "name", "a", "b"); err == nil || err.Error() != `name changed from "a" to "b"` {
		t.Error(err)
	}
	long := strings.Repeat("x", 78)
	if err := audit.Fixed("name", long, long+"y"); err == nil || err.Error() != `name changed from "`+long+`" to "`+long+"y…" {
		t.Error(err)
	}
}

// TestTypedRefusesWhatIsDamaged, whatever the rules for the value say.
func TestTypedRefusesWhatIsDamaged(t *testing.T) {
	rule := audit.Typed(func(string, *note) error { return nil }, func(before, after *note) error {
		if after == nil {
			t.Error("judged without a value")
		}
		return nil
	})
	for text, want := range map[string]error{at("a", 1): nil, "{": audit.ErrUnreadable, "": audit.ErrUnreadable} {
		for _, before := range [][]byte{nil, []byte(at("a", 0))} {
			if err := rule("box/a.json", before, []byte(text)); !errors.Is(err, want) {
				t.Errorf("%q: %v, want %v", text, err, want)
			}
		}
	}
	never := audit.Typed(func(string, *note) error { return nil }, func(_, _ *note) error { return errDisk })
	if err := never("box/a.json", []byte("{"), []byte(at("a", 1))); err != nil {
		t.Errorf("what follows a damaged version: %v", err)
	}
	if err := audit.WriteOnce("rig.json", nil, []byte("x")); err != nil {
		t.Errorf("the first version: %v", err)
	}
}

// TestReasonsThatLie: a file that is gone is excused by a reason that names it and whose file came with it, and by
// no other.
func TestReasonsThatLie(t *testing.T) {
	none := func(string) (audit.File, error) { return audit.File{}, nil }
	for name, c := range map[string]struct {
		path string
		file string
		dir  string
		want int
	}{
		"true":                  {"state/box/a.json", "q1", "quarantine/", 0},
		"outside":               {"box/a.json", "q1", "quarantine/", 1},
		"without a file":        {"state/box/a.json", "q2", "quarantine/", 1},
		"of another file":       {"state/box/b.json", "q1", "quarantine/", 1},
		"not in the quarantine": {"state/box/a.json", "q1", "", 1},
	} {
		found, err := checker().Check([]audit.Change{
			{Path: "box/a.json", Before: file(at("a", 1))},
			{Path: c.dir + "q1.reason.json", After: file(reason(t, c.path, false))},
			{Path: c.dir + c.file, After: file(at("a", 1))},
		}, none)
		if err != nil || len(found) != c.want {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}
