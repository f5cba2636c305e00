package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state/fault"
)

func TestExitCodes(t *testing.T) {
	tests := []struct {
		name   string
		script string
		want   Exit
	}{
		{"success", "true", Exit{Code: 0}},
		{"failure", "exit 3", Exit{Code: 3}},
		{"not executable by its own word", "exit 126", Exit{Code: 126, NotExecutable: true}},
		{"not found by the shell", "no-such-command-at-all", Exit{Code: 127, NotFound: true}},
		{"killed", "kill -9 $$", Exit{Code: 137, Signal: "SIGKILL"}},
		{"terminated", "kill $$", Exit{Code: 143, Signal: "SIGTERM"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			exit := b.run(b.spec(test.script))
			got := Exit{Code: exit.Code, Signal: exit.Signal, NotFound: exit.NotFound, NotExecutable: exit.NotExecutable,
				TimedOut: exit.TimedOut, Orphaned: exit.Orphaned, Stopped: exit.Stopped, Error: exit.Error}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if !exit.Done || exit.EndedAt.Before(exit.StartedAt.Time) || exit.PID == 0 || exit.PGID != exit.PID {
				t.Errorf("exit %+v", exit)
			}
		})
	}
}

func TestNotExecuted(t *testing.T) {
	b := newBench(t)
	b.write("plain", "echo hello\n", 0o644)
	b.write("noformat", "echo hello\n", 0o755)
	b.write("nointerpreter", "#!/no/such/interpreter\n", 0o755)
	tests := []struct {
		name string
		argv []string
		code int
		kind fault.Kind
	}{
		{"name not in PATH", []string{"no-such-command-at-all"}, 127, fault.ClientMissing},
		{"no such path", []string{"./missing"}, 127, fault.ClientMissing},
		{"path below a file", []string{"./plain/missing"}, 127, fault.ClientMissing},
		{"missing interpreter", []string{"./nointerpreter"}, 127, fault.ClientMissing},
		{"not executable", []string{"./plain"}, 126, fault.ClientRefused},
		{"no binary", []string{"./noformat"}, 126, fault.ClientRefused},
		{"directory", []string{b.dir}, 126, fault.ClientRefused},
		{"a long argument", []string{"true", strings.Repeat("x", 4<<20)}, 126, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := b.spec("")
			spec.Argv = test.argv
			exit := b.run(spec)
			if exit.Code != test.code || exit.NotFound != (test.code == 127) || exit.NotExecutable != (test.code == 126) {
				t.Errorf("exit %+v, want code %d", exit, test.code)
			}
			if exit.Error == "" || exit.PID != 0 || !exit.Done {
				t.Errorf("exit %+v tells of a process, or of no reason", exit)
			}
			if exit.Fault.Kind != test.kind || !strings.Contains(exit.Fault.Reason, exit.Error) != (test.kind == "") {
				t.Errorf("fault %+v, want %s", exit.Fault, test.kind)
			}
		})
	}
}

func TestCommandIsFoundInItsOwnWorld(t *testing.T) {
	b := newBench(t)
	if err := os.Mkdir(filepath.Join(b.dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.write("bin/tool", "#!/bin/sh\necho absolute\n", 0o755)
	spec := b.spec("")
	spec.Argv = []string{"tool"}
	spec.Env = []string{"PATH=" + filepath.Join(b.dir, "bin")}
	if exit := b.run(spec); exit.Code != 0 || b.log() != "absolute\n" {
		t.Errorf("exit %+v, log %q", exit, b.log())
	}
	// What lies in the directory of the work is not run for a bare name.
	spec.Env = []string{"PATH=bin::."}
	if exit := b.run(spec); exit.Code != 127 {
		t.Errorf("exit %+v, want 127", exit)
	}
}

func TestInputOutputAndEnvironment(t *testing.T) {
	b := newBench(t)
	t.Setenv("CHIPSET_TEST_LEAK", "leaked")
	b.write("log", "earlier\n", 0o600)
	spec := b.spec(`cat; echo to stderr >&2; pwd -P; echo "$X|$CHIPSET_TEST_LEAK"`)
	spec.Stdin = b.write("prompt", "the prompt\n", 0o600)
	spec.Env = append(spec.Env, "X=a b")
	if exit := b.run(spec); exit.Code != 0 {
		t.Fatalf("exit %+v", exit)
	}
	dir, err := filepath.EvalSymlinks(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	want := "earlier\nthe prompt\nto stderr\n" + dir + "\na b|\n"
	if got := b.log(); got != want {
		t.Errorf("log %q, want %q", got, want)
	}
}

func TestTimeout(t *testing.T) {
	b := newBench(t)
	spec := b.spec("echo up; exec sleep 1000")
	spec.Timeout = 50 * time.Millisecond
	exit := b.run(spec)
	if !exit.TimedOut || exit.Stopped || exit.Orphaned || exit.Signal != "SIGTERM" {
		t.Errorf("exit %+v", exit)
	}
}

func TestStop(t *testing.T) {
	tests := []struct {
		name   string
		script string
		graces []time.Duration
		signal string
		code   int
	}{
		{"obedient", "echo up; exec sleep 1000", []time.Duration{patience}, "SIGTERM", 143},
		{"tidies up", "trap 'echo tidy; exit 5' TERM; echo up; while :; do sleep 0.01; done", []time.Duration{patience}, "", 5},
		{"deaf to TERM", "trap '' TERM; echo up; while :; do sleep 0.01; done", []time.Duration{50 * time.Millisecond}, "SIGKILL", 137},
		{"at once", "trap '' TERM; echo up; while :; do sleep 0.01; done", []time.Duration{0}, "SIGKILL", 137},
		{"shortened", "trap '' TERM; echo up; while :; do sleep 0.01; done", []time.Duration{time.Hour, 0}, "SIGKILL", 137},
		{"not lengthened", "trap '' TERM; echo up; while :; do sleep 0.01; done", []time.Duration{50 * time.Millisecond, time.Hour}, "SIGKILL", 137},
		{"asleep", "echo up; kill -STOP $$; exit 9", []time.Duration{patience}, "SIGTERM", 143},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			job := b.start(b.spec(test.script))
			b.await("up")
			for _, grace := range test.graces {
				job.Stop(grace)
			}
			exit := b.wait(job)
			if !exit.Stopped || exit.Signal != test.signal || exit.Code != test.code {
				t.Errorf("exit %+v, want %s, code %d", exit, test.signal, test.code)
			}
			job.Stop(0) // of what is over
		})
	}
}

func TestLeftoversEndWithTheCommand(t *testing.T) {
	tests := []struct{ name, script string }{
		{"in the background", "sleep 1000 & exit 7"},
		{"deaf to TERM", "(trap '' TERM; echo up; while :; do sleep 0.01; done) & until grep -q up log; do :; done; exit 7"},
		{"many", "for i in 1 2 3 4 5 6 7 8 9; do (sleep 1000; true) & done; exit 7"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			exit := b.run(b.spec(test.script))
			if exit.Code != 7 || exit.Stopped || exit.TimedOut || exit.Orphaned {
				t.Errorf("exit %+v", exit)
			}
		})
	}
}

