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
	loops "github.com/gastown-chipset/chipset/state/bench"
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
func statusField(t *testing.T, pid int, name string) int {
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
func cpuTime(t *testing.T, pid int) int {
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
	// Events of the start are made durable with the next tick of the story, and
	// the first patrol of the witness may still have something to say.
	before := ""
	w.Eventually(patience, "the rig has come to rest", func() bool {
		last := before
		before = treeOf(t, state)
		time.Sleep(time.Second) // half a tick
		return before == last
	})
	cpu := cpuTime(t, p.Cmd.Process.Pid)
	const ticks = 3
	time.Sleep(ticks * 2 * time.Second) // that nothing happens can only be waited for
	if after := treeOf(t, state); after != before {
		t.Errorf("an idle rig wrote:\nbefore\n%s\nafter\n%s", before, after)
	}
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

// BenchmarkCommands: what a command costs as a process, beside the bare
// protocol for one message in the same iteration.
func BenchmarkCommands(b *testing.B) {
	w := chipsettest.New(b, chipsettest.Build(b), chipsettest.Options{Polecats: 1, Test: "true"})
	dir, err := loops.Folder(w.Dir, "plain")
	if err != nil {
		b.Fatal(err)
	}
	send := loops.Plain(dir, make([]byte, 500))
	var bare, version, mail []float64
	timed := func(into *[]float64, call func() error) {
		began := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		*into = append(*into, float64(time.Since(began).Microseconds())/1000)
	}
	i := 0
	for b.Loop() {
		timed(&bare, func() error { return send(i) })
		timed(&version, w.Command(w.Bin, "version").Run)
		timed(&mail, w.Command(w.Bin, "mail", "send", "mayor", "-s", "hello").Run)
		i++
	}
	middle := func(of []float64) float64 { slices.Sort(of); return of[len(of)/2] }
	b.ReportMetric(middle(bare), "bare-ms")
	b.ReportMetric(middle(version), "start-ms")
	b.ReportMetric(middle(mail), "send-ms")
	b.ReportMetric((middle(mail)-middle(version))/middle(bare), "x-bare-beyond-start")
}
