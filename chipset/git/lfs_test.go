package git

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// What a worker's git LFS has stored for itself is the repository's afterwards, if it is what its name says. Nothing that was
// there changes, and whatever else lies there does no harm.
func TestCollectLFS(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	admin := f.git(w.Path(), "rev-parse", "--absolute-git-dir")
	at := func(dir, oid string) string { return filepath.Join(dir, "lfs", "objects", oid[:2], oid[2:4], oid) }
	write := func(path, text string) {
		f.must(os.MkdirAll(filepath.Dir(path), 0o755))
		f.must(os.WriteFile(path, []byte(text), 0o444))
	}
	oid := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	outside := filepath.Join(t.TempDir(), "outside")
	write(outside, "a secret")

	write(at(admin, oid("new")), "new")
	write(at(admin, oid("forged")), "something else")
	write(at(f.CommonDir(), oid("known")), "known")
	write(at(admin, oid("known")), "changed")
	for name, make := range map[string]func(path string) error{
		oid("a secret"): func(path string) error { return os.Symlink(outside, path) },
		oid("pipe"):     func(path string) error { return syscall.Mkfifo(path, 0o600) },
		oid("folder"):   func(path string) error { return os.Mkdir(path, 0o755) },
	} {
		f.must(os.MkdirAll(filepath.Dir(at(admin, name)), 0o755))
		f.must(make(at(admin, name)))
	}
	f.must(os.MkdirAll(filepath.Join(admin, "lfs/objects/ab/cd", strings.Repeat("x/", 200)), 0o755))
	f.must(os.Chmod(at(admin, oid("new")), 0))
	write(at(admin, oid("sparse")), "")
	f.must(os.Chmod(at(admin, oid("sparse")), 0o600))
	f.must(os.Truncate(at(admin, oid("sparse")), 1<<40))

	f.must(f.Unblock(w.Path(), "refs/heads/polecat/"))
	f.must(w.CollectLFS())
	for text, want := range map[string]string{"new": "new", "known": "known", "forged": "", "a secret": "", "pipe": "", "folder": "", "sparse": ""} {
		got, err := os.ReadFile(at(f.CommonDir(), oid(text)))
		if string(got) != want || (err != nil) != (want == "") {
			t.Errorf("%s is %q, %v", text, got, err)
		}
		if info, err := os.Lstat(at(admin, oid(text))); err == nil && info.Mode().IsRegular() {
			t.Errorf("%s is still the worker's", text)
		}
	}
	f.must(w.CollectLFS())

	f.must(os.RemoveAll(filepath.Join(admin, "lfs")))
	write(filepath.Join(admin, "lfs"), "no folder")
	f.must(w.CollectLFS())
}

// lfsStub is a git LFS that does nothing, but writes down how it is called.
type lfsStub struct {
	*fixture
	dir string
}

// newLFSStub sets up a repository for git LFS, with a commit whose attributes name it.
func newLFSStub(t *testing.T) *lfsStub {
	t.Helper()
	s := &lfsStub{dir: t.TempDir()}
	script := filepath.Join(s.dir, "git-lfs")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$@\" >>'"+s.dir+"/calls'\ncat '"+s.dir+"/says'\nexit $(cat '"+s.dir+"/code')\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", s.dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	s.fixture = newFixture(t)
	s.says(0, "")
	return s
}

// says makes every call end with a code and a line.
func (s *lfsStub) says(code int, line string) {
	s.Helper()
	s.write(s.dir, "calls", "")
	s.write(s.dir, "says", line)
	s.write(s.dir, "code", strconv.Itoa(code))
}

// called fails unless git LFS was called like this since says, "" for not at all.
func (s *lfsStub) called(what, want string) {
	s.Helper()
	calls, err := os.ReadFile(filepath.Join(s.dir, "calls"))
	s.must(err)
	if got := strings.TrimSpace(string(calls)); got != want {
		s.Errorf("%s: git LFS is called as %q, not as %q", what, got, want)
	}
	s.says(0, "")
}

