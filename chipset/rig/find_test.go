package rig

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state"
)

// The order in which a rig is looked for, from the strongest to the weakest.
func TestFindOrder(t *testing.T) {
	given, env, repo, plain := newRepo(t), newRepo(t), newRepo(t), filepath.Join(tempDir(t), "x", "y")
	initRig(t, given, 1)
	initRig(t, env, 1)
	initRig(t, repo, 1)
	must(t, os.MkdirAll(plain, 0o755))
	sub := filepath.Join(repo, "a", "b")
	must(t, os.MkdirAll(sub, 0o755))
	for name, c := range map[string]struct{ flag, env, cwd, want string }{
		"--dir":                {given, env, repo, given},
		"--dir .chipset":       {filepath.Join(given, DirName), env, repo, given},
		"$CHIPSET_DIR":         {"", env, repo, env},
		"the repository":       {"", "", repo, repo},
		"below the repository": {"", "", sub, repo},
		"inside of .chipset":   {"", "", filepath.Join(repo, DirName, "state"), repo},
	} {
		if got, err := Find(t.Context(), c.flag, c.env, c.cwd); got != c.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
	for name, c := range map[string]struct{ flag, env, cwd string }{
		"--dir names none":         {plain, env, repo},
		"$CHIPSET_DIR names none":  {"", plain, repo},
		"nowhere":                  {"", "", plain},
		"--dir that doesn't exist": {filepath.Join(plain, "none"), "", repo},
	} {
		if got, err := Find(t.Context(), c.flag, c.env, c.cwd); !errors.Is(err, ErrNoRig) {
			t.Errorf("%s: %q, %v, want ErrNoRig", name, got, err)
		}
	}
	// A folder above without any repository is the last that counts.
	must(t, os.Mkdir(filepath.Join(filepath.Dir(plain), DirName), 0o755))
	if got, err := Find(t.Context(), "", "", plain); got != filepath.Dir(plain) || err != nil {
		t.Errorf("upwards: %q, %v", got, err)
	}
}

// A worktree that has a stale copy of .chipset checked out finds the live rig.
func TestFindFromAWorktree(t *testing.T) {
	dir := newRepo(t)
	initRig(t, dir, 1)
	gitIn(t, dir, "add", "-f", DirName+"/"+DefinitionName, DirName+"/state/rig.json")
	gitIn(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "state")
	linked := filepath.Join(dir, DirName, "worktrees", "polecat-alpha")
	gitIn(t, dir, "worktree", "add", "-q", "--detach", linked)
	if _, err := os.Stat(filepath.Join(linked, DirName, "state", "rig.json")); err != nil {
		t.Fatal(err)
	}
	for name, prepare := range map[string]func(){
		"with the pointer":     func() {},
		"with a stale pointer": func() { write(t, filepath.Join(dir, ".git", pointerName), "/nowhere/at all\n") },
		"with nonsense":        func() { write(t, filepath.Join(dir, ".git", pointerName), "a/relative/path") },
		"without the pointer": func() {
			if err := os.Remove(filepath.Join(dir, ".git", pointerName)); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		},
	} {
		prepare()
		for _, cwd := range []string{linked, filepath.Join(linked, DirName, "state")} {
			if got, err := Find(t.Context(), "", "", cwd); got != dir || err != nil {
				t.Errorf("%s, in %s: %q, %v, want %q", name, cwd, got, err, dir)
			}
		}
	}
}

// The copy of a repository with its rig is another rig: a command in it must
// not act on the first.
func TestFindInACopy(t *testing.T) {
	first := newRepo(t)
	initRig(t, first, 1)
	second := filepath.Join(tempDir(t), "copy")
	must(t, os.CopyFS(second, os.DirFS(first)))
	if got, err := Find(t.Context(), "", "", second); got != second || err != nil {
		t.Errorf("in the copy: %q, %v, want %q", got, err, second)
	}
	// The same repository under another name is found where it is now.
	third := filepath.Join(filepath.Dir(second), "moved")
	must(t, os.Rename(second, third))
	if got, err := Find(t.Context(), "", "", third); got != third || err != nil {
		t.Errorf("after the move: %q, %v, want %q", got, err, third)
	}
}

// A command finds its rig without a process, so that it costs one git in all.
func TestFindRunsNothing(t *testing.T) {
	dir := newRepo(t)
	initRig(t, dir, 1)
	gitIn(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "--allow-empty", "-m", "first")
	linked := filepath.Join(dir, DirName, "worktrees", "polecat-alpha")
	gitIn(t, dir, "worktree", "add", "-q", "--detach", linked)
	deep := filepath.Join(dir, "a", "b")
	must(t, os.MkdirAll(deep, 0o755))
	t.Setenv("PATH", "")
	must(t, os.RemoveAll(filepath.Join(linked, DirName)))
	for _, cwd := range []string{dir, deep, linked, filepath.Join(dir, ".git")} {
		if got := recordedAround(cwd); got != dir {
			t.Errorf("in %s: %q, want %q", cwd, got, dir)
		}
	}
	// A hard-linked copy has the same files, but is another repository.
	copied := filepath.Join(tempDir(t), "copy")
	must(t, os.MkdirAll(filepath.Join(copied, ".git"), 0o755))
	for _, name := range []string{"HEAD", pointerName} {
		must(t, os.Link(filepath.Join(dir, ".git", name), filepath.Join(copied, ".git", name)))
	}
	if got := recordedAround(copied); got != "" {
		t.Errorf("in a copy: %q", got)
	}
}

func TestOpenOfAClone(t *testing.T) {
	dir := newRepo(t)
	write(t, filepath.Join(dir, DirName, DefinitionName), "agents: {}\n")
	for name, prepare := range map[string]func(){
		"no state":    func() {},
		"empty state": func() { must(t, os.Mkdir(filepath.Join(dir, DirName, "state"), 0o755)) },
	} {
		prepare()
		if _, err := OpenState(t.Context(), dir, time.Now); !errors.Is(err, ErrNoRig) || errors.Is(err, state.ErrNoTree) {
			t.Errorf("%s: %v, want ErrNoRig", name, err)
		}
	}
	pointer := filepath.Join(dir, ".git", pointerName)
	write(t, pointer, dir+"\n")
	if _, err := OpenState(t.Context(), dir, time.Now); !errors.Is(err, state.ErrNoTree) {
		t.Errorf("with a recorded root: %v, want ErrNoTree", err)
	}
	must(t, os.Remove(pointer))
	write(t, filepath.Join(dir, DirName, "state", "hooks", "x.json"), "{}")
	if _, err := OpenState(t.Context(), dir, time.Now); !errors.Is(err, state.ErrNoTree) {
		t.Errorf("with remains of a state: %v, want ErrNoTree", err)
	}
}

func TestOpenDoesNotHangOnAFIFO(t *testing.T) {
	dir := newRepo(t)
	initRig(t, dir, 1)
	path := filepath.Join(dir, DirName, DefinitionName)
	must(t, os.Remove(path))
	must(t, unix.Mkfifo(path, 0o644))
	if _, err := Open(t.Context(), dir, time.Now); !errors.Is(err, state.ErrNotRegular) {
		t.Errorf("%v, want ErrNotRegular", err)
	}
	if _, err := OpenState(t.Context(), dir, time.Now); err != nil {
		t.Errorf("the state beside it: %v", err)
	}
}