func TestHugeOutput(t *testing.T) {
	b := newBench(t)
	const size = 32 << 20
	job := b.start(b.spec("head -c 33554432 /dev/zero"))
	if exit := b.wait(job); exit.Code != 0 {
		t.Errorf("exit %+v", exit)
	}
	logged, _, err := job.Activity()
	if err != nil || logged != size {
		t.Errorf("logged %d, %v", logged, err)
	}
}

func TestRecordWhileRunning(t *testing.T) {
	b := newBench(t)
	spec := b.spec("exec sleep 1000")
	job := b.start(spec)
	record, found, err := ReadExit(spec.Record)
	if err != nil || !found {
		t.Fatalf("found %v, %v", found, err)
	}
	if record.Done || record.ID != spec.ID || record.PID == 0 || record.SupervisorPID == 0 || record.StartedAt.IsZero() || !record.EndedAt.IsZero() {
		t.Errorf("record %+v", record)
	}
	if !record.Alive() {
		t.Error("the record of a running job is not alive")
	}
	if group, err := unix.Getpgid(record.PID); err != nil || group != record.PGID {
		t.Errorf("group %d, %v; record %+v", group, err, record)
	}
	job.Stop(patience)
	b.wait(job)
	if record.Alive() {
		t.Error("the old record is alive after the end")
	}
}

