package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/process/broker"
	"github.com/gastown-chipset/chipset/chipset/process/proxy"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/fault"
)

// SuperviseArg is the hidden argument with which the binary becomes a supervisor.
// The caller of Supervise dispatches on it before anything else: what it does first
// is paid for at the start of every command.
const SuperviseArg = "supervise"

// terminalFD is the descriptor of the terminal in the supervisor of an attended command.
const terminalFD = 3

// killInterval is the time between two sweeps of KILL over what is left. One is
// nearly always enough: further ones are for processes forked during the sweep.
const killInterval = 20 * time.Millisecond

// order is what a role sends down the lifeline: a job, or the wish that one ends.
type order struct {
	Run *Spec `json:"run,omitempty"`
	// Stop is the ID of a job, so that a wish that comes late does not hit the next one.
	Stop string `json:"stop,omitempty"`
	// Grace is the time until KILL; the command gets its TERM at once.
	Grace time.Duration `json:"grace,omitempty"`

	lost error // the lifeline is, and why
}

// report is what a supervisor tells its role: once when the command runs, and once
// at the end. Failed means that the command could not even be tried.
type report struct {
	Exit   Exit `json:"exit"`
	Final  bool `json:"final"`
	Failed bool `json:"failed"`
	// Leaving means that the supervisor takes no further job.
	Leaving bool `json:"leaving,omitempty"`
}

// childEvent comes from the goroutine that waits for children.
type childEvent struct {
	exited bool // the command itself
	status unix.WaitStatus
	gone   bool // nothing of it is left
	over   bool // processes come and go faster than its limit of tasks lets them
}

// supervisor is the state of one job in a supervisor process.
type supervisor struct {
	spec  Spec
	exit  Exit
	child *child
	group *cgroup
	// broker is nil without Spec.Broker; calls counts the commands that it was asked to run.
	broker *broker.Server
	calls  atomic.Int64
	// proxy is nil where the command has no network of its own.
	proxy *proxy.Proxy
	dir   *os.File // Spec.Dir, opened before the command ran; nil without Spec.Settle

	exited   bool      // the command itself has ended
	ending   bool      // TERM has been sent
	deadline time.Time // when KILL is due, while ending
	kill     *time.Timer
	orphaned bool // nobody will send another job
}

// Supervise is the body of the hidden command: it reads jobs from stdin and runs one
// after the other, until stdin ends. It ends everything a job started when the command
// ends, when it is asked to, when the time is up, or when stdin ends; the next job finds
// nothing of it. It reports on standard output and in the record, and returns the exit code
// of the supervisor, which says nothing of the commands'. It may be called once in a
// process, by its main goroutine.
func Supervise(stdin io.Reader) int {
	// The parent death signal of the command is tied to the thread that forks.
	runtime.LockOSThread()
	signals := make(chan os.Signal, 8)
	// PIPE is among them so that a report to a role that is gone is an error and
	// not the end of the supervisor.
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE)
	prepareSupervisor()

	lifeline := make(chan order)
	go readOrders(json.NewDecoder(stdin), lifeline)
	for code := 0; ; {
		select {
		case o := <-lifeline:
			if o.lost != nil && !errors.Is(o.lost, io.EOF) {
				var s supervisor
				return s.fail(fmt.Errorf("read job: %w", o.lost))
			}
			if o.lost != nil {
				return code
			}
			if o.Run == nil {
				continue // a wish that came too late
			}
			s := &supervisor{spec: *o.Run}
			if code = s.run(lifeline, signals); s.orphaned {
				return code
			}
		case sig := <-signals:
			if sig != unix.SIGPIPE {
				return code
			}
		}
	}
}

// run runs one job to its end.
func (s *supervisor) run(lifeline <-chan order, signals <-chan os.Signal) int {
	if err := s.spec.check(); err != nil {
		return s.fail(err)
	}
	s.exit = Exit{
		ID: s.spec.ID, Attended: s.spec.Attended, BootID: BootID(), BootedAt: state.At(bootTime()), Mount: mountOf(s.spec.Dir),
		SupervisorPID: os.Getpid(), SupervisorStart: startTime(os.Getpid()),
	}
	if s.spec.Settle {
		var err error
		if s.dir, err = os.Open(s.spec.Dir); err != nil {
			return s.fail(err)
		}
		defer s.dir.Close()
	}
	if err := s.voidRecord(); err != nil {
		return s.fail(err)
	}
	if err := s.listen(); err != nil {
		return s.fail(err)
	}
	defer s.unlisten()
	s.group = newCgroup(s.spec.ID, s.spec.Limits)
	defer s.group.remove()
	if code, started := s.start(); !started {
		return code
	}
	events := make(chan childEvent, 4)
	go s.child.wait(events)
	s.serve()
	s.loop(events, lifeline, signals)

	s.unlisten()
	s.finish()
	tell(report{Exit: s.exit, Final: true, Leaving: s.orphaned})
	return 0
}

