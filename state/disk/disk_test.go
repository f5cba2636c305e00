package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLinkThenUnlink(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	must(t, os.WriteFile(a, []byte("a"), 0o644))
	must(t, os.WriteFile(b, []byte("b"), 0o644))
	if err := linkThenUnlink(a, b); !errors.Is(err, os.ErrExist) {
		t.Errorf("onto a file: %v, want ErrExist", err)
	}
	must(t, linkThenUnlink(a, filepath.Join(dir, "c")))
	if _, err := os.Lstat(a); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old name is still there: %v", err)
	}
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	if err := linkThenUnlink(filepath.Join(dir, "d"), b); !errors.Is(err, os.ErrExist) {
		t.Errorf("folder onto a file: %v, want ErrExist", err)
	}
	must(t, linkThenUnlink(filepath.Join(dir, "d"), filepath.Join(dir, "e")))
}

// What every implementation must do on every file system that it runs on.
func TestFilesGetTheirNamesOnce(t *testing.T) {
	dir := t.TempDir()
	var d OS
	path := filepath.Join(dir, "file")

	f, err := d.Create(filepath.Join(dir, "temp"))
	must(t, err)
	if _, err := d.Create(f.Name()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create over a file: %v, want ErrExist", err)
	}
	_, err = f.Write([]byte("content"))
	must(t, err)
	must(t, f.StartFlush())
	must(t, f.Flush())
	must(t, f.Sync())
	must(t, f.Close())
	must(t, d.RenameNew(f.Name(), path))
	must(t, d.SyncDir(dir))

	unnamed, err := d.Unnamed(dir)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Log("no unnamed files here")
	} else {
		must(t, err)
		defer unnamed.Close()
		if err := d.Link(unnamed, path); !errors.Is(err, fs.ErrExist) {
			t.Errorf("Link over a file: %v, want ErrExist", err)
		}
		_, err = unnamed.Write([]byte("second"))
		must(t, err)
		must(t, d.Link(unnamed, filepath.Join(dir, "second")))
		if data, err := os.ReadFile(filepath.Join(dir, "second")); err != nil || string(data) != "second" {
			t.Errorf("linked: %q, %v", data, err)
		}
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "content" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestPendingLeavesTheOldFileUntilReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	must(t, os.WriteFile(path, []byte("old"), 0o644))
	for _, replace := range []bool{false, true} {
		p, err := OS{}.Pending(path)
		must(t, err)
		_, err = p.Write([]byte("new"))
		must(t, err)
		want := "old"
		if replace {
			want = "new"
			must(t, p.Replace())
		}
		must(t, p.Cleanup())
		if data, _ := os.ReadFile(path); string(data) != want {
			t.Errorf("replaced %t: %q, want %q", replace, data, want)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestNothingIsAssumedOfAnUnknownFileSystem(t *testing.T) {
	if f := (OS{}).Features("/proc"); f != (Features{Parallel: f.Parallel}) {
		t.Errorf("/proc: %+v", f)
	}
	if f := (OS{}).Features(filepath.Join(t.TempDir(), "missing")); f != (Features{Parallel: f.Parallel}) {
		t.Errorf("a folder that is not there: %+v", f)
	}
}

func TestOpenFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, nil, 0o644))
	link := filepath.Join(dir, "link")
	must(t, os.Symlink(outside, link))
	if _, err := (OS{}).Append(link); err == nil {
		t.Error("Append followed a link")
	}
	if err := (OS{}).SyncFile(link); err == nil {
		t.Error("SyncFile followed a link")
	}
}

// What can't be done is said, and nothing is left open.
func TestCallsThatFail(t *testing.T) {
	dir := t.TempDir()
	none, file := filepath.Join(dir, "none", "x"), filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "full"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "full", "x"), nil, 0o600))
	var d OS
	for name, call := range map[string]func() error{
		"create":  func() error { _, err := d.Create(none); return err },
		"append":  func() error { _, err := d.Append(none); return err },
		"pending": func() error { _, err := d.Pending(none); return err },
		"pending over a folder": func() error {
			p, err := d.Pending(filepath.Join(dir, "full"))
			must(t, err)
			return errors.Join(p.Replace(), p.Cleanup())
		},
		"sync of nothing":        func() error { return d.SyncFile(none) },
		"sync of no folder":      func() error { return d.SyncDir(none) },
		"sync of a file for one": func() error { return d.SyncDir(file) },
		"sync of a device":       func() error { return d.SyncFile(os.DevNull) },
		"move of nothing":        func() error { return d.RenameNew(none, filepath.Join(dir, "new")) },
		"move into itself":       func() error { return d.RenameNew(filepath.Join(dir, "full"), filepath.Join(dir, "full", "y")) },
		"link of nothing":        func() error { return linkThenUnlink(none, filepath.Join(dir, "new")) },
		"folder to no folder":    func() error { return linkThenUnlink(filepath.Join(dir, "full"), none) },
		"folder onto a folder": func() error {
			must(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
			return linkThenUnlink(filepath.Join(dir, "full"), filepath.Join(dir, "empty"))
		},
		"remove":  func() error { return d.Remove(none) },
		"mkdir":   func() error { return d.Mkdir(none) },
		"symlink": func() error { return d.Symlink(file, none) },
		"rename":  func() error { return d.Rename(none, file) },
	} {
		if err := call(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	f, err := d.Create(filepath.Join(dir, "closed"))
	must(t, err)
	must(t, f.Close())
	for name, call := range map[string]func() error{"sync": f.Sync, "flush": f.Flush, "start": f.StartFlush} {
		if err := call(); err == nil && name == "sync" {
			t.Errorf("%s of a closed file: no error", name)
		}
	}
}
