package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// kept is a repository with three commits whose objects are kept.
func keptFixture(t *testing.T) (f *fixture, tip Hash) {
	f = newFixture(t)
	f.commit(f.TopLevel(), map[string]string{"dir/b.txt": "b"})
	tip = f.commit(f.TopLevel(), map[string]string{"dir/b.txt": "bb", "c.txt": "c"})
	f.must(f.KeepObjects(f.ctx, tip))
	return f, tip
}

func (f *fixture) restores(want int) {
	f.Helper()
	back, err := f.RestoreObjects(f.ctx)
	f.must(err)
	if back != want {
		f.Errorf("put back %d, expected %d", back, want)
	}
	f.git(f.TopLevel(), "fsck", "--strict")
}

func TestRestoreObjectsPutsBack(t *testing.T) {
	objects := func(f *fixture, pattern string) []string {
		found, err := filepath.Glob(filepath.Join(f.common, "objects", pattern))
		f.must(err)
		return found
	}
	removeAll := func(f *fixture, pattern string) {
		for _, path := range objects(f, pattern) {
			f.must(os.RemoveAll(path))
		}
	}
	loose := func(f *fixture, revision string) string {
		return f.loose(Hash(f.git(f.TopLevel(), "rev-parse", revision)))
	}
	for name, act := range map[string]struct {
		spoil func(f *fixture)
		back  int
	}{
		"the tip":          {func(f *fixture) { f.must(os.Remove(loose(f, "main"))) }, 1},
		"an ancestor":      {func(f *fixture) { f.must(os.Remove(loose(f, "main~2"))) }, 1},
		"a tree":           {func(f *fixture) { f.must(os.Remove(loose(f, "main:dir"))) }, 1},
		"a blob of before": {func(f *fixture) { f.must(os.Remove(loose(f, "main~1:dir/b.txt"))) }, 1},
		"everything":       {func(f *fixture) { removeAll(f, "*") }, 13},
		"a file overwritten": {func(f *fixture) {
			path := loose(f, "main:c.txt")
			info, err := os.Stat(path)
			f.must(err)
			f.must(os.Chmod(path, 0o600))
			f.must(os.WriteFile(path, make([]byte, info.Size()), 0o600))
			f.must(os.Chtimes(path, info.ModTime(), info.ModTime()))
		}, 1},
		"a file in the place of a folder": {func(f *fixture) {
			dir := filepath.Dir(loose(f, "main"))
			f.must(os.RemoveAll(dir))
			f.must(os.WriteFile(dir, nil, 0o644))
		}, 1},
		"nothing": {func(*fixture) {}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f, tip := keptFixture(t)
			act.spoil(f)
			f.restores(act.back)
			f.must(f.CheckReached(f.ctx, tip))
			f.restores(0)
		})
	}
}

// A folder that nobody may enter is nothing that was deleted.
func TestRestoreObjectsOpensFolders(t *testing.T) {
	f, tip := keptFixture(t)
	dir := filepath.Dir(f.loose(tip))
	f.must(os.Chmod(f.loose(tip), 0))
	f.must(os.Chmod(dir, 0))
	f.restores(0)
	for _, path := range []string{dir, f.loose(tip)} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o400 == 0 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}

func TestRestoreObjectsPutsPacksBack(t *testing.T) {
	f, _ := keptFixture(t)
	f.git(f.TopLevel(), "gc", "-q")
	tip := f.commit(f.TopLevel(), map[string]string{"d.txt": "d"})
	f.must(f.KeepObjects(f.ctx, tip))
	f.restores(0)
	if whole, err := f.HasCommit(f.ctx, tip); err != nil || !whole { // a process of git has the pack open
		t.Fatal(whole, err)
	}
	packs, err := filepath.Glob(filepath.Join(f.common, "objects", "pack", "*"))
	f.must(err)
	for _, path := range packs {
		f.must(os.Remove(path))
	}
	f.restores(2) // the pack and its index
}

