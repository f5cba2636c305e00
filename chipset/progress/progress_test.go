package progress

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/state"
)

func TestRecord(t *testing.T) {
	tree, err := state.Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	rec := Record{Session: "ses-1", Client: "claude", ClientSession: "abc", Figures: agentcli.Figures{Turns: 2, Tools: 1, TokensIn: 1500}, Resumes: 2,
		Began: 77, UpdatedAt: state.At(time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC))}
	if got := Read(tree, rec.Session); got != nil {
		t.Errorf("there is %+v before anything was written", got)
	}
	if err := Write(tree, rec); err != nil {
		t.Fatal(err)
	}
	got := Read(tree, rec.Session)
	if diff := cmp.Diff(&rec, got); diff != "" {
		t.Error(diff)
	}
	if want := "2 turns, 1 tool call, 1.5k tokens, resumed 2 times"; got.String() != want {
		t.Errorf("in words %q, want %q", got, want)
	}
	if err := Remove(tree, rec.Session); err != nil {
		t.Fatal(err)
	}
	if left := Read(tree, rec.Session); left.String() != "" {
		t.Errorf("left %+v", left)
	}
}

// TestNoRecord: what is no record of that session is none, and never an error.
func TestNoRecord(t *testing.T) {
	tree, err := state.Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(tree, Record{Session: "ses-1"}); err != nil {
		t.Fatal(err)
	}
	file := tree.Abs(path("ses-1"))
	for _, text := range []string{"", "{", "[]", `{"session":"ses-2","turns":1}`, `{"session":"ses-1","turns":"many"}`, `{"session":"ses-1","session":"ses-1"}`} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := Read(tree, "ses-1"); got != nil {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", file); err != nil {
		t.Fatal(err)
	}
	if got := Read(tree, "ses-1"); got != nil {
		t.Errorf("a link is followed: %+v", got)
	}
	if got := Read(tree, ""); got != nil {
		t.Errorf("no session has %+v", got)
	}
}
