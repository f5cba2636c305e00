package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// terminalOf runs a command on a terminal of its own, and returns its process and the
// terminal's other end.
func terminalOf(t testing.TB, cmd *exec.Cmd, width, height uint16) *os.File {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	must(err)
	must(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	must(err)
	must(unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width}))
	inner, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	must(err)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inner, inner, inner
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(cmd.Start())
	must(inner.Close())
	outer := os.NewFile(uintptr(fd), "terminal")
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = outer.Close(); _ = cmd.Wait() })
	return outer
}

// appears reads a terminal until a text was written to it.
func appears(t testing.TB, terminal *os.File, text string) {
	t.Helper()
	var seen []byte
	buf := make([]byte, 64<<10)
	for !bytes.Contains(seen, []byte(text)) {
		n, err := terminal.Read(buf)
		if err != nil {
			t.Fatalf("no %q: %v", text, err)
		}
		seen = append(seen[max(0, len(seen)-len(text)):], buf[:n]...)
	}
}

// titles are such that no two that follow each other share a letter in the same place, and
// none repeats a letter: a terminal is sent what changes only, and repetitions as a number.
func title(i int) string {
	letters := make([]byte, 10)
	for at := range letters {
		letters[at] = 'a' + byte((i+7*at)%26)
	}
	return string(letters)
}

// percentile is the p-th of a hundred, in milliseconds.
func percentile(all []time.Duration, p int) float64 {
	slices.Sort(all)
	return float64(all[min(len(all)-1, len(all)*p/100)].Microseconds()) / 1000
}

// BenchmarkToTheScreen: from the moment at which a program begins to change a bead until the
// change is on the screen; of two hundred changes. The baseline is what a bare watcher of the
// folder takes to hear of it.
func BenchmarkToTheScreen(b *testing.B) {
	const changes = 200
	board := newWebBoard(b)
	put := func(i int) time.Time {
		began := time.Now()
		board.PutBead("gt-one", bead.InProgress, func(x *bead.Bead) { x.Title = title(i) })
		return began
	}
	put(0)
	report := func(b *testing.B, wait func(i int) func() time.Time) {
		var all []time.Duration
		for i := range changes {
			seen := wait(i + 1)
			began := put(i + 1)
			all = append(all, seen().Sub(began))
		}
		for b.Loop() { // the row is of all changes
		}
		b.ReportMetric(percentile(all, 50), "p50-ms")
		b.ReportMetric(percentile(all, 95), "p95-ms")
	}
	b.Run("baseline-watcher", func(b *testing.B) {
		w, err := state.NewWatcher(board.Tree)
		board.Must(err)
		defer w.Close()
		heard, err := w.Subscribe(bead.Dir)
		board.Must(err)
		report(b, func(int) func() time.Time { return func() time.Time { <-heard; return time.Now() } })
	})
	b.Run("terminal", func(b *testing.B) {
		terminal := terminalOf(b, board.command("board"), 120, 34)
		appears(b, terminal, title(changes))
		report(b, func(i int) func() time.Time {
			return func() time.Time { appears(b, terminal, title(i)); return time.Now() }
		})
	})
	b.Run("browser", func(b *testing.B) {
		page := newBrowser(b)
		page.enter(board.serve())
		report(b, func(i int) func() time.Time {
			eval[bool](page, fmt.Sprintf(`window.seen = new Promise((ok) => { const look = () => { if (!document.querySelector("#work").textContent.includes(%q)) return;
				o.disconnect(); requestAnimationFrame(() => ok(performance.timeOrigin + performance.now())); }; const o = new MutationObserver(look); o.observe(document.body, {childList: true, subtree: true, characterData: true}); }), true`, title(i)))
			return func() time.Time { return time.UnixMicro(int64(1000 * eval[float64](page, `window.seen`))) }
		})
	})
}

// BenchmarkFirstPaint is the time from the request of the board with 1,000 beads, in a browser
// that has seen nothing of it, to what it draws first, and the bytes that were sent; beside a
// page of plain text of the same size.
func BenchmarkFirstPaint(b *testing.B) {
	board := newWebBoard(b)
	board.putMany(0, 1000)
	size := 0
	b.Run("board", func(b *testing.B) {
		var all []time.Duration
		for b.Loop() {
			page := newBrowser(b)
			page.enter(board.serve())
			all = append(all, time.Duration(page.firstPaint()*float64(time.Millisecond)))
			size = eval[int](page, sentBytes)
			board.kill()
		}
		b.ReportMetric(percentile(all, 50), "ms")
		b.ReportMetric(float64(size)/1000, "kB")
	})
	b.Run("baseline-text", func(b *testing.B) {
		plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, "<!doctype html><title>plain</title>", strings.Repeat("<p>A line of text.</p>\n", size/23))
		}))
		defer plain.Close()
		var all []time.Duration
		for b.Loop() {
			page := newBrowser(b)
			page.run(chromedp.Navigate(plain.URL))
			all = append(all, time.Duration(page.firstPaint()*float64(time.Millisecond)))
		}
		b.ReportMetric(percentile(all, 50), "ms")
	})
}

// BenchmarkIdleBoards is what both boards take of a core while a rig of thirty rests, and what
// they write; beside the rig itself.
func BenchmarkIdleBoards(b *testing.B) {
	dir, chipset := newTerminalRigOf(b, 30)
	env := append(os.Environ(), "CHIPSET_PERSON_TOKEN=")
	up := exec.Command("chipset", "up", "--plain")
	up.Dir, up.Env = dir, env
	if err := up.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = up.Process.Signal(os.Interrupt); _ = up.Wait() })
	for !strings.Contains(chipset("status"), "33 of 33 running") {
	}
	board := &webBoard{TB: b, home: b.TempDir(), dir: dir}
	board.makePerson()
	terminal := board.command("board")
	out := terminalOf(b, terminal, 120, 34)
	appears(b, out, "33 of 33 running")
	go func() {
		for buf := make([]byte, 4096); ; {
			if _, err := out.Read(buf); err != nil {
				return
			}
		}
	}()
	page := newBrowser(b)
	page.enter(board.serve())
	for _, p := range []struct {
		name string
		pid  int
	}{{"baseline-rig", up.Process.Pid}, {"terminal", terminal.Process.Pid}, {"browser", board.server.Process.Pid}} {
		b.Run(p.name, func(b *testing.B) {
			const rest = 10 * time.Second // what rests can only be waited for
			cpu, wrote, began := used(b, p.pid), written(b, p.pid), time.Now()
			for b.Loop() {
				time.Sleep(rest)
			}
			b.ReportMetric(100*(used(b, p.pid)-cpu).Seconds()/time.Since(began).Seconds(), "%core")
			b.ReportMetric(float64(written(b, p.pid)-wrote), "bytes-written")
		})
	}
}

// used is the processor time of a process's threads so far.
func used(t testing.TB, pid int) (sum time.Duration) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		t.Fatalf("%d has no threads: %v", pid, err)
	}
	for _, task := range tasks {
		if data, err := os.ReadFile(task); err == nil { // else it has ended
			n, _ := strconv.ParseInt(strings.Fields(string(data))[0], 10, 64)
			sum += time.Duration(n)
		}
	}
	return sum
}

// written is what a process has written to disks so far, in bytes.
func written(t testing.TB, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(data), "\nwrite_bytes: ")
	n, _ := strconv.Atoi(strings.Fields(after)[0])
	return n
}
