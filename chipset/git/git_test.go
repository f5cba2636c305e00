package git

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
	*Repo
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
	repo, err := Open(f.ctx, dir)
	f.must(err)
	repo.LockGrace = 40 * time.Millisecond
	f.Repo = repo
	return f
}

// git runs git as a person does, without any of the package's settings.
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
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return strings.TrimSuffix(out.String(), "\n"), err
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
func (f *fixture) commit(dir string, files map[string]string) Hash {
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

func (f *fixture) head(dir string) Hash {
	f.Helper()
	return Hash(f.git(dir, "rev-parse", "HEAD"))
}

// prepared makes a linked worktree on branch polecat/x at HEAD.
func (f *fixture) prepared() *Worktree {
	f.Helper()
	path := filepath.Join(f.TopLevel(), ".chipset", "worktrees", "polecat alpha")
	f.write(f.CommonDir(), "info/exclude", "/.chipset/worktrees/\n")
	f.must(f.PrepareWorktree(f.ctx, path, "polecat/x", f.head(f.TopLevel())))
	return f.In(path)
}

func TestOpen(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	f.write(w.Path(), "deep/er/x", "x")
	for _, dir := range []string{f.TopLevel(), f.CommonDir(), w.Path(), filepath.Join(w.Path(), "deep/er")} {
		r, err := Open(f.ctx, dir)
		f.must(err)
		if r.TopLevel() != f.TopLevel() || r.CommonDir() != f.CommonDir() {
			t.Errorf("Open(%s): %s, %s", dir, r.TopLevel(), r.CommonDir())
		}
	}
	f.must(f.Check(f.ctx))
	f.must(f.Sync(f.ctx))
}

func TestOpenRefuses(t *testing.T) {
	f := &fixture{T: t, ctx: t.Context()}
	dir := t.TempDir()
	_, err := Open(f.ctx, dir)
	f.wantErr(err, ErrNotRepo)
	_, err = Open(f.ctx, "")
	if err == nil {
		t.Error("opened nothing")
	}
	f.git(dir, "init", "-q", "--bare", "bare.git")
	_, err = Open(f.ctx, filepath.Join(dir, "bare.git"))
	f.wantErr(err, ErrBare)

	f.git(dir, "init", "-q", "-b", "trunk", "unborn")
	r, err := Open(f.ctx, filepath.Join(dir, "unborn"))
	f.must(err)
	f.wantErr(r.Check(f.ctx), ErrNoCommits)
	_, err = r.DefaultTarget(f.ctx)
	f.wantErr(err, ErrNoCommits)
	if b, found, err := r.CurrentBranch(f.ctx); err != nil || !found || b != "trunk" {
		t.Errorf("current branch %q %v %v", b, found, err)
	}
}

func TestOpenNewlinePathAndSeparateGitDir(t *testing.T) {
	f := &fixture{T: t, ctx: t.Context()}
	base := t.TempDir()
	dir := filepath.Join(base, "new\nline")
	f.git(base, "init", "-q", "-b", "main", "--separate-git-dir", filepath.Join(base, "elsewhere"), dir)
	r, err := Open(f.ctx, dir)
	f.must(err)
	if r.TopLevel() != dir || r.CommonDir() != filepath.Join(base, "elsewhere") {
		t.Fatalf("%q %q", r.TopLevel(), r.CommonDir())
	}
	f.Repo = r
	f.git(dir, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "x")
	list, err := r.ListWorktrees(f.ctx)
	f.must(err)
	if len(list) != 1 || list[0].Path != dir || list[0].Branch != "main" {
		t.Fatalf("%+v", list)
	}
}

func TestEnvironmentDropsRedirections(t *testing.T) {
	got := Environment([]string{"GIT_DIR=/x", "GIT_WORK_TREE=/x", "GIT_INDEX_FILE=/x", "GIT_OBJECT_DIRECTORY=/x",
		"GIT_CONFIG_PARAMETERS='core.bare=true'", "GIT_AUTHOR_DATE=0 +0000", "GIT_LITERAL_PATHSPECS=1", "HOME=/h", "GIT_SSH_COMMAND=ssh -v", "GIT_CONFIG_COUNT=1"})
	if want := "HOME=/h GIT_SSH_COMMAND=ssh -v GIT_CONFIG_COUNT=1"; strings.Join(got, " ") != want {
		t.Errorf("%q", got)
	}
}

// The rig's git asks nobody, opens no editor, fetches nothing by itself, and follows no replacement.
func TestEnvironmentOfGit(t *testing.T) {
	f := newFixture(t)
	for _, c := range []Command{{}, {Read: true}, {Network: true}} {
		c.Args = []string{"-c", "alias.dump=!env", "dump"}
		out, err := f.Repo.Run(f.ctx, c)
		f.must(err)
		for line, want := range map[string]bool{"GIT_TERMINAL_PROMPT=0": true, "GIT_ASKPASS=": true, "GIT_EDITOR=true": true, "GIT_SEQUENCE_EDITOR=true": true,
			"GIT_PAGER=cat": true, "LC_ALL=C": true, "GIT_NO_LAZY_FETCH=1": true, "GIT_NO_REPLACE_OBJECTS=1": true,
			"GIT_OPTIONAL_LOCKS=0": c.Read, "GIT_ALLOW_PROTOCOL=none": !c.Network} {
			if slices.Contains(strings.Split(string(out), "\n"), line) != want {
				t.Errorf("%+v: %s is there: %v", c, line, !want)
			}
		}
	}
}

func TestIdentityEnv(t *testing.T) {
	f := newFixture(t)
	env, err := f.IdentityEnv(f.ctx, "polecat-alpha")
	f.must(err)
	if env != nil {
		t.Errorf("configured, but %q", env)
	}
	f.git(f.TopLevel(), "config", "--unset", "user.email")
	env, err = f.IdentityEnv(f.ctx, "polecat-alpha")
	f.must(err)
	want := "GIT_AUTHOR_NAME=Person GIT_AUTHOR_EMAIL=polecat-alpha@chipset.invalid GIT_COMMITTER_NAME=Person GIT_COMMITTER_EMAIL=polecat-alpha@chipset.invalid"
	if strings.Join(env, " ") != want {
		t.Errorf("%q", env)
	}
}

func TestErrorsAndCancellation(t *testing.T) {
	f := newFixture(t)
	_, err := f.Repo.Run(f.ctx, Command{Args: []string{"cat-file", "-p", "nonsense"}})
	var failed *Error
	if !errors.As(err, &failed) || failed.ExitCode != 128 || !strings.Contains(failed.Error(), "nonsense") {
		t.Fatalf("%v", err)
	}
	ctx, err := f.cancelled("touch started; sleep 60", false)
	f.wantErr(err, context.Canceled)
	_, err = f.Repo.Run(ctx, Command{Args: []string{"version"}})
	f.wantErr(err, context.Canceled)
}

// cancelled runs a shell as an alias of git, which stands for a git that works with a child of its own, and cancels it when it
// has made the file started.
func (f *fixture) cancelled(script string, read bool) (context.Context, error) {
	f.Helper()
	started := filepath.Join(f.CommonDir(), "started")
	f.must(os.RemoveAll(started))
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	go func() {
		_, err := f.Repo.Run(ctx, Command{Args: []string{"-c", "alias.work=!" + script, "work"}, Read: read})
		done <- err
	}()
	for { // a foreign process: wait until it runs
		if _, err := os.Lstat(started); err == nil {
			break
		}
		if len(done) > 0 {
			f.Fatal(<-done)
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	return ctx, <-done
}

// A git that changes something is not ended half-way: it might leave its locks behind. One that reads is.
func TestCancelledGitFinishes(t *testing.T) {
	f := newFixture(t)
	_, err := f.cancelled("touch started; sleep 0.2; touch finished", false)
	f.must(err)
	f.must(os.Remove(filepath.Join(f.CommonDir(), "finished")))
	_, err = f.cancelled("touch started; sleep 2; touch finished", true)
	f.wantErr(err, context.Canceled)
	f.wantGone(f.CommonDir(), "finished")
	// It is asked to, so that it takes its locks away.
	_, err = f.cancelled("trap 'touch asked; exit 1' TERM; touch started; sleep 60 & wait", true)
	f.wantErr(err, context.Canceled)
	f.wantFile(f.CommonDir(), "asked", "")
}

// What a git says without end takes no memory without end.
func TestTailIsBounded(t *testing.T) {
	last := &tail{limit: 10}
	for range 1000 {
		_, _ = last.Write([]byte("0123456789abc"))
	}
	if last.String() != "3456789abc" || cap(last.data) > 100 {
		t.Errorf("%q, %d bytes", last, cap(last.data))
	}
}
