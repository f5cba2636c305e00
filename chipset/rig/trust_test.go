package rig

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/state"
)

// Nothing of a rig is believed that git's own folder does not name, until the person takes it over once.
func TestTrust(t *testing.T) {
	dir := initRig(t, newRepo(t), 1).Dir
	named := filepath.Join(dir, ".git", idName)
	open := func(what string, want error) {
		t.Helper()
		if _, err := Open(t.Context(), dir, time.Now); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	untrusted := func(what string, want error) *Rig {
		t.Helper()
		r, err := OpenUntrusted(t.Context(), dir, time.Now)
		if !errors.Is(err, want) {
			t.Errorf("%s, to look at: %v, want %v", what, err, want)
		}
		return r
	}
	open("made here", nil)
	untrusted("made here", state.ErrConflict)
	id, err := os.ReadFile(named)
	if err != nil {
		t.Fatal(err)
	}

	gittest.Write(t, dir, ".git/"+idName, "rig-another\n")
	open("another rig's repository", state.ErrNoTree)
	if err := errors.Join(os.Remove(named), os.Mkdir(named, 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, time.Now); err == nil || errors.Is(err, ErrUntrusted) {
		t.Errorf("a name that can't be read: %v", err)
	}
	if err := os.Remove(named); err != nil {
		t.Fatal(err)
	}
	open("came with a clone", ErrUntrusted)
	r := untrusted("came with a clone", nil)
	if err := r.Trust(); err != nil {
		t.Fatal(err)
	}
	open("trusted", nil)
	if now, err := os.ReadFile(named); err != nil || string(now) != string(id) {
		t.Errorf("git's folder names %q, not %q: %v", now, id, err)
	}

	if os.Geteuid() == 0 {
		t.Setenv("SUDO_UID", "4711")
		for _, name := range []string{".chipset", ".chipset/state", ".chipset/state/rig.json"} {
			for owner, want := range map[int]error{4711: nil, 4712: ErrUntrusted} {
				if err := os.Chown(filepath.Join(dir, name), owner, -1); err != nil {
					t.Skip(err)
				}
				open("the owner of "+name+" is another", want)
			}
			if err := os.Chown(filepath.Join(dir, name), 0, -1); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
		t.Fatal(err)
	}
	untrusted("without a repository", git.ErrNotRepo)
}
