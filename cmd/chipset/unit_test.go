package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

func TestExitCodes(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	corrupt := &state.Corruption{Path: "x", Reason: "y", Cause: state.ErrNotFound}
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want int
	}{
		{t.Context(), nil, 0},
		{t.Context(), io.ErrUnexpectedEOF, 1},
		{t.Context(), git.ErrNotRepo, 1},
		{t.Context(), &rig.DefinitionError{}, 1},
		{t.Context(), fmt.Errorf("x: %w", state.ErrTooLarge), 1},
		{t.Context(), fmt.Errorf("x: %w", state.ErrLockTimeout), 1},
		{t.Context(), usagef("x"), 2},
		{t.Context(), withHint(usagef("x"), "y"), 2},
		{t.Context(), state.ErrBadID, 2},
		{t.Context(), &state.Unknown{Kind: "bead", Name: "x"}, 3},
		{t.Context(), rig.ErrNoRig, 3},
		{t.Context(), state.Conflictf("x", "y"), 4},
		{t.Context(), &rig.ClaimedError{}, 4},
		{t.Context(), fmt.Errorf("x: %w", state.ErrExists), 4},
		{t.Context(), corrupt, 5},
		{t.Context(), errors.Join(state.ErrNotFound, corrupt), 5},
		{t.Context(), state.ErrNoTree, 5},
		{t.Context(), fmt.Errorf("x: %w", actor.ErrTimeout), 6},
		{t.Context(), errWaiting, 7},
		{interrupted, fmt.Errorf("x: %w", context.Canceled), 130},
		{interrupted, state.ErrNotFound, 3},
		{t.Context(), context.Canceled, 1},
		{t.Context(), exitWith(3, io.EOF), 3},
		{t.Context(), errSilent, 1},
	} {
		if got := exitCode(c.ctx, c.err); got != c.want {
			t.Errorf("exit code of %v is %d, expected %d", c.err, got, c.want)
		}
	}
}

// No command opens a tree whose identity is broken, so no hint sends to the doctor alone.
func TestHintsOfABrokenIdentity(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("x: %w", state.ErrNoTree), "from a backup"},
		{&state.Corruption{Path: "state/rig.json", Reason: "not valid JSON"}, "from a backup"},
		{&state.Corruption{Path: "state/rig.json", Reason: "x", Cause: state.ErrHardLinked}, "-samefile"},
		{&state.Corruption{Path: "state/work/gt-a.json", Reason: "x"}, "chipset doctor lists"},
	} {
		if got := actor.HintFor(c.err); !strings.Contains(got, c.want) {
			t.Errorf("hint of %v is %q, expected %q", c.err, got, c.want)
		}
	}
}

