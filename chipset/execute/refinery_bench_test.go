package execute

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// BenchmarkLanding lands one request after the other that really has to be
// rebased, and in between does by hand, in another repository, what git alone
// costs for the same: the rebase, the test command, the merge, and a sync of the
// file system. What is left of the first after rebase and test of the second is
// the refinery's own cost.
func BenchmarkLanding(b *testing.B) {
	m := newMill(b, `test: "true"`)
	land := func(name string) cost {
		m.now = time.Now()
		q := m.submit(name, "x\n")
		lap := stopwatch()
		m.run()
		took := lap()
		m.is(q, mergequeue.Merged, bead.Merged)
		return took
	}
	h := newHands(b)
	land("first.txt")
	h.land("first.txt")
	m.from, h.from = "main~1", "main~1"
	var all, rebase, test, merge cost
	n := 0
	for b.Loop() {
		n++
		name := fmt.Sprintf("%d.txt", n)
		all.add(land(name))
		r, t, g := h.land(name)
		rebase.add(r)
		test.add(t)
		merge.add(g)
	}
	own := cost{all.wall - rebase.wall - test.wall, all.processor - rebase.processor - test.processor}
	b.ReportMetric(0, "ns/op")
	for name, c := range map[string]cost{"landing": all, "git-rebase": rebase, "git-merge": merge, "test": test, "own": own} {
		b.ReportMetric(float64(c.wall.Microseconds())/1000/float64(n), "ms/"+name)
		b.ReportMetric(float64(c.processor.Microseconds())/1000/float64(n), "cpu-ms/"+name)
	}
}

// cost is what something took: by the clock, which depends on what else the
// machine does, and in processor time of this process and its children, which
// hardly does.
type cost struct{ wall, processor time.Duration }

func (c *cost) add(d cost) { c.wall, c.processor = c.wall+d.wall, c.processor+d.processor }

// stopwatch returns a function that tells what was spent since it was last called.
func stopwatch() (lap func() cost) {
	began, spent := time.Now(), processorTime()
	return func() cost {
		now, total := time.Now(), processorTime()
		c := cost{now.Sub(began), total - spent}
		began, spent = now, total
		return c
	}
}

func processorTime() time.Duration {
	var total time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var use syscall.Rusage
		if err := syscall.Getrusage(who, &use); err != nil {
			panic(err)
		}
		total += time.Duration(use.Utime.Nano() + use.Stime.Nano())
	}
	return total
}

// hands are those of a person who lands branches without a rig.
type hands struct {
	testing.TB
	dir, work, from string
	repo            *git.Repo
}

func newHands(b testing.TB) *hands {
	b.Helper()
	h := &hands{TB: b, dir: filepath.Join(b.TempDir(), "repo"), from: "main"}
	h.work = filepath.Join(filepath.Dir(h.dir), "refinery")
	if err := os.MkdirAll(h.dir, 0o755); err != nil {
		b.Fatal(err)
	}
	h.git(h.dir, "init", "-q", "-b", "main")
	h.git(h.dir, "config", "user.name", "Person")
	h.git(h.dir, "config", "user.email", "person@example.org")
	if err := os.WriteFile(filepath.Join(h.dir, "a.txt"), []byte("one\ntwo\nthree\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	h.git(h.dir, "add", "-A")
	h.git(h.dir, "commit", "-q", "-m", "first")
	h.git(h.dir, "worktree", "add", "-q", "--detach", h.work)
	var err error
	if h.repo, err = git.Open(b.Context(), h.dir); err != nil {
		b.Fatal(err)
	}
	return h
}

func (h *hands) git(dir string, args ...string) string {
	h.Helper()
	cmd := exec.Command("git", append([]string{"-c", "core.fsync=all"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// land makes a branch with one commit and lands it.
func (h *hands) land(name string) (rebase, test, merge cost) {
	h.Helper()
	h.git(h.work, "checkout", "-q", "--detach", h.from)
	if err := os.WriteFile(filepath.Join(h.work, name), []byte("x\n"), 0o644); err != nil {
		h.Fatal(err)
	}
	h.git(h.work, "add", "-A")
	h.git(h.work, "commit", "-q", "-m", name)
	head := h.git(h.work, "rev-parse", "HEAD")
	h.git(h.work, "checkout", "-q", "--detach", h.from)
	lap := stopwatch()
	h.git(h.work, "rebase", "-q", "main", head)
	rebase = lap()
	if err := exec.Command("true").Run(); err != nil {
		h.Fatal(err)
	}
	test = lap()
	candidate := h.git(h.work, "rev-parse", "HEAD")
	lap()
	h.git(h.dir, "merge", "-q", "--ff-only", candidate)
	if err := h.repo.Sync(h.Context()); err != nil {
		h.Fatal(err)
	}
	return rebase, test, lap()
}
