package state

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// link gives the file at p another name.
func link(t *testing.T, tree *Tree, p Path, other string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(other), 0o755))
	must(t, os.Link(tree.Abs(p), other))
}

func TestFilesThatAPowerCutLetShareAreHealed(t *testing.T) {
	tree := newTree(t)
	git := t.TempDir()
	plant(t, tree, "state/work/a.json", `{"name":"a"}`)
	plant(t, tree, "state/work/b.json", `{"name":"b"}`)
	stale := tree.Abs("run/agents/mayor.json")
	lock := tree.Abs("run/locks/bead/x.lock")
	ref := filepath.Join(git, "refs", "heads", "polecat")
	link(t, tree, "state/work/a.json", stale)
	link(t, tree, "state/work/a.json", lock)
	link(t, tree, "state/work/a.json", tree.Abs("worktrees/refinery/kept"))
	link(t, tree, "state/work/b.json", ref)
	if _, err := tree.Read("state/work/a.json", MaxFile); !errors.Is(err, ErrHardLinked) {
		t.Fatalf("a shared file is read: %v", err)
	}
	if shared, err := tree.HardLinkedFiles(); err != nil || len(shared) != 1 || len(shared[0].Others) != 3 {
		t.Errorf("shared within the tree: %+v, %v; want a.json with three other names", shared, err)
	}
	n, err := tree.BreakAllHardLinks(git)
	if n != 2 || err != nil {
		t.Errorf("unshared %d, %v; want 2", n, err)
	}
	for p, want := range map[Path]string{"state/work/a.json": `{"name":"a"}`, "state/work/b.json": `{"name":"b"}`} {
		if data, err := tree.Read(p, MaxFile); err != nil || string(data) != want {
			t.Errorf("%s holds %q, %v", p, data, err)
		}
	}
	if _, err := os.Lstat(stale); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the name in run/ stays: %v", err)
	}
	for _, kept := range []string{lock, tree.Abs("worktrees/refinery/kept"), ref} {
		if _, err := os.Lstat(kept); err != nil {
			t.Errorf("a name that is not ours to take is gone: %v", err)
		}
	}
	// What is written to an old name does not reach the state.
	must(t, os.WriteFile(ref, []byte("garbage"), 0o644))
	if data, err := tree.Read("state/work/b.json", MaxFile); err != nil || string(data) != `{"name":"b"}` {
		t.Errorf("after a write to the other name: %q, %v", data, err)
	}
	if n, err := tree.BreakAllHardLinks(git); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
}

// A name outside of the rig may be anybody's: such a file stays refused.
func TestFilesSharedWithTheOutsideStay(t *testing.T) {
	tree := newTree(t)
	plant(t, tree, "state/work/a.json", `{}`)
	link(t, tree, "state/work/a.json", tree.Abs("run/agents/mayor.json"))
	link(t, tree, "state/work/a.json", filepath.Join(t.TempDir(), "outside"))
	if n, err := tree.BreakAllHardLinks(t.TempDir()); n != 0 || err != nil {
		t.Errorf("unshared %d, %v", n, err)
	}
	if _, err := tree.Read("state/work/a.json", MaxFile); !errors.Is(err, ErrHardLinked) {
		t.Errorf("it is read: %v", err)
	}
}

// Two files of the state with one inode each keep what they hold; which of them
// contradicts its name its store tells.
func TestTwoStateFilesThatShare(t *testing.T) {
	tree := newTree(t)
	plant(t, tree, "state/work/a.json", `{"name":"a"}`)
	link(t, tree, "state/work/a.json", tree.Abs("state/hooks/a.json"))
	if n, err := tree.BreakAllHardLinks(); n == 0 || err != nil {
		t.Errorf("unshared %d, %v", n, err)
	}
	for _, p := range []Path{"state/work/a.json", "state/hooks/a.json"} {
		if _, err := tree.Read(p, MaxFile); err != nil {
			t.Error(err)
		}
	}
}

func TestIdentityThatSharesIsHealedByOpen(t *testing.T) {
	tree := newTree(t)
	link(t, tree, rigFile, tree.Abs("run/agents/mayor.json"))
	again, err := Open(tree.Root())
	must(t, err)
	if again.RigID() != tree.RigID() {
		t.Errorf("opened %s, want %s", again.RigID(), tree.RigID())
	}
	link(t, tree, rigFile, filepath.Join(t.TempDir(), "copy"))
	if _, err := Open(tree.Root()); !errors.Is(err, ErrHardLinked) {
		t.Errorf("with a name outside: %v, want ErrSecondName", err)
	}
}

// Two lock files with one inode would be one lock: its holder would wait for himself.
func TestLocksThatShareAreParted(t *testing.T) {
	tree := newTree(t)
	plant(t, tree, lockPath(LockBead, "a"), "")
	link(t, tree, lockPath(LockBead, "a"), tree.Abs(lockPath(LockHook, "a").Dir().Join("a.lock")))
	first, err := tree.TryLock(LockBead, "a")
	must(t, err)
	defer first.Unlock()
	second, err := tree.TryLock(LockHook, "a")
	must(t, err)
	defer second.Unlock()
	for _, kind := range []LockKind{LockBead, LockHook} {
		if _, err := tree.TryLock(kind, "a"); !errors.Is(err, ErrLockTimeout) {
			t.Errorf("%s is taken twice: %v", kind, err)
		}
	}
	if first.Lost(tree) || second.Lost(tree) {
		t.Error("a held lock has no file any more")
	}
}
