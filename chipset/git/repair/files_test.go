package repair

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A power cut can put a file where the folder of the polecats' branches was.
func TestObstaclesAreSetAside(t *testing.T) {
	f := newFixture(t)
	head := f.head(f.TopLevel())
	f.write(f.CommonDir(), "refs/heads/polecat", "{}")
	f.write(f.CommonDir(), "logs/refs/heads/polecat", "{}")
	if _, err := f.tryGit(f.TopLevel(), "branch", "polecat/x", string(head)); err == nil {
		t.Fatal("they are in nobody's way")
	}
	found, err := Obstacles(f.ctx, f.Repo, "refs/heads/polecat/", "refs/chipset/", "refs/chipset/salvage/")
	if err != nil || len(found) != 2 {
		t.Fatalf("found %q, %v; want two", found, err)
	}
	for _, path := range found {
		to, err := SetAside(f.Repo, path)
		f.must(err)
		if data, err := os.ReadFile(to); err != nil || string(data) != "{}" {
			t.Errorf("kept at %s: %q, %v", to, data, err)
		}
		if _, err := SetAside(f.Repo, path); err != nil {
			t.Errorf("again: %v", err)
		}
	}
	f.git(f.TopLevel(), "branch", "polecat/x", string(head))
	if found, err := Obstacles(f.ctx, f.Repo, "refs/heads/polecat/"); err != nil || len(found) > 0 {
		t.Errorf("left: %q, %v", found, err)
	}
}

// A branch that is called like the folder is a person's.
func TestObstaclesLeaveBranches(t *testing.T) {
	f := newFixture(t)
	f.git(f.TopLevel(), "branch", "polecat")
	for range 2 {
		if found, err := Obstacles(f.ctx, f.Repo, "refs/heads/polecat/"); err != nil || len(found) > 0 {
			t.Errorf("found %q, %v", found, err)
		}
		f.git(f.TopLevel(), "pack-refs", "--all")
	}
}

// Only what a killed fast-import left goes: not what a person keeps, nor what is young.
func TestRemoveKeepFiles(t *testing.T) {
	f := newFixture(t)
	f.must(os.MkdirAll(filepath.Join(f.CommonDir(), "objects", "pack", "folder.keep"), 0o755)) // is in nobody's way
	for _, c := range []struct {
		name, text string
		pack       bool
		age        time.Duration
		stays      bool
	}{
		{"whole", "fast-import", true, time.Hour, false},
		{"torn", "fast\x00\x00", true, time.Hour, false},
		{"empty, its pack never came", "", false, time.Hour, false},
		{"empty, a person's", "", true, time.Hour, true},
		{"a fetch", "fetch-pack 12 on host", true, time.Hour, true},
		{"a person's words", "mine", true, time.Hour, true},
		{"young", "fast-import", true, time.Minute, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.write(f.CommonDir(), "objects/pack/pack-1.keep", c.text)
			if c.pack {
				f.write(f.CommonDir(), "objects/pack/pack-1.pack", "")
			}
			path := filepath.Join(f.CommonDir(), "objects", "pack", "pack-1.keep")
			info, err := os.Stat(path)
			f.must(err)
			n, err := RemoveKeepFiles(f.Repo, info.ModTime().Add(c.age), time.Hour)
			f.must(err)
			if _, err := os.Stat(path); (err == nil) != c.stays || (n == 0) != c.stays {
				t.Errorf("%d removed, %v", n, err)
			}
			f.must(os.RemoveAll(filepath.Join(f.CommonDir(), "objects", "pack", "pack-1.pack")))
			f.must(os.RemoveAll(path))
		})
	}
}
