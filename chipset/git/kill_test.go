package git

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAdvanceSurvivesAKill kills a real fast-forward at different points of its way and repairs what it left.
func TestAdvanceSurvivesAKill(t *testing.T) {
	f := newFixture(t)
	top, files := f.TopLevel(), map[string]string{}
	for i := range 80 {
		files[fmt.Sprintf("d%d/f%03d", i%10, i)] = strings.Repeat(fmt.Sprintf("line %d\n", i), 500)
	}
	old := f.commit(top, files)
	w := f.prepared()
	for name := range files {
		files[name] = strings.ToUpper(files[name])
	}
	files["d1/f001"], files["d2/f002"] = "", ""
	new := f.commit(w.Path(), files)
	halfWay := 0
	for _, witness := range []string{".git/index.lock", "d0/f000", "d5/f055", "d9/f079"} {
		killMerge(f, new, filepath.Join(top, witness))
		repaired, err := f.RepairInterruptedAdvance(f.ctx, "main", old, new, true)
		f.must(err)
		if len(repaired.Restored) > 0 {
			halfWay++
		}
		if f.head(top) == old {
			if status := f.git(top, "status", "--porcelain"); status != "" || repaired.Left != nil {
				t.Fatalf("after the kill at %s: %q\n%s", witness, repaired.Left, status)
			}
		}
		f.must(f.Advance(f.ctx, "main", old, new))
		if status := f.git(top, "status", "--porcelain"); status != "" {
			t.Fatalf("after the advance: %s", status)
		}
		f.git(top, "reset", "-q", "--hard", string(old))
	}
	t.Logf("%d of 4 kills came half-way", halfWay)
}

// killMerge starts a fast-forward in the main worktree and kills it as soon as the witness changes.
func killMerge(f *fixture, new Hash, witness string) {
	f.Helper()
	stamp := func() (s string) {
		if info, err := os.Lstat(witness); err == nil {
			s = fmt.Sprint(info.ModTime().UnixNano(), info.Size())
		}
		return s
	}
	before := stamp()
	cmd := exec.Command("git", "merge", "-q", "--ff-only", string(new))
	cmd.Dir = f.TopLevel()
	f.must(cmd.Start())
	for deadline := time.Now().Add(10 * time.Second); stamp() == before && time.Now().Before(deadline); {
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
