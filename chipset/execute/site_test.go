package execute

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// TestVerdict: only a test that came to its own end judges the work.
func TestVerdict(t *testing.T) {
	own := process.Exit{Done: true}
	for name, tt := range map[string]struct {
		change  func(x *process.Exit)
		output  string
		kind    refinery.ResultKind
		failure mergequeue.Failure
	}{
		"green":              {func(*process.Exit) {}, "", refinery.Green, ""},
		"red":                {func(x *process.Exit) { x.Code = 1 }, "", refinery.Red, mergequeue.FailTests},
		"stopped":            {func(x *process.Exit) { x.Stopped, x.Code = true, 143 }, "", refinery.Trouble, ""},
		"stopped, and green": {func(x *process.Exit) { x.Stopped = true }, "", refinery.Trouble, ""},
		"its rig is gone":    {func(x *process.Exit) { x.Orphaned = true }, "", refinery.Trouble, ""},
		"not over":           {func(x *process.Exit) { x.Done = false }, "", refinery.Trouble, ""},
		"no exit code":       {func(x *process.Exit) { x.Code = -1 }, "", refinery.Trouble, ""},
		"timed out":          {func(x *process.Exit) { x.TimedOut, x.Code = true, 143 }, "", refinery.Red, mergequeue.FailCouldNotRun},
		"timed out, green":   {func(x *process.Exit) { x.TimedOut = true }, "", refinery.Red, mergequeue.FailCouldNotRun},
		"not found":          {func(x *process.Exit) { x.NotFound, x.Code = true, 127 }, "", refinery.Red, mergequeue.FailCouldNotRun},
		"not executable":     {func(x *process.Exit) { x.NotExecutable, x.Code = true, 126 }, "", refinery.Red, mergequeue.FailCouldNotRun},
		"killed":             {func(x *process.Exit) { x.Signal, x.Code = "SIGKILL", 137 }, "", refinery.Red, mergequeue.FailCouldNotRun},
		"no room":            {func(x *process.Exit) { x.Code = 2 }, "cc: No space left on device", refinery.Red, mergequeue.FailCouldNotRun},
		"no room, and green": {func(*process.Exit) {}, "cc: No space left on device", refinery.Green, ""},
	} {
		x := own
		tt.change(&x)
		if got := verdict(x, "make test", tt.output, 0); got.Kind != tt.kind || got.Failure != tt.failure {
			t.Errorf("%s: %s %s: %s", name, got.Kind, got.Failure, got.Text)
		}
	}
}

// TestTreeFiles: of a worker's tree nothing but small files of its own is read.
func TestTreeFiles(t *testing.T) {
	outside, dir := filepath.Join(t.TempDir(), "secret"), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(outside, []byte("secret"), 0o600), os.WriteFile(at("file"), []byte("text"), 0o600),
		os.WriteFile(at("large"), make([]byte, maxDetect+1), 0o600), os.Symlink(outside, at("link")), unix.Mkfifo(at("pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	files := treeFiles(dir)
	if got := string(files.read("file")); got != "text" {
		t.Errorf("the file holds %q", got)
	}
	for _, name := range []string{"large", "link", "pipe", "gone"} {
		if got := files.read(name); got != nil {
			t.Errorf("%s is read: %.20q", name, got)
		}
	}
	if !files.has("link") || files.has("gone") {
		t.Error("has looks behind links, or sees what is not there")
	}
}

// The test of a site comes to its end here, or can't run; where there is none the definition says whether that may be.
func TestSiteTest(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	gittest.Write(t, k.dir, ".chipset/worktrees/polecat-alpha/x", "")
	s := &Site{Rig: k.rig, ID: alpha, Dir: k.rig.Worktree(alpha), Jobs: k.p.jobs, Say: k.say}
	for _, c := range []struct {
		line    string
		defined bool
		want    refinery.Result
	}{
		{"true", true, refinery.Result{Kind: refinery.Green}},
		{"sh -c 'echo why; exit 3'", true, refinery.Result{Kind: refinery.Red, Failure: mergequeue.FailTests, Text: "sh -c 'echo why; exit 3': exit status 3\n\nwhy"}},
		{"", true, refinery.Result{Kind: refinery.Red, Failure: mergequeue.FailCouldNotRun, Text: noTestCommand}},
		{"", false, refinery.Result{Kind: refinery.Green, Untested: true}},
		{"\"", true, refinery.Result{Kind: refinery.Red, Failure: mergequeue.FailCouldNotRun, Text: "\": "}},
	} {
		k.rig.Def.Merge.Test, k.rig.Def.MergeDefined = definition.Command{Line: c.line}, c.defined
		got, err := s.Test(t.Context())
		k.fail(err)
		if c.line == "\"" && strings.HasPrefix(got.Text, c.want.Text) {
			got.Text = c.want.Text
		}
		if got != c.want {
			t.Errorf("%q: %+v, want %+v", c.line, got, c.want)
		}
	}
	k.rig.Def.Merge.Test.Line = "true"
	k.spoilt(state.LogDir, func() {
		if got, err := s.Test(t.Context()); err == nil {
			t.Errorf("without a log: %+v", got)
		}
	})
}

// Of a log the end is told that was written since, and only if it is a file.
func TestOutputTail(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	long := strings.Repeat("0123456789abcde\n", 2<<10) // 32 KiB
	gittest.Write(t, dir, "log", "earlier\n"+long+"last \x1b[1m\xff\n")
	if err := unix.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		from int64
		want string
	}{{"log", int64(len("earlier\n" + long)), "last [1m?"}, {"log", 0, strings.Repeat("0123456789abcde\n", tailLines-1) + "last [1m?"}, {"log", 1 << 20, ""}, {"none", 0, ""}} {
		if got := outputTail(at(c.name), c.from); got != c.want {
			t.Errorf("%s from %d: %q", c.name, c.from, got)
		}
	}
	if got := lastLines(strings.Repeat("x", 3<<10)+"y", 1); got != "…"+strings.Repeat("x", 3<<10-1)+"y" {
		t.Errorf("%d bytes", len(got))
	}
	if got := lastLines(strings.Repeat("x", 3<<10), 1); strings.HasPrefix(got, "…") {
		t.Error("what is not too long is cut")
	}
}
