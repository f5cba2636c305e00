package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// doubleFork is a script that leaves a process outside the group and the session of
// the command, as a daemon does; its environment is what prefix makes of it.
func doubleFork(prefix string) string {
	return "(" + prefix + " setsid sh -c 'trap \"\" TERM; echo away; while :; do sleep 0.01; done' &) ; until grep -q away log; do :; done; "
}

func TestDaemonsEndWithTheCommand(t *testing.T) {
	tests := []struct{ name, script string }{
		{"double fork", doubleFork("") + "exit 7"},
		{"nameless", doubleFork("env -i PATH=$PATH") + "exit 7"},
		{"two deep", "setsid sh -c \"" + "setsid sh -c 'echo away; exec sleep 1000' & exec sleep 1000\" & until grep -q away log; do :; done; exit 7"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			exit := b.run(b.spec("echo $$; " + test.script))
			if exit.Code != 7 {
				t.Errorf("exit %+v", exit)
			}
			if left := descendants(exit.SupervisorPID); len(left) > 0 || exit.Alive() {
				t.Errorf("left %v", left)
			}
		})
	}
}

func TestStopReachesDaemons(t *testing.T) {
	b := newBench(t)
	job := b.start(b.spec(doubleFork("") + "echo up; exec sleep 1000"))
	b.await("up")
	before := len(sessionProcesses(b.session))
	job.Stop(50 * time.Millisecond)
	if exit := b.wait(job); !exit.Stopped || exit.Signal != "SIGTERM" || before < 3 {
		t.Errorf("exit %+v, %d processes before", exit, before)
	}
}

