package agentcli

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gastown-chipset/chipset/state"
)

func TestProgress(t *testing.T) {
	tree, err := state.Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	rec := Progress{Session: "ses-1", Client: "claude", ClientSession: "abc", Figures: Figures{Turns: 2, Tools: 1, TokensIn: 1500}, Resumes: 2,
		Began: 77, UpdatedAt: state.At(time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC))}
	if got := ReadProgress(tree, rec.Session); got != nil {
		t.Errorf("there is %+v before anything was written", got)
	}
	if err := rec.Write(tree); err != nil {
		t.Fatal(err)
	}
	got := ReadProgress(tree, rec.Session)
	if diff := cmp.Diff(&rec, got); diff != "" {
		t.Error(diff)
	}
	if want := "2 turns, 1 tool call, 1.5k tokens, resumed 2 times"; got.String() != want {
		t.Errorf("in words %q, want %q", got, want)
	}
	if err := RemoveProgress(tree, rec.Session); err != nil {
		t.Fatal(err)
	}
	if left := ReadProgress(tree, rec.Session); left.String() != "" {
		t.Errorf("left %+v", left)
	}
}

// TestNoProgress: what is no record of that session is none, and never an error.
func TestNoProgress(t *testing.T) {
	tree, err := state.Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := (&Progress{Session: "ses-1"}).Write(tree); err != nil {
		t.Fatal(err)
	}
	file := tree.Abs(progressPath("ses-1"))
	for _, text := range []string{"", "{", "[]", `{"session":"ses-2","turns":1}`, `{"session":"ses-1","turns":"many"}`, `{"session":"ses-1","session":"ses-1"}`} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := ReadProgress(tree, "ses-1"); got != nil {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", file); err != nil {
		t.Fatal(err)
	}
	if got := ReadProgress(tree, "ses-1"); got != nil {
		t.Errorf("a link is followed: %+v", got)
	}
	if got := ReadProgress(tree, ""); got != nil {
		t.Errorf("no session has %+v", got)
	}
}

func TestFiguresInWords(t *testing.T) {
	for want, f := range map[string]Figures{
		"": {}, "1 turn": {Turns: 1}, "2 turns, 1 tool call, 12.3k tokens, $0.05": {Turns: 2, Tools: 1, TokensIn: 12000, TokensOut: 345, CostUSD: 0.05},
		"999 tokens": {TokensIn: 999}, "1.5M tokens": {TokensOut: 1_500_000},
	} {
		if got := f.String(); got != want {
			t.Errorf("%+v is %q, want %q", f, got, want)
		}
	}
}