// A pack that was made since, and deleted while a process of ours has it open, holds nothing any more.
func TestRestoreObjectsOfAPackThatIsOnlyOpen(t *testing.T) {
	f, tip := keptFixture(t)
	f.git(f.TopLevel(), "gc", "-q")
	f.Close()
	if whole, err := f.HasCommit(f.ctx, tip); err != nil || !whole {
		t.Fatal(whole, err)
	}
	packs, err := filepath.Glob(filepath.Join(f.common, "objects", "pack", "*"))
	f.must(err)
	for _, path := range packs {
		f.must(os.Remove(path))
	}
	if back, err := f.RestoreObjects(f.ctx); err != nil || back == 0 {
		t.Errorf("put back %d, %v", back, err)
	}
	f.must(f.CheckReached(f.ctx, tip))
}

// What git packs, tidies away or packs again is not put back, and not kept forever.
func TestRestoreObjectsLeavesGitsOwnTidying(t *testing.T) {
	f, tip := keptFixture(t)
	f.git(f.TopLevel(), "gc", "-q", "--prune=now")
	f.restores(0)
	if left, _ := filepath.Glob(f.kept("??", "*")); len(left) > 0 {
		t.Errorf("still kept: %q", left)
	}
	f.must(f.KeepObjects(f.ctx, tip))
	f.commit(f.TopLevel(), map[string]string{"d.txt": "d"})
	f.git(f.TopLevel(), "repack", "-q", "-a", "-d")
	f.restores(0)
	packs, _ := filepath.Glob(f.kept("pack", "*.pack"))
	if len(packs) != 0 {
		t.Errorf("still kept: %q", packs)
	}
}

// What a rewritten history reaches is kept beside what was kept before, until git tidies that away.
func TestKeepObjectsOfARewrittenHistory(t *testing.T) {
	f, tip := keptFixture(t)
	f.git(f.TopLevel(), "reset", "-q", "--hard", "main~1")
	rewritten := f.commit(f.TopLevel(), map[string]string{"e.txt": "e"})
	f.must(f.KeepObjects(f.ctx, rewritten))
	for _, revision := range []string{"main:a.txt", "main:e.txt"} {
		f.must(os.Remove(f.loose(Hash(f.git(f.TopLevel(), "rev-parse", revision)))))
	}
	f.restores(2)
	f.git(f.TopLevel(), "reflog", "expire", "--expire=now", "--all")
	f.git(f.TopLevel(), "prune", "--expire=now")
	f.restores(0)
	if _, err := os.Lstat(f.keptLoose(tip)); err == nil {
		t.Errorf("the old tip is still kept")
	}
}

// A person's other branch is kept as it was when the first copy was made.
func TestKeepObjectsOfOtherBranches(t *testing.T) {
	f := newFixture(t)
	main := f.head(f.TopLevel())
	f.git(f.TopLevel(), "checkout", "-q", "-b", "mine")
	mine := f.commit(f.TopLevel(), map[string]string{"mine.txt": "mine"})
	f.git(f.TopLevel(), "checkout", "-q", "main")
	f.must(f.KeepObjects(f.ctx, main))
	f.must(os.Remove(f.loose(mine)))
	f.restores(1)
}

// What is damaged before it is kept is named, and all else is kept.
func TestKeepObjectsKeepsNothingDamaged(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"forged": func(path string) error { return os.WriteFile(path, []byte("other"), 0o600) },
		"a pipe": func(path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) },
		"a link": func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			tip := f.commit(f.TopLevel(), map[string]string{"b.txt": "b"})
			bad := Hash(f.git(f.TopLevel(), "rev-parse", "main:b.txt"))
			f.must(os.Chmod(f.loose(bad), 0o600))
			f.must(spoil(f.loose(bad)))
			var torn *TornError
			if err := f.KeepObjects(f.ctx, tip); !errors.As(err, &torn) || !slices.Equal(torn.Objects, []Hash{bad}) {
				t.Fatalf("KeepObjects: %v", err)
			}
			if _, err := os.Lstat(f.keptLoose(bad)); err == nil {
				t.Error("the damaged object is kept")
			}
			f.must(os.Remove(f.loose(tip)))
			if back, err := f.RestoreObjects(f.ctx); err != nil || back != 1 {
				t.Errorf("put back %d, %v", back, err)
			}
		})
	}
}