func TestWorktreeOwner(t *testing.T) {
	for _, c := range []struct{ cwd, want string }{
		{"/r/.chipset/worktrees/polecat-alpha", "polecat-alpha"},
		{"/r/.chipset/worktrees/polecat-alpha/a/b", "polecat-alpha"},
		{"/r/.chipset/worktrees", ""},
		{"/r/.chipset", ""},
		{"/r", ""},
		{"/r/.chipset/worktrees-of-mine/x", ""},
		{"/", ""},
	} {
		if got := worktreeOwner("/r/.chipset/worktrees", c.cwd); got != c.want {
			t.Errorf("%s belongs to %q, expected %q", c.cwd, got, c.want)
		}
	}
	real := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.MkdirAll(filepath.Join(real, "worktrees", "polecat-alpha"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if got := worktreeOwner(filepath.Join(real, "worktrees"), filepath.Join(link, "worktrees", "polecat-alpha")); got != "polecat-alpha" {
		t.Errorf("through a link: %q", got)
	}
}

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		in   string
		want time.Time
	}{
		{"1h30m", now.Add(-90 * time.Minute)},
		{"7d", now.Add(-7 * 24 * time.Hour)},
		{"2026-03-05T10:00:00Z", now.Add(-2 * time.Hour)},
		{"2026-03-05T11:00:00.5+01:00", now.Add(-2*time.Hour + 500*time.Millisecond)},
		{"2026-03-04", time.Date(2026, 3, 4, 0, 0, 0, 0, time.Local)},
	} {
		got, err := parseSince(c.in, now)
		if err != nil || !got.Equal(c.want) {
			t.Errorf("%q is %v, %v, expected %v", c.in, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "d", "-1h", "-1d", "99999999d", "soon", "1h ago"} {
		if got, err := parseSince(bad, now); err == nil {
			t.Errorf("%q is %v, expected an error", bad, got)
		}
	}
}

func TestClean(t *testing.T) {
	for _, c := range []struct{ in, line, text string }{
		{"plain – text", "plain – text", "plain – text"},
		{"a\x1b[31mb\x07", "a[31mb", "a[31mb"},
		{"a\nb\tc\r", "a b c ", "a\nb\tc"},
		{"a\u202eb\u009b", "ab", "ab"},
	} {
		if got := clean(c.in); got != c.line {
			t.Errorf("clean(%q) is %q, expected %q", c.in, got, c.line)
		}
		if got := cleanText(c.in); got != c.text {
			t.Errorf("cleanText(%q) is %q, expected %q", c.in, got, c.text)
		}
	}
}

// newTestApp is an app in a new rig, with its output.
func newTestApp(t *testing.T) (*app, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	dir := gittest.Repo(t)
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, env: func(string) string { return "" }, cwd: dir, clock: time.Now}
	if code := execute(t.Context(), []string{"init", "--worker", "sh", "--test", "true", "--polecats", "1"}, fresh(a)); code != 0 {
		t.Fatalf("init: exit %d: %s", code, &errs)
	}
	out.Reset()
	return a, &out, &errs
}

// TestShortNames: the name of a message that a terminal shows is one that commands take.
func TestShortNames(t *testing.T) {
	a, out, errs := newTestApp(t)
	if code := execute(t.Context(), []string{"mail", "send", "human", "--as", "mayor", "-s", "one"}, fresh(a)); code != codeOK {
		t.Fatalf("mail send: exit %d: %s", code, errs)
	}
	name := strings.TrimSpace(out.String())
	now := time.Now()
	e := mail.Entry{Message: mail.Message{Timestamp: state.At(now)}, Name: mail.Name(name)}
	short := shortName(&e, now)
	out.Reset()
	if code := execute(t.Context(), []string{"mail", "peek", short}, fresh(a)); code != codeOK || len(short) != 12 || !strings.Contains(out.String(), name) {
		t.Errorf("mail peek %s: exit %d: %s%s", short, code, out, errs)
	}
	if old := shortName(&e, now.Add(48*time.Hour)); old != name {
		t.Errorf("two days later: %s", old)
	}
	e.Name = "foreign.json"
	if foreign := shortName(&e, now); foreign != "foreign.json" {
		t.Errorf("of another writer: %s", foreign)
	}
}

// fresh is an app for one more command line in the same surroundings.
func fresh(a *app) *app {
	return &app{stdin: a.stdin, stdout: a.stdout, stderr: a.stderr, env: a.env, cwd: a.cwd, clock: a.clock, self: a.self}
}

// firstWrite cancels once something was written.
type firstWrite struct {
	bytes.Buffer
	then func()
}

func (w *firstWrite) Write(p []byte) (int, error) {
	defer w.then()
	return w.Buffer.Write(p)
}

func TestFollowEndsInterrupted(t *testing.T) {
	a, _, _ := newTestApp(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := &firstWrite{then: cancel}
	a.stdout = w
	if code := execute(ctx, []string{"log", "--follow", "--type", "rig"}, fresh(a)); code != codeInterrupted {
		t.Errorf("exit %d, expected %d", code, codeInterrupted)
	}
	if !strings.Contains(w.String(), "rig.created") {
		t.Errorf("no rig.created in %q", w.String())
	}
}

func TestFollowSeesWhatComes(t *testing.T) {
	a, _, _ := newTestApp(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w := &firstWrite{then: cancel}
	follower := fresh(a)
	follower.stdout = w
	done := make(chan int)
	go func() { done <- execute(ctx, []string{"log", "--follow", "--type", "mail.sent"}, follower) }()
	if code := execute(t.Context(), []string{"mail", "send", "mayor", "-s", "x"}, fresh(a)); code != codeOK {
		t.Fatalf("send: exit %d", code)
	}
	if code := <-done; code != codeInterrupted || !strings.Contains(w.String(), "mail.sent") {
		t.Errorf("exit %d with %q", code, w.String())
	}
}

// full is a standard output on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestLostOutputIsAFailure(t *testing.T) {
	a, _, errs := newTestApp(t)
	a.stdout = full{}
	for _, args := range [][]string{{"hook", "list"}, {"hook", "list", "--json"}, {"log"}, {"version"}, {"mail", "send", "mayor", "-s", "x"}, {"help"}} {
		errs.Reset()
		if code := execute(t.Context(), args, fresh(a)); code != codeFailed || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%v: exit %d, %q", args, code, errs)
		}
	}
}

// TestNameIsAnAcknowledgement: a script takes a name for a message that was stored.
func TestNameIsAnAcknowledgement(t *testing.T) {
	for _, json := range []bool{false, true} {
		var out strings.Builder
		a := &app{stdout: &out, json: json}
		if err := a.sent(state.ErrConflict, outcome{Did: "sent", Name: "2026-11-23T08-29-40.112700133Z-human.json"}); !errors.Is(err, state.ErrConflict) || out.Len() > 0 {
			t.Errorf("json %t: %v, printed %q", json, err, out.String())
		}
	}
}
