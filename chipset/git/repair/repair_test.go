package repair

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
)

func TestMain(m *testing.M) {
	// Each step of a property here starts processes; -rapid.checks on the command line still wins.
	_ = flag.Set("rapid.checks", "40")
	restore := gittest.Isolate()
	code := m.Run()
	restore()
	os.Exit(code)
}

// fixture is a repository with one commit on main, worked on as a person would.
type fixture struct {
	*testing.T
	*git.Repo
	ctx context.Context
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a repo ü")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, ctx: t.Context()}
	f.git(dir, "init", "-q", "-b", "main")
	f.git(dir, "config", "user.name", "Person")
	f.git(dir, "config", "user.email", "person@example.org")
	f.write(dir, "a.txt", "one\ntwo\nthree\n")
	f.write(dir, ".gitignore", "ignored/\n")
	f.git(dir, "add", "-A")
	f.git(dir, "commit", "-q", "-m", "first")
	repo, err := git.Open(f.ctx, dir)
	f.must(err)
	f.Repo = repo
	return f
}

// git runs git as a person does, without any of the rig's settings.
func (f *fixture) git(dir string, args ...string) string {
	f.Helper()
	out, err := f.tryGit(dir, args...)
	if err != nil {
		f.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

func (f *fixture) tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) wantErr(err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Fatalf("error %v, want %v", err, want)
	}
}

func (f *fixture) write(dir, name, content string) {
	f.Helper()
	gittest.Write(f.T, dir, name, content)
}

func (f *fixture) wantFile(dir, name, content string) {
	f.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	f.must(err)
	if string(data) != content {
		f.Fatalf("%s holds %q, want %q", name, data, content)
	}
}

func (f *fixture) wantGone(dir, name string) {
	f.Helper()
	if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
		f.Fatalf("%s is still there (%v)", name, err)
	}
}

// commit writes files (an empty content removes) and commits them in dir.
func (f *fixture) commit(dir string, files map[string]string) git.Hash {
	f.Helper()
	for name, content := range files {
		if content == "" {
			f.must(os.Remove(filepath.Join(dir, name)))
		} else {
			f.write(dir, name, content)
		}
	}
	f.git(dir, "add", "-A")
	f.git(dir, "commit", "-q", "-m", "change")
	return f.head(dir)
}

func (f *fixture) head(dir string) git.Hash {
	f.Helper()
	return git.Hash(f.git(dir, "rev-parse", "HEAD"))
}

// prepared makes a linked worktree on branch polecat/x at HEAD.
func (f *fixture) prepared() *git.Worktree {
	f.Helper()
	path := filepath.Join(f.TopLevel(), ".chipset", "worktrees", "polecat alpha")
	f.write(f.CommonDir(), "info/exclude", "/.chipset/worktrees/\n")
	f.must(f.PrepareWorktree(f.ctx, path, "polecat/x", f.head(f.TopLevel())))
	return f.In(path)
}

func (f *fixture) wantPrepared(w *git.Worktree, b git.Branch, h git.Hash) {
	f.Helper()
	head, found, err := w.Head(f.ctx)
	f.must(err)
	if !found || head != h {
		f.Fatalf("HEAD %v, want %v", head, h)
	}
	if on, found, err := w.HeadBranch(f.ctx); err != nil || found != (b != "") || on != b {
		f.Fatalf("branch %q %v", on, err)
	}
	status, err := w.Status(f.ctx)
	f.must(err)
	if !status.Clean() {
		f.Fatalf("not clean: %+v", status)
	}
	f.git(w.Path(), "status") // the worker's own git must work too
}