// voidRecord replaces the record of an earlier run of the same job: what that one vouches for changes
// from now on.
func (s *supervisor) voidRecord() error {
	if _, err := os.Lstat(s.spec.Record); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return writeRecord(s.spec.Record, s.exit)
}

// finish writes the final record, after what it vouches for is durable.
func (s *supervisor) finish() {
	s.trimLog()
	if s.exit.Over == "" && s.exit.Code != 0 {
		s.exit.Over = s.group.exceeded() // since the last look
	}
	s.closeNetwork()
	if most := s.maxCalls(); most > 0 {
		s.exit.Refused = int(max(0, s.calls.Load()-most))
	}
	s.settle()
	s.exit.Done = true
	if err := writeRecord(s.spec.Record, s.exit); err != nil {
		s.exit.Error = err.Error()
	}
	s.removeTemp()
}

// settle makes what the command left durable. The folder was opened before the command
// ran, so the kernel reports every write that has failed since then.
func (s *supervisor) settle() {
	if s.dir == nil {
		return
	}
	if err := syncFileSystem(s.dir); err != nil {
		s.exit.Error = "what the command left may not be on the disk: " + err.Error()
		return
	}
	s.exit.Settled = true
}

// fail reports that the command could not even be tried.
func (s *supervisor) fail(err error) int {
	s.exit.ID, s.exit.Error, s.exit.Done, s.exit.Code = s.spec.ID, err.Error(), true, -1
	s.exit.Fault = fault.OfError(err, fault.WorktreeFailed)
	tell(report{Exit: s.exit, Final: true, Failed: true})
	return 1
}

// tell reports to the role. It may be gone, and then the record alone speaks.
func tell(r report) { _ = json.NewEncoder(os.Stdout).Encode(r) }

// readOrders passes on orders until the lifeline is lost. Anything but an order is
// a loss: whoever holds the other end is no role.
func readOrders(decoder *json.Decoder, orders chan<- order) {
	for {
		var o order
		if err := decoder.Decode(&o); err != nil {
			orders <- order{lost: err}
			return
		}
		orders <- o
	}
}

// start runs the command and writes the record of it. It returns false and the
// supervisor's exit code when nothing runs.
func (s *supervisor) start() (int, bool) {
	files, err := s.openFiles()
	if err != nil {
		return s.fail(err), false
	}
	defer func() {
		for _, file := range files {
			_ = file.Close()
		}
	}()
	s.exit.StartedAt = state.At(time.Now())
	s.child, err = s.exec(files)
	if err != nil {
		return s.notExecuted(err), false
	}
	s.exit.PID, s.exit.PGID = s.child.pid, s.child.pid
	s.exit.StartTime = startTime(s.child.pid)
	if err := writeRecord(s.spec.Record, s.exit); err != nil {
		// Without the record a crash would leave the command unknown.
		s.child.abandon()
		return s.fail(err), false
	}
	tell(report{Exit: s.exit})
	return 0, true
}

// notExecuted ends a job whose command could not be executed, with the exit code
// that a shell has for that, or as one that a signal has ended. What an earlier run of the job left is durable then as well.
func (s *supervisor) notExecuted(err error) int {
	var early *endedEarly
	if errors.As(err, &early) {
		s.exit.setStatus(early.status, time.Now())
	} else {
		s.refused(err)
	}
	s.closeNetwork()
	s.removeTemp()
	s.settle()
	s.exit.Error, s.exit.Done = err.Error(), true
	if err := writeRecord(s.spec.Record, s.exit); err != nil {
		return s.fail(err)
	}
	tell(report{Exit: s.exit, Final: true})
	return 0
}

// refused fills in why the command was not executed.
func (s *supervisor) refused(err error) {
	code := 126
	if notFound(err) {
		code = 127
	}
	s.exit.setCode(code)
	s.exit.EndedAt = state.At(time.Now())
	s.exit.Fault = fault.OfError(err, fault.ClientRefused)
	switch {
	case errors.Is(err, unix.E2BIG): // what it is told is too long, and that is the work
		s.exit.Fault = fault.Fault{}
	case code == 127:
		s.exit.Fault = fault.New(fault.ClientMissing, fault.ClientMissing.Phrase()+": "+err.Error())
	case errors.Is(err, fs.ErrPermission): // the file itself, not what it works on
		s.exit.Fault = fault.New(fault.ClientRefused, fault.ClientRefused.Phrase()+": "+err.Error())
	}
}

// openFiles opens standard input, output and error of the command.
func (s *supervisor) openFiles() ([]*os.File, error) {
	if info, err := os.Stat(s.spec.Dir); err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("working directory: %w", &fs.PathError{Op: "chdir", Path: s.spec.Dir, Err: unix.ENOTDIR})
	}
	if s.spec.Attended {
		unix.CloseOnExec(terminalFD)
		terminal := os.NewFile(terminalFD, "terminal")
		return []*os.File{terminal, terminal}, nil
	}
	in, err := openRegular(s.spec.Stdin, os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	out, err := openRegular(s.spec.Log, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("log: %w", err)
	}
	return []*os.File{in, out}, nil
}