func TestNotStarted(t *testing.T) {
	b := newBench(t)
	if err := os.Symlink(b.write("elsewhere", "", 0o600), filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(b.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(b.dir, name) }
	tests := []struct {
		name   string
		breaks func(*Spec)
	}{
		{"log in a missing directory", func(s *Spec) { s.Log = in("missing/log") }},
		{"log is a link", func(s *Spec) { s.Log = in("link") }},
		{"log is a FIFO", func(s *Spec) { s.Log = in("fifo") }},
		{"log is a directory", func(s *Spec) { s.Log = b.dir }},
		{"record in a missing directory", func(s *Spec) { s.Record = in("missing/r.json") }},
		{"record is a directory", func(s *Spec) { s.Record = b.dir }},
		{"input is missing", func(s *Spec) { s.Stdin = in("missing") }},
		{"input is a FIFO", func(s *Spec) { s.Stdin = in("fifo") }},
		{"directory is missing", func(s *Spec) { s.Dir = in("missing") }},
		{"directory is a file", func(s *Spec) { s.Dir = in("elsewhere") }},
	}
	self, _ := os.Executable()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := b.spec("exec sleep 1000")
			test.breaks(&spec)
			_, err := start(t.Context(), self, spec, nil)
			var failed *StartError
			if !errors.Is(err, ErrNotStarted) || !errors.As(err, &failed) || failed.Fault.Class != fault.Environment || failed.Fault.Check() != nil {
				t.Errorf("error %v of %+v", err, failed)
			}
			if left := sessionProcesses(b.session); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
	leftovers, err := filepath.Glob(in(".*"))
	if err != nil || len(leftovers) > 0 {
		t.Errorf("temporary files %v, %v", leftovers, err)
	}
	if _, err := start(t.Context(), in("no-binary"), b.spec("true"), nil); !errors.Is(err, ErrNotStarted) {
		t.Errorf("missing supervisor: %v", err)
	}
}

func TestSupervisorThatIsNone(t *testing.T) {
	b := newBench(t)
	noise := b.write("noise", "#!/bin/sh\necho not a report\necho stderr >&2\nexit 3\n", 0o755)
	_, err := start(t.Context(), noise, b.spec("true"), nil)
	if !errors.Is(err, ErrNotStarted) || !strings.Contains(err.Error(), "stderr") {
		t.Errorf("error %v", err)
	}
}

// TestKilledBeforeItsReport: a supervisor that somebody kills before it has started the job is replaced, a few times. When nothing
// has run in the end, the record of an earlier run stays.
func TestKilledBeforeItsReport(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for kills, starts := range map[int]bool{1: true, 2: true, 3: false} {
		b := newBench(t)
		b.run(b.spec("exit 3"))
		script := fmt.Sprintf("#!/bin/sh\ncd '%s'\necho >> kills\n[ $(wc -l < kills) -gt %d ] || kill -9 $$\nexec '%s' \"$@\"\n", b.dir, kills, self)
		job, err := start(t.Context(), b.write("self", script, 0o755), b.spec("exit 7"), nil)
		switch {
		case (err == nil) != starts:
			t.Errorf("%d kills: %v", kills, err)
		case err != nil && !errors.Is(err, ErrNotStarted):
			t.Errorf("error %v", err)
		case err != nil:
			if x, found, err := ReadExit(b.spec("exit 7").Record); err != nil || !found || !x.Done || x.Code != 3 {
				t.Errorf("the record says %+v, %t, %v", x, found, err)
			}
		case err == nil:
			if exit := b.wait(job); exit.Code != 7 {
				t.Errorf("%d kills: %+v", kills, exit)
			}
		}
	}
}

func TestStartIsBoundByItsContext(t *testing.T) {
	b := newBench(t)
	hung := b.write("hung", "#!/bin/sh\nexec sleep 1000\n", 0o755)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := start(ctx, hung, b.spec("true"), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if _, err := start(ctx, hung, b.spec("true"), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v with a context that is over", err)
	}
}

func TestBadSpec(t *testing.T) {
	b := newBench(t)
	tests := []struct {
		name   string
		breaks func(*Spec)
	}{
		{"no ID", func(s *Spec) { s.ID = "" }},
		{"ID with a path", func(s *Spec) { s.ID = "../x" }},
		{"ID in capitals", func(s *Spec) { s.ID = "A" }},
		{"reserved ID", func(s *Spec) { s.ID = "latest" }},
		{"long ID", func(s *Spec) { s.ID = strings.Repeat("a", 65) }},
		{"no command", func(s *Spec) { s.Argv = nil }},
		{"empty command", func(s *Spec) { s.Argv = []string{""} }},
		{"NUL in an argument", func(s *Spec) { s.Argv = []string{"a", "b\x00"} }},
		{"NUL in the environment", func(s *Spec) { s.Env = []string{"A=\x00"} }},
		{"relative directory", func(s *Spec) { s.Dir = "work" }},
		{"relative record", func(s *Spec) { s.Record = "r.json" }},
		{"no record", func(s *Spec) { s.Record = "" }},
		{"relative log", func(s *Spec) { s.Log = "log" }},
		{"relative input", func(s *Spec) { s.Stdin = "in" }},
		{"negative time-out", func(s *Spec) { s.Timeout = -1 }},
		{"negative grace", func(s *Spec) { s.Grace = -1 }},
	}
	self, _ := os.Executable()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := b.spec("true")
			test.breaks(&spec)
			if _, err := start(t.Context(), self, spec, nil); !errors.Is(err, ErrBadSpec) {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := start(t.Context(), "relative", b.spec("true"), nil); !errors.Is(err, ErrBadSpec) {
		t.Errorf("relative supervisor: %v", err)
	}
}

func TestManyJobsAtOnce(t *testing.T) {
	b := newBench(t)
	var group sync.WaitGroup
	for i := range 12 {
		spec := b.spec("sleep 1000 & exit 0")
		spec.ID += string(rune('a' + i))
		spec.Record = filepath.Join(b.dir, spec.ID+".json")
		job := b.start(spec)
		group.Go(func() {
			<-job.Done()
			if exit := job.Exit(); exit.Code != 0 || !exit.Done {
				t.Errorf("exit %+v", exit)
			}
		})
	}
	group.Wait()
}

// TestPWDIsTheDirectory: programs that believe the environment work where they run,
// not where the rig was started.
func TestPWDIsTheDirectory(t *testing.T) {
	b := newBench(t)
	spec := b.spec("env")
	spec.Env = append(spec.Env, "PWD=/elsewhere", "OLDPWD=/before")
	b.run(spec)
	if log := b.log(); !strings.Contains(log, "PWD="+b.dir+"\n") || strings.Contains(log, "/elsewhere") || strings.Contains(log, "/before") {
		t.Errorf("the environment is %s", log)
	}
}
