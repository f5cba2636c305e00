package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state/statetest/traced"
)

func TestReadOutside(t *testing.T) {
	dir := t.TempDir()
	file, fifo, link := filepath.Join(dir, "file"), filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	must(t, os.WriteFile(file, []byte("12345"), 0o644))
	must(t, unix.Mkfifo(fifo, 0o644))
	must(t, os.Symlink(file, link))
	for _, path := range []string{file, link} {
		if got, err := ReadOutside(path, 5); err != nil || string(got) != "12345" {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	for path, want := range map[string]error{
		filepath.Join(dir, "none"): fs.ErrNotExist,
		fifo:                       ErrNotRegular,
		dir:                        ErrNotRegular,
		"/dev/zero":                ErrNotRegular,
	} {
		if _, err := ReadOutside(path, 5); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	if _, err := ReadOutside(file, 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one byte over the limit: %v, want ErrTooLarge", err)
	}
}

func TestOutside(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	holds := func(name, want string, perm fs.FileMode) {
		t.Helper()
		data, err := os.ReadFile(at(name))
		info, statErr := os.Stat(at(name))
		if err != nil || statErr != nil || string(data) != want || info.Mode().Perm() != perm {
			t.Errorf("%s holds %q, %v, %v; want %q with %v", name, data, info, err, want, perm)
		}
	}
	must(t, ReplaceOutside(at("a"), []byte("one")))
	holds("a", "one", 0o644)
	must(t, os.Chmod(at("a"), 0o600))
	must(t, ReplaceOutside(at("a"), []byte("two")))
	holds("a", "two", 0o600)

	must(t, StageOutside(at("a"), at("staged"), []byte("three")))
	holds("a", "two", 0o600)
	holds("staged", "three", 0o600)
	must(t, PutOutside(at("staged"), at("a")))
	holds("a", "three", 0o600)
	if err := PutOutside(at("staged"), at("a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("put again: %v", err)
	}
	must(t, StageOutside(at("none"), at("new"), []byte("four")))
	holds("new", "four", 0o644)
	must(t, os.Symlink(at("a"), at("link")))
	must(t, StageOutside(at("link"), at("new"), []byte("five")))
	holds("new", "five", 0o644)

	must(t, MkdirOutside(at("folder")))
	must(t, MkdirOutside(at("folder")))
	must(t, MoveOutside(at("new"), at("folder/moved")))
	holds("folder/moved", "five", 0o644)
	if err := MoveOutside(at("a"), at("folder/moved")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("moved onto another: %v", err)
	}
	holds("folder/moved", "five", 0o644)
	must(t, ClaimOutside(at("claim")))
	if err := ClaimOutside(at("claim")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("claimed twice: %v", err)
	}
	must(t, ReleaseOutside(at("claim")))
	must(t, ClaimOutside(at("claim")))

	for name, err := range map[string]error{
		"replace in no folder":   ReplaceOutside(at("none/a"), nil),
		"replace a folder":       ReplaceOutside(at("folder"), nil),
		"stage in no folder":     StageOutside(at("a"), at("none/a"), nil),
		"a folder within a file": MkdirOutside(at("a/b")),
		"a file for a folder":    MkdirOutside(at("a")),
		"move of nothing":        MoveOutside(at("none"), at("b")),
		"move to no folder":      MoveOutside(at("a"), at("none/a")),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if left, _ := filepath.Glob(at(".*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

const outsideEnv = "STATE_TEST_OUTSIDE"

// What has a new name outside of the tree is durable, and a file before its name.
func TestOutsideReachesTheDisk(t *testing.T) {
	got := traced.Calls(t, "TestOutsideChild", outsideEnv+"="+t.TempDir())
	for what, calls := range map[string]string{
		"replace": "fsync rename fsync", "stage": "fsync rename fsync", "put": "rename fsync fsync", "mkdir": "fsync", "move": "rename fsync fsync",
	} {
		if got[what] != calls {
			t.Errorf("%s: %q, want %q", what, got[what], calls)
		}
	}
}

// TestOutsideChild is the child of the test above.
func TestOutsideChild(t *testing.T) {
	dir := os.Getenv(outsideEnv)
	if dir == "" {
		t.Skip("it is for a child of another test")
	}
	file, staged, folder := filepath.Join(dir, "file"), filepath.Join(dir, "staged"), filepath.Join(dir, "folder")
	for _, step := range []struct {
		word string
		do   func() error
	}{
		{"replace", func() error { return ReplaceOutside(file, []byte("one")) }},
		{"stage", func() error { return StageOutside(file, staged, []byte("two")) }},
		{"put", func() error { return PutOutside(staged, file) }},
		{"mkdir", func() error { return MkdirOutside(folder) }},
		{"move", func() error { return MoveOutside(file, filepath.Join(folder, "file")) }},
	} {
		must(t, traced.Say(dir, step.word))
		must(t, step.do())
	}
	must(t, traced.Say(dir, "end"))
}
