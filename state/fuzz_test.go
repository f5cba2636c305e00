package state

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzCheckID: what passes is one component of a path that no program takes for an
// option or a hidden file, and has one spelling on every file system.
func FuzzCheckID(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		if CheckID(s) != nil {
			if _, err := ParseAgentID(s); err == nil {
				t.Fatalf("%q is an agent, but no id", s)
			}
			return
		}
		if filepath.Base(s) != s || strings.HasPrefix(s, "-") || strings.HasPrefix(s, ".") || strings.ToLower(s) != s || len(s) > 64 {
			t.Fatalf("%q passes", s)
		}
		if err := StateDir.Join("work", s+".json").valid(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzTime: an instant that is read is written in one form, and read as the same.
func FuzzTime(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		var at Time
		if at.UnmarshalJSON(data) != nil {
			return
		}
		text, err := at.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var again Time
		if err := again.UnmarshalJSON(text); err != nil || !again.Equal(at.Time) || len(text) != len(`"2026-03-05T10:30:00.000000000Z"`) {
			t.Fatalf("%s became %s, then %v", data, text, err)
		}
	})
}

// FuzzPath: no path that passes leaves the tree.
func FuzzPath(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		if Path(s).valid() != nil {
			return
		}
		at := filepath.Join("/root/.chipset", s)
		if !strings.HasPrefix(at, "/root/.chipset/") || filepath.Clean(at) != at || strings.ContainsRune(at, 0) {
			t.Fatalf("%q leads to %q", s, at)
		}
	})
}

// FuzzDecodeIdentity: rig.json and the reasons in quarantine are read or refused.
func FuzzDecodeIdentity(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		var id Identity
		if Decode("p", data, &id) == nil && id.RigID != "" && CheckID(string(id.RigID)) != nil {
			t.Fatalf("the rig is %q", id.RigID)
		}
		var q Quarantined
		if Decode("p", data, &q) != nil {
			return
		}
		once, err := Encode(q)
		if err != nil {
			t.Fatal(err)
		}
		var again Quarantined
		if err := Decode("p", once, &again); err != nil {
			t.Fatalf("%s: %v", once, err)
		}
	})
}

// FuzzPlainName: whatever lies in the tree gets a name in quarantine that is one
// component, short, and safe to print.
func FuzzPlainName(f *testing.F) {
	f.Fuzz(func(t *testing.T, p string) {
		name := plainName(p)
		if strings.ContainsAny(name, "/\x00\n\x1b") || len(name) > 120 {
			t.Fatalf("%q becomes %q", p, name)
		}
	})
}
