package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func newTree(t *testing.T) *Tree {
	t.Helper()
	tree, err := Create(filepath.Join(t.TempDir(), ".chipset"))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plant puts a file into the tree the way a foreign tool would.
func plant(t *testing.T, tree *Tree, p Path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(tree.Abs(p)), 0o755))
	must(t, os.WriteFile(tree.Abs(p), []byte(content), 0o644))
}

func TestCreateAndOpen(t *testing.T) {
	root := filepath.Join(t.TempDir(), ".chipset")
	if _, err := Open(root); !errors.Is(err, ErrNoTree) {
		t.Fatalf("open of nothing: %v, want ErrNoTree", err)
	}
	tree, err := Create(root)
	must(t, err)
	if _, err := Create(root); !errors.Is(err, ErrExists) {
		t.Fatalf("second create: %v, want ErrExists", err)
	}
	again, err := Open(root)
	must(t, err)
	if again.RigID() != tree.RigID() {
		t.Errorf("opened %s, made %s", again.RigID(), tree.RigID())
	}
	must(t, tree.Verify())
}

func TestCreateRefusesRemainsOfALostTree(t *testing.T) {
	tree := newTree(t)
	plant(t, tree, "state/work/gt-aaaaa.json", "{}")
	must(t, os.Remove(tree.Abs(rigFile)))
	if _, err := Create(tree.Root()); !errors.Is(err, ErrNoTree) {
		t.Errorf("create over remains: %v, want ErrNoTree", err)
	}
}

func TestVerifyNoticesAnotherTree(t *testing.T) {
	tree := newTree(t)
	plant(t, tree, rigFile, `{"format": 1, "rig_id": "rig-other"}`)
	if err := tree.Verify(); !errors.Is(err, ErrNoTree) {
		t.Errorf("another rig's tree: %v, want ErrNoTree", err)
	}
	plant(t, tree, rigFile, `{"format": 99, "rig_id": "rig-other"}`)
	if _, err := Open(tree.Root()); !errors.Is(err, ErrCorrupt) {
		t.Errorf("format of the future: %v, want ErrCorrupt", err)
	}
}

// What Verify remembers of rig.json holds for that file alone.
func TestVerifyNoticesAnotherTreeLater(t *testing.T) {
	tree := newTree(t)
	stamp, err := lstat(tree.Abs(rigFile))
	must(t, err)
	tree.verified.Store(&stamp) // as after a look at a file that had settled
	must(t, tree.Verify())
	plant(t, tree, rigFile, `{"format": 1, "rig_id": "rig-other"}`)
	if err := tree.Verify(); !errors.Is(err, ErrNoTree) {
		t.Errorf("another rig's tree: %v, want ErrNoTree", err)
	}
}

// A tree that was taken away under a process is never made again by a write.
func TestWritesRefuseATreeThatIsGone(t *testing.T) {
	tree := newTree(t)
	must(t, tree.Replace("state/work/a.json", []byte("{}\n")))
	must(t, os.RemoveAll(tree.Abs(StateDir)))
	for name, write := range map[string]func() error{
		"WriteNew": func() error { return tree.WriteNew("state/work/b.json", []byte("{}\n")) },
		"Replace":  func() error { return tree.Replace("state/work/a.json", []byte("{}\n")) },
		"Append":   func() error { return tree.Append("state/events/x.jsonl", []byte("{}\n")) },
		"MkdirAll": func() error { return tree.MkdirAll("state/work") },
	} {
		if err := write(); !errors.Is(err, ErrNoTree) {
			t.Errorf("%s: %v, want ErrNoTree", name, err)
		}
	}
	if _, err := os.Lstat(tree.Abs(StateDir)); err == nil {
		t.Error("state/ was made anew")
	}
}

func TestPathsThatLeaveTheTree(t *testing.T) {
	tree := newTree(t)
	for _, p := range []Path{"", "/", "..", "../x", "state/../../x", "state//x", "state/./x", "/etc/passwd",
		"state/a\x00b", Path("state/" + strings.Repeat("x", 256))} {
		if _, err := tree.Read(p, MaxFile); !errors.Is(err, ErrCorrupt) {
			t.Errorf("Read(%q) = %v, want ErrCorrupt", p, err)
		}
		if err := tree.WriteNew(p, nil); err == nil {
			t.Errorf("WriteNew(%q) succeeded", p)
		}
	}
}

func TestSpecialFilesAreNeverRead(t *testing.T) {
	tree := newTree(t)
	outside := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(outside, []byte(`{"id":"x"}`), 0o644))
	must(t, tree.MkdirAll("state/work"))
	make := map[string]func(at string) error{
		"symlink":  func(at string) error { return os.Symlink(outside, at) },
		"dangling": func(at string) error { return os.Symlink(outside+"-none", at) },
		"fifo":     func(at string) error { return unix.Mkfifo(at, 0o644) },
		"hardlink": func(at string) error { return os.Link(outside, at) },
		"folder":   func(at string) error { return os.Mkdir(at, 0o755) },
	}
	for name, plant := range make {
		p := Path("state/work").Join(name + ".json")
		must(t, plant(tree.Abs(p)))
		if _, err := tree.Read(p, MaxFile); !errors.Is(err, ErrNotRegular) || !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v, want ErrNotRegular and ErrCorrupt", name, err)
		}
		if name == "folder" {
			continue
		}
		if err := tree.Append(p, []byte("x\n")); err == nil {
			t.Errorf("%s: was appended to", name)
		}
	}
	if got, _ := os.ReadFile(outside); string(got) != `{"id":"x"}` {
		t.Errorf("the file outside was changed to %q", got)
	}
}

