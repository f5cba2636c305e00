package chipsettest_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/chipset/measure"
)

// large reports whether the sizes are those of docs/performance.md, which take minutes.
func large() bool { return os.Getenv("CHIPSET_BENCH_LARGE") != "" }

// litter puts beads and a year of events into a world.
func litter(b *testing.B, w *chipsettest.World, size measure.Size) {
	b.Helper()
	around(b, w, size)
	day := time.Date(2025, 3, 5, 10, 30, 0, 0, time.UTC)
	line := `{"agent":"polecat-00000","bead":"me-00001","subject":"polecat-00000","text":"what happened then","time":"%s","type":"hook.touched"}` + "\n"
	for d := range 365 {
		at := day.AddDate(0, 0, d)
		w.Write(".chipset/state/events/"+at.Format("2006-01-02")+".jsonl",
			strings.Repeat(fmt.Sprintf(line, at.Format("2006-01-02T15:04:05.000000000Z")), 300))
	}
}

// BenchmarkWhole: a rig from its start until all has landed, beside the schedule that worker and
// test alone would allow: polecats in parallel, the refinery one after the other.
func BenchmarkWhole(b *testing.B) {
	bin := chipsettest.Build(b)
	for _, c := range []struct {
		name   string
		beads  int
		test   time.Duration
		landed int
	}{
		{"test=50ms", 200, 50 * time.Millisecond, 0},
		{"test=50ms/landed=10000", 200, 50 * time.Millisecond, 10_000},
		{"test=500ms", 60, 500 * time.Millisecond, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			if !large() {
				c.beads, c.landed = c.beads/5, c.landed/5
			}
			const polecats, work = 8, 50 * time.Millisecond
			var wall, ideal, cpu time.Duration
			for b.Loop() {
				b.StopTimer()
				w := chipsettest.New(b, bin, chipsettest.Options{Polecats: polecats, Test: fmt.Sprintf("sleep %.3f", c.test.Seconds())})
				if c.landed > 0 {
					litter(b, w, measure.Size{Landed: c.landed})
				}
				for i := range c.beads {
					w.Chipset("work", "add", fmt.Sprint("bead ", i), "-d", fmt.Sprintf("sleep %.3f; echo %d > f%d", work.Seconds(), i, i))
				}
				cmd := w.Command(bin, "up", "--until-idle")
				b.StartTimer()
				began := time.Now()
				out, err := cmd.CombinedOutput()
				wall += time.Since(began)
				if err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				if n := strings.Count(w.Git("log", "--format=%s", "main"), "\n"); n != c.beads {
					b.Fatalf("%d landed, want %d", n, c.beads)
				}
				ideal += schedule(c.beads, polecats, work, c.test)
				cpu += cmd.ProcessState.SystemTime() + cmd.ProcessState.UserTime()
			}
			b.ReportMetric(wall.Seconds()/ideal.Seconds(), "x-ideal")
			b.ReportMetric(ideal.Seconds()/float64(b.N), "ideal-s")
			b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N*c.beads), "cpu-ms/bead")
		})
	}
}

// schedule is how long beads take at least: each polecat does one after the other, and each is tested when
// it is finished and the one before has been.
func schedule(beads, polecats int, work, test time.Duration) (end time.Duration) {
	for i := range beads {
		end = max(end, time.Duration(i/polecats+1)*work) + test
	}
	return end
}

// BenchmarkDispatch: from "work add" to the start of the worker, in a rig that runs and has a free polecat,
// beside what a person's own git and sh take for the same.
func BenchmarkDispatch(b *testing.B) {
	bin := chipsettest.Build(b)
	for _, c := range []struct {
		name         string
		beads, files int
	}{{"small", 0, 0}, {"beads=10000", 10_000, 0}, {"files=50000", 0, 50_000}} {
		b.Run(c.name, func(b *testing.B) {
			if !large() {
				c.beads, c.files = c.beads/10, c.files/10
			}
			w := chipsettest.New(b, bin, chipsettest.Options{Polecats: 1, Test: "true"})
			if c.beads > 0 {
				litter(b, w, measure.Size{Landed: c.beads / 2, Blocked: c.beads / 2})
			}
			for i := range c.files {
				w.Write(fmt.Sprintf("files/%03d/%03d.txt", i/250, i%250), fmt.Sprint(i))
			}
			w.Git("add", "-A")
			w.Git("commit", "-q", "--allow-empty", "-m", "files")
			rig := w.Start("up")
			defer func() { _ = rig.Cmd.Process.Signal(syscall.SIGTERM); <-rig.Done() }()
			own := filepath.Join(b.TempDir(), "own")
			dispatched(b, w, "first") // the worktree is made once
			w.Git("worktree", "add", "-q", "--detach", own)
			var fromStart, fromAnswer, bare []float64
			for b.Loop() {
				start, answer := dispatched(b, w, fmt.Sprint("bead", len(bare)))
				fromStart, fromAnswer = append(fromStart, start), append(fromAnswer, answer)
				bare = append(bare, byHand(b, w, own, len(bare)))
			}
			for unit, of := range map[string][]float64{"p50-ms": fromStart, "p50-from-ack-ms": fromAnswer, "by-hand-ms": bare} {
				slices.Sort(of)
				b.ReportMetric(of[len(of)/2], unit)
			}
		})
	}
}

// dispatched adds a bead, waits until it has landed, and returns the milliseconds until its worker ran: since
// the command was started, and since it had answered.
func dispatched(b *testing.B, w *chipsettest.World, name string) (fromStart, fromAnswer float64) {
	b.Helper()
	began := time.Now()
	id := w.Chipset("work", "add", name, "-d", fmt.Sprintf("date +%%s%%N > mark-%s", name))
	answered := time.Now()
	w.Eventually(patience, id+" lands", func() bool {
		_, err := os.Stat(filepath.Join(w.Dir, "mark-"+name))
		return err == nil
	})
	w.Eventually(patience, "the polecat is free", func() bool {
		return strings.Contains(w.Read(".chipset/state/hooks/polecat-alpha.json"), `"empty"`)
	})
	var ns int64
	if _, err := fmt.Sscan(w.Read("mark-"+name), &ns); err != nil {
		b.Fatal(err)
	}
	at := time.Unix(0, ns)
	return float64(at.Sub(began).Microseconds()) / 1000, float64(at.Sub(answered).Microseconds()) / 1000
}

// byHand is what a person does for a bead in a worktree of their own, in milliseconds.
func byHand(b *testing.B, w *chipsettest.World, dir string, i int) float64 {
	b.Helper()
	began := time.Now()
	for _, args := range [][]string{{"git", "status", "--porcelain"}, {"git", "checkout", "-q", "-B", fmt.Sprint("own-", i), "main"}, {"sh", "-c", "date +%s%N"}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			b.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	return float64(time.Since(began).Microseconds()) / 1000
}