func TestNoDescriptorIsInherited(t *testing.T) {
	b := newBench(t)
	// A descriptor that is not close-on-exec, as a shell's redirection gives one.
	file, err := os.Create(filepath.Join(b.dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	spec := b.spec("")
	spec.Argv = []string{"ls", "/proc/self/fd"}
	b.run(spec)
	if got := strings.Fields(b.log()); len(got) != 4 { // 0, 1, 2 and that of ls itself
		t.Errorf("descriptors %v", got)
	}
}

func TestSessionAndGroup(t *testing.T) {
	b := newBench(t)
	job := b.start(b.spec("exec sleep 1000"))
	exit := job.Exit()
	command, ok := readProcess(exit.PID)
	if !ok || command.pgid != exit.PID || command.session != exit.SupervisorPID || command.ppid != exit.SupervisorPID {
		t.Errorf("command %+v, exit %+v", command, exit)
	}
	if own, _ := readProcess(os.Getpid()); own.session == command.session {
		t.Error("the command is in the session of the role")
	}
	job.Stop(0)
	b.wait(job)
}

func TestTerminatedSupervisorEndsItsCommand(t *testing.T) {
	b := newBench(t)
	job := b.start(b.spec(doubleFork("") + "echo up; exec sleep 1000"))
	b.await("up")
	if err := unix.Kill(job.Exit().SupervisorPID, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if exit := b.wait(job); !exit.Stopped || exit.Signal != "SIGTERM" {
		t.Errorf("exit %+v", exit)
	}
}

func TestKilledSupervisor(t *testing.T) {
	b := newBench(t)
	job := b.start(b.spec(doubleFork("") + "sleep 1000 & echo up; exec sleep 1000"))
	b.await("up")
	if err := unix.Kill(job.Exit().SupervisorPID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	exit := b.wait(job)
	if !exit.Done || exit.Code != -1 || exit.Error == "" {
		t.Errorf("exit %+v", exit)
	}
}

func TestHungSupervisorIsKilledInTheEnd(t *testing.T) {
	b := newBench(t)
	job := b.start(b.spec("exec sleep 1000"))
	if err := unix.Kill(job.Exit().SupervisorPID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	job.Stop(time.Hour)
	job.mu.Lock()
	job.killTimer.Reset(0)
	job.mu.Unlock()
	if exit := b.wait(job); !exit.Done || exit.Code != -1 {
		t.Errorf("exit %+v", exit)
	}
}

// startRole starts a job in a process of its own, and returns that process and
// what the record says.
func (b *bench) startRole(spec Spec) (*exec.Cmd, Exit) {
	b.t.Helper()
	self, _ := os.Executable()
	text, err := json.Marshal(spec)
	if err != nil {
		b.t.Fatal(err)
	}
	role := exec.Command(self, "role")
	role.Stdin = strings.NewReader(string(text))
	out, err := role.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := role.Start(); err != nil {
		b.t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
		b.t.Fatalf("role says %q", line)
	}
	record, found, err := ReadExit(spec.Record)
	if err != nil || !found {
		b.t.Fatalf("record: found %v, %v", found, err)
	}
	return role, record
}

func TestKilledRole(t *testing.T) {
	b := newBench(t)
	spec := b.spec(doubleFork("") + "sleep 1000 & echo up; exec sleep 1000")
	role, _ := b.startRole(spec)
	b.await("up")
	_ = role.Process.Kill()
	_ = role.Wait()
	var exit Exit
	b.until("the record is final", func() bool {
		exit, _, _ = ReadExit(spec.Record)
		return exit.Done
	})
	if !exit.Orphaned || exit.Stopped || exit.Signal != "SIGTERM" {
		t.Errorf("exit %+v", exit)
	}
	b.until("the supervisor is gone", func() bool { return len(sessionProcesses(b.session)) == 0 })
}

// crash kills a role and its supervisor such that neither can tidy up.
func (b *bench) crash(role *exec.Cmd, record Exit) {
	b.t.Helper()
	if err := unix.Kill(record.SupervisorPID, unix.SIGSTOP); err != nil {
		b.t.Fatal(err)
	}
	_ = role.Process.Kill()
	_ = role.Wait()
	if err := unix.Kill(record.SupervisorPID, unix.SIGKILL); err != nil {
		b.t.Fatal(err)
	}
	b.until("the command has died with its supervisor", func() bool { return !record.Alive() })
}

func (b *bench) ours(env map[string]string) bool { return env[EnvSession] == b.session }

func TestKillOrphans(t *testing.T) {
	b := newBench(t)
	role, record := b.startRole(b.spec(doubleFork("") + "sleep 1000 & echo up; exec sleep 1000"))
	b.await("up")
	b.crash(role, record)
	left := len(sessionProcesses(b.session))
	if left < 2 {
		t.Fatalf("%d orphans: the test is void", left)
	}
	killed, err := KillOrphans(t.Context(), b.ours, 50*time.Millisecond)
	if err != nil || killed < 2 {
		t.Errorf("killed %d of %d, %v", killed, left, err)
	}
	if left := sessionProcesses(b.session); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if killed, err := KillOrphans(t.Context(), b.ours, 0); killed != 0 || err != nil {
		t.Errorf("a second time: %d, %v", killed, err)
	}
}

func TestKillOrphansByRecord(t *testing.T) {
	b := newBench(t)
	role, record := b.startRole(b.spec("env -i sleep 1000 & echo up; exec sleep 1000"))
	nameless := 0
	b.await("up")
	b.until("the background command runs", func() bool {
		table, _ := processTable()
		for _, p := range table {
			if p.pgid == record.PGID && p.pid != record.PID {
				if env, _ := environ(p.pid); env[EnvSession] == "" {
					nameless = p.pid
				}
			}
		}
		comm, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(nameless), "comm"))
		return string(comm) == "sleep\n"
	})
	orphan, alive := readProcess(nameless)
	t.Cleanup(func() { _ = orphan.signal(unix.SIGKILL) })
	b.crash(role, record)
	alive = alive && orphan.alive()
	if !alive {
		t.Fatal("the orphan is gone: the test is void")
	}
	for name, changed := range map[string]func(*Exit){
		"finished":         func(e *Exit) { e.Done = true },
		"of another boot":  func(e *Exit) { e.BootID = "another" },
		"of a later start": func(e *Exit) { e.StartTime = orphan.start + 1 },
		"without session":  func(e *Exit) { e.SupervisorPID = 0 },
	} {
		other := record
		changed(&other)
		if killed, err := KillOrphans(t.Context(), nil, 0, other); killed != 0 || err != nil || !orphan.alive() {
			t.Errorf("a record %s: killed %d, %v", name, killed, err)
		}
	}
	if killed, err := KillOrphans(t.Context(), nil, 50*time.Millisecond, record); killed != 1 || err != nil || orphan.alive() {
		t.Errorf("killed %d, %v", killed, err)
	}
}

func TestKillOrphansTakesTheSupervisorAlong(t *testing.T) {
	b := newBench(t)
	spec := b.spec(doubleFork("") + "echo up; exec sleep 1000")
	job := b.start(spec)
	b.await("up")
	if _, err := KillOrphans(t.Context(), b.ours, patience); err != nil {
		t.Error(err)
	}
	// The supervisor has had the time to say how it went.
	if exit := b.wait(job); !exit.Done || exit.Signal != "SIGTERM" {
		t.Errorf("exit %+v", exit)
	}
}

func TestKillOrphansHeedsItsContext(t *testing.T) {
	b := newBench(t)
	job := b.start(b.spec("trap '' TERM; echo up; while :; do sleep 0.01; done"))
	b.await("up")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	command := func(env map[string]string) bool { return b.ours(env) && env[envSupervisor] == "" }
	if _, err := KillOrphans(ctx, command, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	job.Stop(0)
	b.wait(job)
}

func TestKillOrphansSparesItselfAndItsAncestors(t *testing.T) {
	b := newBench(t)
	self, _ := os.Executable()
	spec := b.spec("sleep 1000 & \"$0\" hunter; echo spared; exit 0")
	spec.Argv = append(spec.Argv, self)
	exit := b.run(spec)
	if exit.Code != 0 || !strings.HasPrefix(b.log(), "1 <nil>\n") || !strings.HasSuffix(b.log(), "spared\n") {
		t.Errorf("exit %+v, log %q", exit, b.log())
	}
}

func TestActivity(t *testing.T) {
	b := newBench(t)
	job := b.start(b.spec("echo up; (setsid sh -c 'while :; do :; done' &); exec sleep 1000"))
	b.until("the log and the processor time have grown", func() bool {
		logged, cpu, err := job.Activity()
		if err != nil {
			t.Fatal(err)
		}
		return logged == 3 && cpu >= 20*time.Millisecond
	})
	job.Stop(0)
	b.wait(job)
	if logged, cpu, err := job.Activity(); logged != 3 || cpu < 20*time.Millisecond || err != nil {
		t.Errorf("after the end: %d bytes, %v, %v", logged, cpu, err)
	}
}

func TestNothingLeaks(t *testing.T) {
	b := newBench(t)
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	b.run(b.spec("true")) // what the runtime keeps open for good, such as its poller
	fds, goroutines := descriptors(), runtime.NumGoroutine()
	for range 5 {
		job := b.start(b.spec("exec sleep 1000"))
		job.Stop(time.Hour)
		b.wait(job)
	}
	if got := descriptors(); got > fds {
		t.Errorf("%d descriptors, were %d", got, fds)
	}
	b.until("the goroutines have ended", func() bool { return runtime.NumGoroutine() <= goroutines })
	table, err := processTable()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range table {
		if p.ppid == os.Getpid() && p.dead {
			t.Errorf("zombie %+v", p)
		}
	}
}

// A number that has changed hands is not signalled.
func TestSignalKnowsItsProcess(t *testing.T) {
	sleep := exec.Command("sleep", "1000")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	p, ok := readProcess(sleep.Process.Pid)
	if !ok {
		t.Fatal("no process")
	}
	other := p
	other.start++
	if err := other.signal(unix.SIGKILL); !errors.Is(err, unix.ESRCH) || !p.alive() {
		t.Errorf("a later process: %v", err)
	}
	if err := p.signal(unix.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = sleep.Wait()
	if err := p.signal(unix.SIGKILL); !errors.Is(err, unix.ESRCH) {
		t.Errorf("after its end: %v", err)
	}
}
