package chipsettest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/state/statetest"
)

// treeOf is every name below a folder with its stamps.
func treeOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(at string, _ os.FileInfo, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(at, &st)
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil // a temp file that has got its name
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, at, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// statusField is a field of /proc/PID/status.
func statusField(t testing.TB, pid int, name string) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %s", name)
	return 0
}

// cpuTime is what a process has used so far, in clock ticks of 10 ms.
func cpuTime(t testing.TB, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(after)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return user + system
}

// TestIdleRigWritesNothing: a rig of thirty with nothing to do leaves the state
// tree alone, whatever its ticks look at, and stays small.
func TestIdleRigWritesNothing(t *testing.T) {
	w := chipsettest.New(t, chipsettest.Build(t), chipsettest.Options{Polecats: 30, Test: "true"})
	p := w.Start("up")
	w.Eventually(patience, "all run", func() bool { return strings.Contains(w.Chipset("status"), "33 of 33 running") })
	state := filepath.Join(w.Dir, ".chipset", "state")
	// What the start and the first patrol of the witness write may come late on a busy machine.
	const ticks = 3
	cpu := 0
	w.Eventually(patience, "ticks in which nothing is written", func() bool {
		before := treeOf(t, state)
		cpu = cpuTime(t, p.Cmd.Process.Pid)
		time.Sleep(ticks * 2 * time.Second) // that nothing happens can only be waited for
		return treeOf(t, state) == before
	})
	mib := statusField(t, p.Cmd.Process.Pid, "VmRSS") / 1024
	t.Logf("%d MiB, %d ms of processor in %d ticks", mib, 10*(cpuTime(t, p.Cmd.Process.Pid)-cpu), ticks)
	if mib >= 60 {
		t.Errorf("%d MiB, want less than 60", mib)
	}
}

// TestCommandsFindTheRigWithoutGit counts processes: sending mail starts none.
func TestCommandsFindTheRigWithoutGit(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	w := chipsettest.New(t, chipsettest.Build(t), chipsettest.Options{Polecats: 1, Test: "true"})
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := w.Command(strace, "-f", "-qq", "-o", trace, "-e", "trace=execve", w.Bin, "mail", "send", "mayor", "-s", "hello")
	if out, err := cmd.CombinedOutput(); err != nil {
		statetest.Missing(t, fmt.Sprintf("strace can't trace here: %v: %s", err, out))
	}
	data, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "execve("); n != 1 {
		t.Errorf("%d programs were started, want the command alone:\n%s", n, data)
	}
}

// BenchmarkIdle: what a rig at rest takes of one core, and the memory that it holds: thirty polecats
// in one process, and thirty processes of a role each. Each iteration is ten ticks.
func BenchmarkIdle(b *testing.B) {
	const ticks, tick = 10, 2 * time.Second
	for _, c := range []struct {
		name     string
		polecats int
		apart    bool
	}{{"one-process", 30, false}, {"30-processes", 27, true}} {
		b.Run(c.name, func(b *testing.B) {
			w := chipsettest.New(b, chipsettest.Build(b), chipsettest.Options{Polecats: c.polecats, Test: "true"})
			running := []*chipsettest.Process{}
			if c.apart {
				for _, role := range []string{"mayor", "witness", "refinery"} {
					running = append(running, w.Start(role))
				}
				for _, id := range polecats(w) {
					running = append(running, w.Start("polecat", id))
				}
			} else {
				running = append(running, w.Start("up"))
			}
			all := fmt.Sprintf("%d of %[1]d running", c.polecats+3)
			w.Eventually(patience, all, func() bool { return strings.Contains(w.Chipset("status"), all) })
			time.Sleep(ticks / 2 * tick) // what the start leaves to do
			used := func() (cpu int) {
				for _, p := range running {
					cpu += cpuTime(b, p.Cmd.Process.Pid)
				}
				return cpu
			}
			before, began := used(), time.Now()
			for b.Loop() {
				time.Sleep(ticks * tick)
			}
			share := float64(used()-before) * 0.01 / time.Since(began).Seconds()
			mib := 0
			for _, p := range running {
				mib += statusField(b, p.Cmd.Process.Pid, "RssAnon") / 1024
			}
			b.ReportMetric(100*share, "%core")
			b.ReportMetric(float64(mib), "MiB")
		})
	}
}

// polecats are the names of those of a world.
func polecats(w *chipsettest.World) []string {
	var ids []string
	for name := range strings.FieldsSeq(w.Chipset("agents", "--json")) {
		if id := strings.Trim(name, `",`); strings.HasPrefix(id, "polecat-") {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
