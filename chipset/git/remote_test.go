package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRemote(t *testing.T) {
	f := newFixture(t)
	top, base := f.TopLevel(), t.TempDir()
	f.git(base, "init", "-q", "--bare", "-b", "main", "origin.git")
	origin := filepath.Join(base, "origin.git")
	_, _, err := f.RemoteHash(f.ctx, "origin", "main")
	f.wantErr(err, ErrNoRemote)
	f.git(top, "remote", "add", "origin", origin)
	if _, found, err := f.RemoteHash(f.ctx, "origin", "main"); err != nil || found {
		t.Errorf("%v %v", found, err)
	}
	_, err = f.Fetch(f.ctx, "origin", "main")
	f.wantErr(err, ErrNoRemoteBranch)

	first := f.head(top)
	f.git(top, "config", "push.followTags", "true")
	f.git(top, "tag", "-a", "-m", "x", "v1")
	f.must(f.Push(f.ctx, "origin", first, "main"))
	f.must(f.Push(f.ctx, "origin", first, "main"))
	if h, found, err := f.RemoteHash(f.ctx, "origin", "main"); err != nil || !found || h != first {
		t.Errorf("%v %v %v", h, found, err)
	}
	if tags := f.git(origin, "tag"); tags != "" {
		t.Errorf("pushed tags %q", tags)
	}

	f.git(base, "clone", "-q", origin, "other")
	other := filepath.Join(base, "other")
	f.git(other, "config", "user.name", "x")
	f.git(other, "config", "user.email", "x@y.z")
	theirs := f.commit(other, map[string]string{"theirs": "x"})
	f.git(other, "push", "-q", "origin", "main")
	mine := f.commit(top, map[string]string{"mine": "x"})
	err = f.Push(f.ctx, "origin", mine, "main")
	f.wantErr(err, ErrRejected)
	var rejected *RejectedError
	if !errors.As(err, &rejected) || rejected.ByHook {
		t.Errorf("%+v", err)
	}
	h, err := f.Fetch(f.ctx, "origin", "main")
	f.must(err)
	if h != theirs {
		t.Errorf("fetched %v, want %v", h, theirs)
	}
	f.wantBranch("main", mine)
	f.wantErr(f.Push(f.ctx, "origin", mine, "main"), ErrRejected)

	// The remote's branch was rewritten, and it has another whose name only ends in the same way.
	f.git(other, "commit", "-q", "--amend", "-m", "rewritten")
	f.git(other, "push", "-q", "--force", "origin", "main", "main:refs/x/refs/heads/end")
	if h, err := f.Fetch(f.ctx, "origin", "main"); err != nil || h != f.head(other) {
		t.Errorf("fetched %v, want %v: %v", h, f.head(other), err)
	}
	if h, found, err := f.RemoteHash(f.ctx, "origin", "end"); err != nil || found {
		t.Errorf("found %v, %v", h, err)
	}
	// To ask whether a push is possible pushes nothing, also where the remote is ahead by what nobody here knows.
	f.commit(other, map[string]string{"unknown": "x"})
	f.git(other, "push", "-q", "origin", "main")
	f.must(f.CanPush(f.ctx, "origin", "main"))
	f.git(top, "branch", "fresh")
	f.must(f.CanPush(f.ctx, "origin", "fresh"))
	if h, found, err := f.RemoteHash(f.ctx, "origin", "fresh"); err != nil || found {
		t.Errorf("pushed %v, %v", h, err)
	}
	f.must(os.RemoveAll(filepath.Join(base, "moved")))
	f.must(os.Rename(origin, filepath.Join(base, "moved")))
	if f.CanPush(f.ctx, "origin", "main") == nil {
		t.Error("a remote that is gone takes a push")
	}
	f.must(os.Rename(filepath.Join(base, "moved"), origin))

	f.write(origin, "hooks/pre-receive", "#!/bin/sh\necho no >&2\nexit 1\n")
	f.git(base, "-c", "alias.x=!chmod +x origin.git/hooks/pre-receive", "x")
	err = f.Push(f.ctx, "origin", theirs, "other")
	if !errors.As(err, &rejected) || !rejected.ByHook {
		t.Errorf("%v", err)
	}
}

// ssh asks for no password that nobody is there to type, unless the person has said how it is run.
func TestSSHAsksNobody(t *testing.T) {
	for _, key := range []string{"", "core.sshCommand"} {
		f := newFixture(t)
		bin := t.TempDir()
		asked := filepath.Join(bin, "asked")
		f.must(os.WriteFile(filepath.Join(bin, "ssh"), []byte("#!/bin/sh\necho \"$*\" >"+asked+"\nexit 1\n"), 0o755))
		t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		f.git(f.TopLevel(), "remote", "add", "origin", "ssh://example.invalid/x")
		if key != "" {
			f.git(f.TopLevel(), "config", key, "ssh -oMine")
		}
		r, err := Open(f.ctx, f.TopLevel())
		f.must(err)
		if _, err := r.Fetch(f.ctx, "origin", "main"); err == nil {
			t.Error("fetched")
		}
		args, err := os.ReadFile(asked)
		f.must(err)
		if strings.Contains(string(args), "-oBatchMode=yes") != (key == "") || strings.Contains(string(args), "-oMine") != (key != "") {
			t.Errorf("%s: ssh %s", key, args)
		}
	}
}

// What a person's variables say of ssh is left alone.
func TestSSHVariablesStay(t *testing.T) {
	for _, name := range []string{"GIT_SSH_COMMAND", "GIT_SSH"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "mine")
			f := newFixture(t)
			if env, err := f.sshEnv(f.ctx); err != nil || len(env) > 0 {
				t.Errorf("%q, %v", env, err)
			}
		})
	}
}

// A relative path leads to the same remote as for the person's own git, from the root of the checkout.
func TestRemoteByRelativePath(t *testing.T) {
	f := newFixture(t)
	top := f.TopLevel()
	f.git(filepath.Dir(top), "init", "-q", "--bare", "-b", "main", "origin of "+filepath.Base(top))
	f.git(top, "remote", "add", "origin", "../origin of "+filepath.Base(top))
	first := f.head(top)
	f.must(f.CanPush(f.ctx, "origin", "main"))
	f.must(f.Push(f.ctx, "origin", first, "main"))
	if h, err := f.Fetch(f.ctx, "origin", "main"); err != nil || h != first {
		t.Errorf("fetched %v, %v", h, err)
	}
	f.git(top, "push", "-q", "origin", "main")
}

func TestRemoteThatIsGone(t *testing.T) {
	f := newFixture(t)
	f.git(f.TopLevel(), "remote", "add", "origin", filepath.Join(t.TempDir(), "nothing"))
	_, err := f.Fetch(f.ctx, "origin", "main")
	var failed *Error
	if !errors.As(err, &failed) || errors.Is(err, ErrNoRemoteBranch) {
		t.Errorf("%v", err)
	}
	err = f.Push(f.ctx, "origin", f.head(f.TopLevel()), "main")
	if !errors.As(err, &failed) || errors.Is(err, ErrRejected) {
		t.Errorf("%v", err)
	}
}