// What LFS objects a branch needs is asked where git LFS is set up and its attributes name it. An object that is missing or
// damaged is the work's fault, and a git LFS that fails is not.
func TestCheckAndPushLFS(t *testing.T) {
	s := newLFSStub(t)
	base := s.head(s.TopLevel())
	s.git(s.TopLevel(), "remote", "add", "far", s.dir)
	s.git(s.TopLevel(), "config", "filter.lfs.clean", "cat")
	none := s.commit(s.TopLevel(), map[string]string{"deep/x.bin": "x", "deep/words": "filter=lfs"})
	s.must(s.CheckLFS(s.ctx, base, none))
	s.must(s.PushLFS(s.ctx, "far", none))
	s.called("no attributes", "")
	head := s.commit(s.TopLevel(), map[string]string{"deep/.gitattributes": "*.bin filter=lfs\n"})
	s.git(s.TopLevel(), "config", "--unset", "filter.lfs.clean")
	s.must(s.CheckLFS(s.ctx, base, head))
	s.must(s.PushLFS(s.ctx, "far", head))
	s.called("not set up", "")
	s.git(s.TopLevel(), "config", "filter.lfs.clean", "cat")
	s.must(s.CheckLFS(s.ctx, base, head))
	s.called("all there", "fsck --dry-run --objects "+string(base)+".."+string(head))
	s.must(s.PushLFS(s.ctx, "far", head))
	s.called("push", "push far "+string(head))

	for _, c := range []struct {
		code      int
		say, want string
	}{
		{1, "objects: openError: deep/x.bin (12) could not be checked\n", "a Git LFS object is missing: deep/x.bin (12) could not be checked"},
		{1, "objects: corruptObject: deep/x.bin (12) is corrupt\n", "a Git LFS object is damaged: deep/x.bin (12) is corrupt"},
		{1, "something else\n", ""},
		{2, "objects: openError: deep/x.bin (12) could not be checked\n", ""},
	} {
		s.says(c.code, c.say)
		err := s.CheckLFS(s.ctx, base, head)
		var bad *UnfitError
		if errors.As(err, &bad) != (c.want != "") || err == nil || bad != nil && bad.Reason != c.want {
			t.Errorf("%d %q: %v", c.code, c.say, err)
		}
	}
	s.says(2, "")
	if err := s.PushLFS(s.ctx, "far", head); err == nil {
		t.Error("what git LFS has not pushed is pushed")
	}
	s.says(0, "")
	s.wantErr(s.PushLFS(s.ctx, "none", head), ErrNoRemote)
	s.wantErr(s.PushLFS(s.ctx, "far", "-x"), ErrBadHash)
	s.wantErr(s.CheckLFS(s.ctx, "-x", head), ErrBadHash)
	s.called("refused", "")
}

// Pointers are replaced by files in a worktree of the rig's, where git LFS is set up, and its worker's objects go to a folder of
// the worktree's own.
func TestPullLFS(t *testing.T) {
	s := newLFSStub(t)
	w := s.prepared()
	s.wantErr(w.PullLFS(s.ctx), ErrNotSetUp)
	s.called("not set up", "")
	s.git(s.TopLevel(), "config", "filter.lfs.clean", "cat")
	s.must(w.PullLFS(s.ctx))
	s.called("pull", "pull")
	s.says(1, "")
	if err := w.PullLFS(s.ctx); err == nil {
		t.Error("what git LFS has not pulled is there")
	}
	s.says(0, "")
	admin := s.git(w.Path(), "rev-parse", "--absolute-git-dir")
	env, err := w.LFSEnvironment()
	s.must(err)
	for _, want := range []string{"GIT_CONFIG_VALUE_0=" + filepath.Join(admin, "lfs"), "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(s.CommonDir(), "objects")} {
		if !slices.Contains(env, want) {
			t.Errorf("%q has no %s", env, want)
		}
	}
	main := s.In(s.TopLevel())
	_, err = main.LFSEnvironment()
	for _, err := range []error{err, main.PullLFS(s.ctx), main.CollectLFS()} {
		s.wantErr(err, ErrNotWorktree)
	}
	s.called("the main worktree", "")
}