// Many objects become a pack, of what was kept and not of what lies in git's own folder by then.
func TestKeepObjectsPacksMany(t *testing.T) {
	f, _ := keptFixture(t)
	files := map[string]string{}
	for i := range maxKept {
		files[fmt.Sprint(i)] = fmt.Sprint("content ", i)
	}
	tip := f.commit(f.TopLevel(), files)
	first := f.loose(Hash(f.git(f.TopLevel(), "rev-parse", "main~3")))
	f.must(os.Chmod(first, 0o600))
	f.must(os.WriteFile(first, nil, 0o600)) // what was kept before is as it was
	f.must(f.KeepObjects(f.ctx, tip))
	if left, err := looseIn(f.kept()); err != nil || len(left) > 0 {
		t.Errorf("%d objects are still kept loose: %v", len(left), err)
	}
	all, err := looseIn(f.objectsFolder())
	f.must(err)
	for _, o := range all {
		f.must(os.Remove(f.loose(o)))
	}
	f.must(f.CheckReached(f.ctx, tip))
	f.restores(0)
	f.must(f.KeepObjects(f.ctx, f.commit(f.TopLevel(), map[string]string{"last.txt": "last"})))
	if left, err := looseIn(f.kept()); err != nil || len(left) != 3 {
		t.Errorf("%d objects are kept loose: %v", len(left), err)
	}
}

// A copy that a power cut tore is worth nothing.
func TestRestoreObjectsTrustsNoTornCopy(t *testing.T) {
	f, tip := keptFixture(t)
	path := f.keptLoose(tip)
	f.must(os.Chmod(path, 0o600))
	f.must(os.Truncate(path, 0))
	f.must(os.Remove(f.loose(tip)))
	if back, err := f.RestoreObjects(f.ctx); err != nil || back != 0 {
		t.Errorf("put back %d, %v", back, err)
	}
	if _, err := os.Lstat(f.loose(tip)); err == nil {
		t.Errorf("a torn copy was put back")
	}
}

func TestMendReached(t *testing.T) {
	f := newFixture(t)
	tip := f.commit(f.TopLevel(), map[string]string{"b.txt": "b"})
	blob := Hash(f.git(f.TopLevel(), "rev-parse", "main:b.txt"))
	f.must(f.CheckReached(f.ctx, tip))
	f.must(os.Remove(f.loose(blob)))
	var missing *MissingError
	if err := f.MendReached(f.ctx, "main"); !errors.As(err, &missing) || missing.Object != blob || missing.Tip != tip {
		t.Fatalf("MendReached: %v", err)
	}
	bare := t.TempDir()
	f.git(bare, "init", "-q", "--bare")
	f.must(os.WriteFile(filepath.Join(f.TopLevel(), "b.txt"), []byte("b"), 0o644))
	f.git(f.TopLevel(), "hash-object", "-w", "b.txt")
	f.git(f.TopLevel(), "remote", "add", "origin", bare)
	f.git(f.TopLevel(), "push", "-q", "origin", "main")
	f.must(os.Remove(f.loose(blob)))
	f.must(f.MendReached(f.ctx, "main"))
	f.must(f.CheckReached(f.ctx, tip))
}

// A record of what is kept that says nothing keeps everything again.
func TestKeptAtSaysNothing(t *testing.T) {
	f, tip := keptFixture(t)
	record := filepath.Join(f.common, keptName, keptTip)
	if h, err := f.keptAt(); err != nil || h != tip {
		t.Errorf("%s, %v", h, err)
	}
	for name, spoil := range map[string]func() error{
		"torn":     func() error { return os.WriteFile(record, []byte(tip[:9]), 0o644) },
		"garbage":  func() error { return os.WriteFile(record, []byte("garbage\n"), 0o644) },
		"gone":     func() error { return os.Remove(record) },
		"a folder": func() error { return os.Mkdir(record, 0o755) },
	} {
		f.must(os.RemoveAll(record))
		if name != "a folder" {
			f.must(os.WriteFile(record, nil, 0o644))
		}
		f.must(spoil())
		if h, err := f.keptAt(); err != nil || h != "" {
			t.Errorf("%s: %s, %v", name, h, err)
		}
	}
}
