package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestGlob: patterns mean what they mean to filepath.Glob, and a folder is read once for all of them.
func TestGlob(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"shadow", "shadow-", "group", ".a_history", ".b_history", "sub/key", "sub2/key"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := map[string]int{}
	names := rememberNames()
	list := func(dir string) []string { read[dir]++; return names(dir) }
	for _, pattern := range []string{"shadow*", ".*_history", "*", "s?adow", "[gs]*", "[", "none*", "sub*/key", "gone/*", "shadow/*", `\*`} {
		path := root + "/" + pattern
		got := glob(path, list)
		want, _ := filepath.Glob(path)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
	if got := glob(root+"/shadow", list); got != nil {
		t.Errorf("no pattern: %q", got)
	}
	if err := os.WriteFile(filepath.Join(root, "shadow.later"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := glob(root+"/shadow.*", list); got != nil {
		t.Errorf("the folder was read again: %q", got)
	}
}
