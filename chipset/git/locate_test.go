package git

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
)

// What is found without git is what git finds; whatever is odd is left to git.
func TestLocateWithoutGit(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		quick  bool
	}{
		"plain":    {func(*testing.T, string) {}, true},
		"detached": {func(t *testing.T, dir string) { put(t, dir, "HEAD", "0123456789012345678901234567890123456789\n") }, true},
		"a remote": {func(t *testing.T, dir string) {
			put(t, dir, "config", "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.org/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n")
		}, true},
		"elsewhere":  {func(t *testing.T, dir string) { put(t, dir, "config", "[core]\n\tworktree = /tmp\n") }, false},
		"bare":       {func(t *testing.T, dir string) { put(t, dir, "config", "[core]\n\tbare = true\n") }, false},
		"bare short": {func(t *testing.T, dir string) { put(t, dir, "config", "[core]\n\tbare\n") }, false},
		"included":   {func(t *testing.T, dir string) { put(t, dir, "config", "[includeIf \"gitdir:/x\"]\n\tpath = y\n") }, false},
		"extension": {func(t *testing.T, dir string) {
			put(t, dir, "config", "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n")
		}, false},
		"on a line":  {func(t *testing.T, dir string) { put(t, dir, "config", "[core] worktree = /tmp\n") }, false},
		"torn":       {func(t *testing.T, dir string) { put(t, dir, "config", "[core\n") }, false},
		"no head":    {func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, ".git", "HEAD")) }, false},
		"empty head": {func(t *testing.T, dir string) { put(t, dir, "HEAD", "") }, false},
		"worktree":   {func(t *testing.T, dir string) { put(t, dir, "commondir", "..\n") }, false},
		"another user's": {func(t *testing.T, dir string) {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a folder away")
			}
			if err := os.Chown(filepath.Join(dir, ".git"), 12345, 12345); err != nil {
				t.Fatal(err)
			}
		}, false},
		"no folder": {func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "x")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("x", filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := gitfile.RealPath(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Init(context.Background(), dir, "main"); err != nil {
				t.Fatal(err)
			}
			c.change(t, dir)
			gitDir, quick := locateWithoutGit(dir)
			if quick != c.quick {
				t.Fatalf("locateWithoutGit %v, want %v", quick, c.quick)
			}
			if !quick {
				return
			}
			r := &Repo{git: "git", env: Environment(os.Environ())}
			asked, err := r.discover(context.Background(), dir, "--absolute-git-dir")
			if err != nil || asked != gitDir {
				t.Errorf("%s, but git says %s, %v", gitDir, asked, err)
			}
		})
	}
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, ".git", name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