// openRegular opens a regular file, or the null device for "". A link, a FIFO or a
// terminal in its place is refused without being waited for.
func openRegular(path string, flags int) (*os.File, error) {
	if path == "" {
		return os.OpenFile(os.DevNull, os.O_RDWR, 0) //nolint:forbidigo // the null device is not a file
	}
	flags |= unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY
	file, err := os.OpenFile(path, flags, 0o600) //nolint:forbidigo // a transcript is appended to by the command itself
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// exec starts the command in a process group of its own.
func (s *supervisor) exec(files []*os.File) (*child, error) {
	path, err := lookPath(s.spec.Argv[0], s.spec.Dir, lookEnv(s.spec.Env, "PATH"))
	if err != nil {
		return nil, err
	}
	in, out := files[0].Fd(), files[1].Fd()
	attr := &syscall.ProcAttr{
		Dir:   s.spec.Dir,
		Env:   inDirectory(s.spec.Env, s.spec.Dir),
		Files: []uintptr{in, out, out},
		Sys:   childAttributes(),
	}
	if s.spec.Sandbox != nil {
		return s.execBoxed(path, attr)
	}
	pid, err := s.group.start(path, s.spec.Argv, attr)
	if err != nil {
		return nil, &fs.PathError{Op: "exec", Path: path, Err: err}
	}
	return s.follow(pid), nil
}

// loop waits until nothing of the command is left.
func (s *supervisor) loop(events <-chan childEvent, lifeline <-chan order, signals <-chan os.Signal) {
	var timeout <-chan time.Time
	if s.spec.Timeout > 0 {
		timer := time.NewTimer(s.spec.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	over, stopWatch := s.watch()
	defer stopWatch()
	s.kill = time.NewTimer(time.Hour)
	s.kill.Stop()
	defer s.kill.Stop()
	for {
		select {
		case event := <-events:
			if event.exited {
				s.exited = true
				s.exit.setStatus(event.status, time.Now())
			}
			if event.gone {
				return
			}
			if event.exited {
				s.end(nil, min(s.spec.grace(), leftoverGrace))
			}
			if event.over {
				s.endOver(OverTasks)
			}
		case o := <-lifeline:
			if o.lost != nil {
				lifeline, s.orphaned = nil, true
				s.end(&s.exit.Orphaned, s.spec.grace())
			} else if o.Stop == s.spec.ID {
				s.end(&s.exit.Stopped, o.Grace)
			}
		case sig := <-signals:
			if sig != unix.SIGPIPE {
				s.orphaned = true
				s.end(&s.exit.Stopped, s.spec.grace())
			}
		case what := <-over:
			s.endOver(what)
		case <-timeout:
			s.end(&s.exit.TimedOut, s.spec.grace())
		case <-s.kill.C:
			s.child.signal(unix.SIGKILL)
			s.kill.Reset(killInterval)
		}
	}
}

// endOver ends a command that has gone over a limit.
func (s *supervisor) endOver(what string) {
	if !s.ending && !s.exited {
		s.exit.Over = what
	}
	grace := s.spec.grace()
	if what != OverDisk {
		grace = 0 // by the end of it nothing would be left for others
	}
	s.end(nil, grace)
}

// end begins to end the command for a cause, or brings the KILL forward. Only the
// first cause counts, and none once the command has ended by itself.
func (s *supervisor) end(cause *bool, grace time.Duration) {
	deadline := time.Now().Add(max(grace, 0))
	if !s.ending {
		s.ending = true
		if cause != nil && !s.exited {
			*cause = true
		}
		if grace > 0 {
			s.child.signal(unix.SIGTERM)
			// A stopped process would sleep through its TERM.
			s.child.signal(unix.SIGCONT)
		}
	} else if !deadline.Before(s.deadline) {
		return
	}
	s.deadline = deadline
	s.kill.Reset(time.Until(deadline))
}

// inDirectory makes an environment say where the command runs. Shells and some
// programs believe PWD more than the kernel, and would work where the rig was
// started.
func inDirectory(env []string, dir string) []string {
	kept := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		return strings.HasPrefix(entry, "PWD=") || strings.HasPrefix(entry, "OLDPWD=")
	})
	return append(kept, "PWD="+dir)
}

// InSession reports whether this process descends from a supervisor of the rig in a folder:
// it is a worker's then, or a test's, whatever its environment says. It is known only on Linux.
func InSession(rigDir string) bool {
	return AnyAncestor(func(env map[string]string) bool { return env[envSupervisor] != "" && env["CHIPSET_DIR"] == rigDir })
}
