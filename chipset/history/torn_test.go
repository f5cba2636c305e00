package history

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// loose lists the loose objects of a repository.
func (y *yard) loose() []string {
	y.t.Helper()
	all, err := filepath.Glob(filepath.Join(y.Dir, ".git", "objects", "??", "*"))
	must(y.t, err)
	return all
}

// spoil puts other content under a loose object's name, as a power cut does.
func spoil(t *testing.T, path string, content []byte) {
	t.Helper()
	must(t, os.Remove(path))
	must(t, os.WriteFile(path, content, 0o444))
}

// unborn makes a first snapshot and takes its branch away, as if a power cut had come before the branch
// was on the disk. What is returned are the objects that are left of it.
func (y *yard) unborn() []string {
	y.t.Helper()
	before := map[string]bool{}
	for _, path := range y.loose() {
		before[path] = true
	}
	y.commit()
	y.git("update-ref", "-d", "refs/heads/chipset/audit")
	var left []string
	for _, path := range y.loose() {
		if !before[path] {
			left = append(left, path)
		}
	}
	return left
}

// TestTornObjectsOfAnEarlierTry: whichever objects of a snapshot a power cut tore, the next one stores them again.
// The clock stands still, so that also the commit is the same.
func TestTornObjectsOfAnEarlierTry(t *testing.T) {
	spoils := map[string]func([]byte) []byte{
		"empty": func([]byte) []byte { return nil },
		"zeros": func(b []byte) []byte { return make([]byte, len(b)) },
		"half":  func(b []byte) []byte { return bytes.Clone(b[:len(b)/2]) },
	}
	for name, torn := range spoils {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			byKind := map[string][]string{}
			for _, path := range y.unborn() {
				kind := y.git("cat-file", "-t", filepath.Base(filepath.Dir(path))+filepath.Base(path))
				byKind[kind] = append(byKind[kind], path)
				byKind["all"] = append(byKind["all"], path)
			}
			for _, kind := range []string{"blob", "tree", "commit", "all"} {
				if len(byKind[kind]) == 0 {
					t.Fatalf("no %s among %v", kind, byKind)
				}
				for _, path := range byKind[kind] {
					whole, err := os.ReadFile(path)
					must(t, err)
					spoil(t, path, torn(whole))
				}
				if out := y.commit(); !out.Made {
					t.Fatalf("%s torn: %+v", kind, out)
				}
				if out := y.git("fsck", "--strict", "--no-dangling"); out != "" {
					t.Errorf("%s torn: %s", kind, out)
				}
				y.verify("")
				y.git("update-ref", "-d", "refs/heads/chipset/audit")
			}
		})
	}
}

// TestObjectsOfAnEarlierTryAreWrittenAnew: after a failed sync nobody can tell what of them is on the disk.
func TestObjectsOfAnEarlierTryAreWrittenAnew(t *testing.T) {
	y := newYard(t)
	left := y.unborn()
	inodes := map[string]os.FileInfo{}
	for _, path := range left {
		info, err := os.Stat(path)
		must(t, err)
		inodes[path] = info
	}
	if len(left) < 10 {
		t.Fatalf("a snapshot of %d objects", len(left))
	}
	y.commit()
	for path, before := range inodes {
		if now, err := os.Stat(path); err != nil || os.SameFile(before, now) {
			t.Errorf("%s is the file that the earlier try wrote, %v", path, err)
		}
	}
}

// TestTornSnapshotBefore: a folder of the last snapshot that can't be read any more stops no later one, and is stored
// again if it is as it was.
func TestTornSnapshotBefore(t *testing.T) {
	y := newYard(t)
	y.commit()
	for n, name := range []string{".chipset/state/agents", ".chipset/state"} {
		id := y.git("rev-parse", "chipset/audit:"+name)
		spoil(t, filepath.Join(y.Dir, ".git", "objects", id[:2], id[2:]), nil)
		y.plant(fmt.Sprintf("handoff/mayor/2026-03-05T10-30-0%d.000000000Z.json", n), `{"agent_id":"mayor"}`)
		if out := y.commit(); !out.Made || out.Files == 0 {
			t.Fatalf("after %s was torn: %+v", name, out)
		}
		y.git("rev-list", "--objects", "chipset/audit^{tree}")
	}
	if out := y.git("rev-list", "--objects", "chipset/audit~2"); !strings.Contains(out, ".chipset/state/agents") {
		t.Error("the folder was not stored again")
	}
}
