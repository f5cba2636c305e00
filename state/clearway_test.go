package state

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What stands in the place of a folder goes to the quarantine; a folder, and nothing, stay.
func TestQuarantineNonFolder(t *testing.T) {
	now := At(fixedTime)
	for name, c := range map[string]struct {
		dir  Path
		make func(tree *Tree, dir Path) error
		bad  int // how many are in the quarantine then
	}{
		"a file":                    {"state/work", func(tree *Tree, dir Path) error { return os.WriteFile(tree.Abs(dir), nil, 0o600) }, 1},
		"a link":                    {"state/work", func(tree *Tree, dir Path) error { return os.Symlink("/tmp", tree.Abs(dir)) }, 1},
		"a folder":                  {"state/work", func(tree *Tree, dir Path) error { return os.Mkdir(tree.Abs(dir), 0o700) }, 0},
		"nothing":                   {"state/work", func(*Tree, Path) error { return nil }, 0},
		"a file for the quarantine": {QuarantineDir, func(tree *Tree, dir Path) error { return os.WriteFile(tree.Abs(dir), nil, 0o600) }, 1},
		"a file for the lock files": {RunDir, func(tree *Tree, dir Path) error {
			return errors.Join(os.RemoveAll(tree.Abs(dir)), os.WriteFile(tree.Abs(dir), nil, 0o600))
		}, 1},
		"a folder with something in it": {"state/work", func(tree *Tree, dir Path) error { return os.MkdirAll(tree.Abs(dir.Join("x")), 0o700) }, 0},
	} {
		tree := newTree(t)
		must(t, c.make(tree, c.dir))
		for range 2 {
			if err := tree.QuarantineNonFolder(t.Context(), c.dir, "why", now); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		all, err := tree.Quarantined()
		if err != nil || len(all) != c.bad {
			t.Errorf("%s: in the quarantine %+v, %v; want %d", name, all, err, c.bad)
		}
		if err := tree.MkdirAll(c.dir); err != nil {
			t.Errorf("%s: the folder can't be made: %v", name, err)
		}
	}
}

// Where a link leads out of the tree nothing is moved, and one process is at it at a time.
func TestQuarantineNonFolderRefuses(t *testing.T) {
	tree, outside := newTree(t), t.TempDir()
	must(t, os.WriteFile(outside+"/file", nil, 0o600))
	must(t, os.Symlink(outside, tree.Abs("state/mail")))
	var c *Corruption
	if err := tree.QuarantineNonFolder(t.Context(), "state/mail/file", "why", At(fixedTime)); !errors.As(err, &c) {
		t.Errorf("through a link: %v", err)
	}
	if _, err := os.Lstat(outside + "/file"); err != nil {
		t.Error(err)
	}
	if err := tree.QuarantineNonFolder(t.Context(), "state/../x", "why", At(fixedTime)); !errors.Is(err, ErrBadID) {
		t.Errorf("out of the tree: %v", err)
	}
	if all, err := tree.Quarantined(); err != nil || len(all) > 0 {
		t.Errorf("in the quarantine: %v, %v", all, err)
	}

	plant(t, tree, "state/work", "in the way")
	holder, err := tree.lockRoot(t.Context())
	must(t, err)
	soon, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := tree.QuarantineNonFolder(soon, "state/work", "why", At(fixedTime)); !errors.Is(err, ErrLockTimeout) {
		t.Errorf("while another process is at it: %v", err)
	}
	must(t, holder.Close())
	must(t, tree.QuarantineNonFolder(t.Context(), "state/work", "why", At(fixedTime)))
	next, err := tree.lockRoot(t.Context())
	if err != nil || flock(next) != nil {
		t.Errorf("the lock is still held: %v", err)
	}
	must(t, next.Close())
	must(t, os.RemoveAll(tree.Root()))
	if err := tree.QuarantineNonFolder(t.Context(), "state/work", "why", At(fixedTime)); !errors.Is(err, unix.ENOENT) {
		t.Errorf("without a tree: %v", err)
	}
}
