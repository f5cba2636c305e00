package git

import (
	"errors"
	"path/filepath"
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

	f.write(origin, "hooks/pre-receive", "#!/bin/sh\necho no >&2\nexit 1\n")
	f.git(base, "-c", "alias.x=!chmod +x origin.git/hooks/pre-receive", "x")
	err = f.Push(f.ctx, "origin", theirs, "other")
	if !errors.As(err, &rejected) || !rejected.ByHook {
		t.Errorf("%v", err)
	}
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
