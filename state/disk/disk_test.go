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
