package git

import (
	"os"
	"testing"
)

// A power cut can put a file where the folder of the polecats' branches was.
func TestObstaclesAreSetAside(t *testing.T) {
	f := newFixture(t)
	head := f.head(f.TopLevel())
	f.write(f.common, "refs/heads/polecat", "{}")
	f.write(f.common, "logs/refs/heads/polecat", "{}")
	if _, err := f.tryGit(f.TopLevel(), "branch", "polecat/x", string(head)); err == nil {
		t.Fatal("they are in nobody's way")
	}
	found, err := f.Obstacles("refs/heads/polecat/", "refs/chipset/", "refs/chipset/salvage/")
	if err != nil || len(found) != 2 {
		t.Fatalf("found %q, %v; want two", found, err)
	}
	for _, path := range found {
		to, err := f.SetAside(path)
		f.must(err)
		if data, err := os.ReadFile(to); err != nil || string(data) != "{}" {
			t.Errorf("kept at %s: %q, %v", to, data, err)
		}
		if _, err := f.SetAside(path); err != nil {
			t.Errorf("again: %v", err)
		}
	}
	f.git(f.TopLevel(), "branch", "polecat/x", string(head))
	if found, err := f.Obstacles("refs/heads/polecat/"); err != nil || len(found) > 0 {
		t.Errorf("left: %q, %v", found, err)
	}
}

// A branch that is called like the folder is a person's.
func TestObstaclesLeaveBranches(t *testing.T) {
	f := newFixture(t)
	f.git(f.TopLevel(), "branch", "polecat")
	for range 2 {
		if found, err := f.Obstacles("refs/heads/polecat/"); err != nil || len(found) > 0 {
			t.Errorf("found %q, %v", found, err)
		}
		f.git(f.TopLevel(), "pack-refs", "--all")
	}
}