func TestFolderThatBecameALink(t *testing.T) {
	tree := newTree(t)
	elsewhere := t.TempDir()
	must(t, tree.WriteNew("state/work/a.json", []byte("{}\n")))
	must(t, os.RemoveAll(tree.Abs("state/work")))
	must(t, os.Symlink(elsewhere, tree.Abs("state/work")))
	for name, err := range map[string]error{
		"WriteNew": tree.WriteNew("state/work/b.json", []byte("{}\n")),
		"Replace":  tree.Replace("state/work/a.json", []byte("{}\n")),
		"Remove":   tree.Remove("state/work/a.json"),
		"Move":     tree.Move("state/work/a.json", "state/quarantine/a.json"),
	} {
		if !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s through a link: %v, want ErrNotRegular", name, err)
		}
	}
	if entries, _ := os.ReadDir(elsewhere); len(entries) > 0 {
		t.Errorf("something was written through the link: %v", entries)
	}
}

func TestReadLimitsAndListing(t *testing.T) {
	tree := newTree(t)
	plant(t, tree, "state/work/big.json", strings.Repeat("x", 11))
	plant(t, tree, "state/work/.tmp-1-x", "")
	plant(t, tree, "state/work/.hidden", "")
	plant(t, tree, "state/work/big.json.tmp", "")
	if _, err := tree.Read("state/work/big.json", 10); !errors.Is(err, ErrTooLarge) {
		t.Errorf("11 of 10 bytes: %v, want ErrTooLarge", err)
	}
	if data, err := tree.Read("state/work/big.json", 11); err != nil || len(data) != 11 {
		t.Errorf("11 of 11 bytes: %d, %v", len(data), err)
	}
	if _, err := tree.Read("state/work/none.json", 10); !errors.Is(err, ErrNotFound) {
		t.Errorf("missing: %v, want ErrNotFound", err)
	}
	entries, err := tree.List("state/work")
	if err != nil || len(entries) != 1 || entries[0].Name() != "big.json" {
		t.Errorf("List = %v, %v", entries, err)
	}
	folder, err := tree.OpenFolder("state/work")
	must(t, err)
	defer folder.Close()
	if names, err := folder.Entries(); err != nil || len(names) != 1 || names[0].Name != "big.json" {
		t.Errorf("Entries = %v, %v", names, err)
	}
	if entries, err := tree.List("state/none"); err != nil || len(entries) != 0 {
		t.Errorf("List of a missing folder = %v, %v", entries, err)
	}
	for p, want := range map[Path]bool{"state/work/big.json": true, "state/work/none": false, "state/none/x": false} {
		if got, err := tree.Exists(p); got != want || err != nil {
			t.Errorf("Exists(%s) = %v, %v", p, got, err)
		}
	}
}

func TestSweepTakesOnlyAbandonedTemps(t *testing.T) {
	tree := newTree(t)
	now := time.Now()
	old := now.Add(-2 * TempAge)
	gone := "99999999"      // above every pid_max
	files := map[Path]bool{ // whether it is swept
		"state/work/.tmp-" + Path(gone) + "-abc":             true,
		"state/work/.tmp-" + Path(pidText()) + "-abc":        false,
		"state/mail/mayor/.x.json123":                        false, // young, of an unknown writer
		"state/work/.tmp-" + Path(pidText()) + "-young":      false,
		"state/mail/mayor/.y.json123":                        true,  // old
		"state/events/.2026-01-01.jsonl77":                   true,  // old
		"state/work/.gitkeep":                                false, // old, but nobody's leftover
		"state/work/gt-aaaaa.json":                           false,
		"state/mail/mayor/archive/.tmp-" + Path(gone) + "-q": true,
	}
	for p := range files {
		plant(t, tree, p, "x")
	}
	for _, p := range []Path{"state/mail/mayor/.y.json123", "state/events/.2026-01-01.jsonl77", "state/work/.gitkeep", "state/work/gt-aaaaa.json"} {
		must(t, os.Chtimes(tree.Abs(p), old, old))
	}
	n, err := tree.RemoveTempFiles(now.Add(TempAge / 2))
	must(t, err)
	if n != 4 {
		t.Errorf("swept %d, want 4", n)
	}
	for p, swept := range files {
		if there, _ := tree.Exists(p); there == swept {
			t.Errorf("%s: there %v, want swept %v", p, there, swept)
		}
	}
}

// A listing names what is not a folder itself, not something below it.
func TestListOfWhatIsNoFolder(t *testing.T) {
	tree := newTree(t)
	must(t, os.MkdirAll(tree.Abs("state/mail"), 0o755))
	must(t, os.Symlink(t.TempDir(), tree.Abs("state/mail/mayor")))
	plant(t, tree, "state/mail/witness", "x")
	for dir, want := range map[Path]string{"state/mail/mayor": "it is a symbolic link, not a folder", "state/mail/witness": "it is a file, not a folder",
		"state/mail/mayor/archive": "reached through a symbolic link"} {
		var c *Corruption
		if _, err := tree.List(dir); !errors.As(err, &c) || c.Path != string(dir) || c.Reason != want || !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if all, err := tree.List("state/none"); len(all) != 0 || err != nil {
		t.Errorf("a folder that is not there: %v, %v", all, err)
	}
}
