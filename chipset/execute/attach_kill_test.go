package execute

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// attachArg makes this binary a person's attach.
const attachArg = "attach"

// beAttach takes the session of the polecat in a rig over.
func beAttach(dir string) int {
	r, err := rig.Open(context.Background(), dir, time.Now)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	letWrite(r)
	self, _ := os.Executable()
	terminal, _ := os.Open(os.DevNull)
	p := NewPolecat(Agent{Rig: r, ID: alpha, Session: state.NewSessionID(), Self: self, Say: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }})
	if err := p.Attach(context.Background(), terminal); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// siblings are a worker and a person's client that do what files in a folder say, and tell there when they run side by side.
type siblings struct {
	*kennel
	signs string
	calls func() []string
	// attach is the person's process, release what holds it up; both may be nil.
	attach  *exec.Cmd
	release func()
}

func newSiblings(t *testing.T) *siblings {
	t.Helper()
	s := &siblings{signs: t.TempDir()}
	run := `S="` + s.signs + `"; wait_for() { until test -e "$S/$1"; do sleep 0.02; done; }
exec 9>>"$S/lock"; flock -n 9 || touch "$S/two" # the lock ends with its process, however that ends
case "$*" in *--settings*) ;; *) touch "$S/hand"; wait_for go; exit ;; esac
touch "$S/early"; wait_for begin
` + begins + "echo half > half.txt; wait_for finish\n" + commits + finished
	s.kennel, s.calls = fakeClient(t, "", run, run, run, run)
	return s
}

func (s *siblings) sign(name string) bool {
	_, err := os.Stat(filepath.Join(s.signs, name))
	return err == nil
}

func (s *siblings) let(names ...string) {
	s.t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(s.signs, name), nil, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}

// await waits for what other processes do alone: the polecat does nothing meanwhile.
func (s *siblings) await(what string, done func() bool) {
	s.t.Helper()
	for until := time.Now().Add(polecatPatience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			s.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// takeOver begins an attach in a process of its own. It returns what that says first.
func (s *siblings) takeOver() (line <-chan string) {
	s.t.Helper()
	s.attach = exec.Command(s.p.Self, attachArg, s.dir)
	out, err := s.attach.StdoutPipe()
	if err == nil {
		err = s.attach.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	lines := make(chan string, 100)
	go func() {
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- scanner.Text()
		}
		close(lines)
	}()
	return lines
}

func (s *siblings) works() {
	s.t.Helper()
	s.let("begin")
	s.until("the worker works", s.known)
}

func (s *siblings) exit() process.Exit {
	x, _, err := s.rig.WorkerExit(s.hook().WorkItem.Session)
	if err != nil {
		s.t.Error(err)
	}
	return x
}

// TestAttachKilled: whoever is killed at whichever step of an attach, one worker goes on with the same session afterwards, none runs
// beside the person's client, and nothing is charged.
func TestAttachKilled(t *testing.T) {
	held := func(s *siblings) {
		s.works()
		s.takeOver()
		s.until("the person has it", func() bool { return s.sign("hand") })
	}
	for _, tt := range []struct {
		name    string
		step    func(s *siblings)
		victims []string
	}{
		{"before the lease", func(s *siblings) {
			if line := <-s.takeOver(); !strings.Contains(line, "waiting") {
				t.Errorf("it says %q", line)
			}
		}, []string{"attach", "rig", "both"}},
		{"with the lock alone", func(s *siblings) {
			s.works()
			lock, err := s.rig.Tree.Lock(t.Context(), state.LockHook, string(alpha), hook.Dir)
			if err != nil {
				t.Fatal(err)
			}
			s.release = lock.Unlock
			s.takeOver()
			s.await("it has the lock", func() bool { return s.rig.IsLent(alpha) })
		}, []string{"attach", "rig", "both"}},
		{"while the worker is being stopped", func(s *siblings) {
			s.works()
			s.takeOver()
			s.await("the lease is on the hook", func() bool { return s.hook().WorkItem.Lease != nil })
		}, []string{"attach", "rig", "both"}},
		{"while it is held", held, []string{"attach", "client", "rig", "both"}},
		{"while it is handed back", func(s *siblings) {
			held(s)
			if err := s.attach.Process.Signal(unix.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			s.let("go")
			s.await("the client has ended", func() bool { x := s.exit(); return x.Attended && x.Done })
		}, []string{"attach", "rig", "both"}},
	} {
		for _, victim := range tt.victims {
			t.Run(tt.name+"/"+victim, func(t *testing.T) {
				t.Parallel()
				s := newSiblings(t)
				rec := s.sling("do it")
				s.until("the client starts", func() bool { return s.sign("early") })
				tt.step(s)
				s.kill(victim)
				s.let("begin", "go", "finish")
				s.until("it is retired", s.retired(rec.AssignmentID))
				_ = s.attach.Wait() // however it ended
				for i, call := range s.calls() {
					if i > 0 && tt.name != "before the lease" && !strings.Contains(call, "--resume sess-1") {
						t.Errorf("call %d: %q", i, call)
					}
				}
				if b := s.bead(rec.BeadID); b.Status != bead.Done || b.Attempts+b.Restarts != 0 || s.sign("two") {
					t.Errorf("bead is %s: %s, %s; two at a time: %t", b.Status, b.CloseReason, b.FailureCounts(), s.sign("two"))
				}
				if s.rig.IsLent(alpha) || s.hook().WorkItem != nil && s.hook().WorkItem.Lease != nil {
					t.Error("the lease is left")
				}
			})
		}
	}
}

// kill ends one of those who take part, or rig and attach, and lets the others go on.
func (s *siblings) kill(victim string) {
	s.t.Helper()
	switch victim {
	case "attach", "both":
		if err := s.attach.Process.Kill(); err != nil {
			s.t.Error(err)
		}
	case "client":
		if err := unix.Kill(s.exit().PID, unix.SIGKILL); err != nil {
			s.t.Error(err)
		}
	}
	if s.release != nil {
		s.release()
	}
	if victim == "rig" || victim == "both" {
		s.crash()
	}
	_ = s.attach.Process.Signal(unix.SIGCONT)
}
