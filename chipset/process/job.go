package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gastown-chipset/chipset/chipset/process/broker"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/wording"
)

const (
	// orderTimeout bounds a write to a supervisor that does not read.
	orderTimeout = 5 * time.Second
	// endTimeout is how much longer than the grace a supervisor may take
	// to end its command, before it is taken for hung and killed.
	endTimeout = 10 * time.Second
	// maxStderr bounds what is kept of a supervisor's standard error.
	maxStderr = 4 << 10
)

// Job is a command under its supervisor. Its methods may be called by several
// goroutines at once.
type Job struct {
	spec       Spec
	supervisor *supervision
	// before is the processor time of the supervisor's earlier jobs, in seconds.
	before float64
	// host gets the supervisor back, or is nil.
	host *Host
	done chan struct{}

	mu      sync.Mutex
	exit    Exit
	failed  bool // the command could not even be tried
	killed  bool // because its supervisor was killed
	over    bool // the supervisor is gone
	lastCPU time.Duration
	// killTimer kills a supervisor that has not done as it was asked by killTime.
	killTimer *time.Timer
	killTime  time.Time
}

// start is Host.Start; a job without a host has a supervisor of its own.
func start(ctx context.Context, self string, spec Spec, host *Host) (*Job, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(self) {
		return nil, fmt.Errorf("%w: supervisor %q is not an absolute path", ErrBadSpec, self)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.ID, err)
	}
	if kept := host.take(); kept != nil {
		j, err := begin(ctx, spec, host, kept)
		if !errors.Is(err, ErrNotStarted) {
			return j, err
		}
		// Somebody may have ended it just then, with nothing started under it.
	}
	for tries := 1; ; tries++ {
		j, err := startUnder(ctx, self, spec, host, nil)
		var failed *StartError
		if !errors.As(err, &failed) || !failed.killed || tries == maxKilled {
			return j, err
		}
	}
}

// maxKilled is how many supervisors in a row may be killed before they start a job.
const maxKilled = 3

// Attend runs a command as Host.Start does, on a terminal and under a supervisor of its own. The terminal is not the
// controlling one of the command: what its keys and its window tell goes to the caller, which passes it on (Job.Signal).
func Attend(ctx context.Context, self string, spec Spec, terminal *os.File) (*Job, error) {
	spec.Attended = true
	if err := spec.check(); err != nil {
		return nil, err
	}
	return startUnder(ctx, self, spec, nil, terminal)
}

// startUnder starts a job under a new supervisor.
func startUnder(ctx context.Context, self string, spec Spec, host *Host, terminal *os.File) (*Job, error) {
	s, err := launch(self, spec, terminal)
	if err != nil {
		return nil, &StartError{ID: spec.ID, Fault: fault.OfError(fmt.Errorf("supervisor: %w", err), fault.WorktreeFailed)}
	}
	return begin(ctx, spec, host, s)
}

// begin gives a supervisor its job and waits until it has started.
func begin(ctx context.Context, spec Spec, host *Host, s *supervision) (*Job, error) {
	j := &Job{spec: spec, host: host, supervisor: s, before: s.before, done: make(chan struct{})}
	j.exit = Exit{ID: spec.ID}
	started := make(chan struct{})
	go j.follow(started)
	go j.supervisor.send(order{Run: &spec})

	select {
	case <-started:
	case <-ctx.Done():
		// Whatever hinders the supervisor would hinder a request as well.
		j.supervisor.kill()
		<-j.done
		return nil, fmt.Errorf("start %s: %w", spec.ID, ctx.Err())
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed {
		return nil, &StartError{ID: spec.ID, Fault: j.exit.Fault, killed: j.killed}
	}
	return j, nil
}

// supervision is a supervisor as its role sees it.
type supervision struct {
	cmd     *exec.Cmd
	stderr  *wording.Head
	reports *os.File
	decoder *json.Decoder
	// before is the processor time of earlier jobs, in seconds; who keeps the supervisor writes it.
	before float64

	lifelineMu sync.Mutex
	lifeline   *os.File
}

// launch starts a supervisor. terminal, where it is not nil, is for its command.
func launch(self string, spec Spec, terminal *os.File) (*supervision, error) {
	lifelineEnd, lifeline, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer lifelineEnd.Close()
	reports, reportsEnd, err := os.Pipe()
	if err != nil {
		_ = lifeline.Close()
		return nil, err
	}
	defer reportsEnd.Close()
	s := &supervision{stderr: &wording.Head{Most: maxStderr}, reports: reports, decoder: json.NewDecoder(reports), lifeline: lifeline}
	s.cmd = &exec.Cmd{
		Path:   self,
		Args:   []string{filepath.Base(self), SuperviseArg, spec.ID},
		Env:    supervisorEnv(spec),
		Dir:    "/", // so that a worktree can be removed under it
		Stdin:  lifelineEnd,
		Stdout: reportsEnd,
		Stderr: s.stderr,
		// Away from the terminal's Ctrl-C and from whoever ends the role's group.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
		WaitDelay:   time.Second,
	}
	if terminal != nil {
		s.cmd.ExtraFiles = []*os.File{terminal} // terminalFD
	}
	if err := s.cmd.Start(); err != nil {
		_ = lifeline.Close()
		_ = reports.Close()
		return nil, err
	}
	return s, nil
}

func (s *supervision) pid() int { return s.cmd.Process.Pid }

// kill ends a supervisor that does not do as it is asked. Its command dies with it.
func (s *supervision) kill() { _ = s.cmd.Process.Kill() }

// supervisorEnv marks the supervisor like its command, so that KillOrphans finds
// both. The rest of the command's environment is not for this binary; how the Go
// runtime behaves in it is decided where the role is started.
func supervisorEnv(spec Spec) []string {
	env := []string{envSupervisor + "=" + spec.ID}
	for _, name := range []string{"GOCOVERDIR", "GODEBUG", "GORACE", "GOTRACEBACK"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, entry := range spec.Env {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, envPrefix) && name != envSupervisor && name != broker.EnvAddress {
			env = append(env, entry)
		}
	}
	return env
}

// send writes a line to the supervisor. An error is ignored: if the supervisor is gone, its
// pipe of reports has ended too.
func (s *supervision) send(o order) {
	s.lifelineMu.Lock()
	defer s.lifelineMu.Unlock()
	_ = s.lifeline.SetWriteDeadline(time.Now().Add(orderTimeout))
	_ = json.NewEncoder(s.lifeline).Encode(o)
}

// end cuts the lifeline and waits until the supervisor is gone.
func (s *supervision) end() error {
	s.lifelineMu.Lock()
	_ = s.lifeline.Close()
	s.lifelineMu.Unlock()
	err := s.cmd.Wait()
	_ = s.reports.Close()
	return err
}

// follow reads the reports until the last, or until the supervisor is gone. It closes
// started at the first of them, and done when nothing is left to wait for.
func (j *Job) follow(started chan<- struct{}) {
	first := sync.OnceFunc(func() { close(started) })
	final, kept := false, false
	for !final {
		var r report
		if err := j.supervisor.decoder.Decode(&r); err != nil {
			break
		}
		final = r.Final
		kept = final && j.host != nil && !r.Leaving
		j.mu.Lock()
		j.exit, j.failed = r.Exit, r.Failed
		j.mu.Unlock()
		if !final {
			first()
		}
	}
	var err error
	if !kept {
		err = j.supervisor.end()
	}
	j.mu.Lock()
	j.over = true
	if j.killTimer != nil {
		kept = j.killTimer.Stop() && kept // else it is being killed
	}
	j.mu.Unlock()
	if kept {
		j.host.keep(j.supervisor)
	}
	if !final {
		j.supervisorLost(err)
	}
	close(j.done)
	first()
}

// supervisorLost ends what a killed supervisor left, and writes the record that it
// could not write, unless nothing has run.
func (j *Job) supervisorLost(cause error) {
	exit := j.Exit()
	if exit.PID == 0 {
		// It may have been killed between the start and its report.
		if found, ok, err := ReadExit(j.spec.Record); err == nil && ok &&
			found.ID == j.spec.ID && found.SupervisorPID == j.supervisor.pid() && !found.Done {
			exit = found
		}
	}
	session := lookEnv(j.spec.Env, EnvSession)
	match := func(env map[string]string) bool { return session != "" && env[EnvSession] == session }
	_, err := KillOrphans(context.Background(), match, min(j.spec.grace(), leftoverGrace), exit)

	never := exit.PID == 0
	exit.Code, exit.EndedAt, exit.Done = -1, state.At(time.Now()), err == nil
	exit.Error = fmt.Sprintf("the supervisor ended without a report: %v", cause)
	if text := strings.TrimSpace(j.supervisor.stderr.String()); text != "" {
		exit.Error += ": " + text
	}
	if err != nil {
		exit.Error += ": " + err.Error()
	}
	if never { // the record of an earlier run of the job stays true
		exit.Fault = fault.New(fault.WorktreeFailed, exit.Error)
	} else if err := writeRecord(j.spec.Record, exit); err != nil {
		exit.Error += ": " + err.Error()
	}
	var ended *exec.ExitError
	j.mu.Lock()
	j.exit, j.failed, j.killed = exit, never, never && errors.As(cause, &ended) && !ended.Exited()
	j.mu.Unlock()
}

// Done is closed when nothing of the command is left and its record is written.
func (j *Job) Done() <-chan struct{} { return j.done }

// Exit returns what is known: before Done who runs, after it how it went.
func (j *Job) Exit() Exit {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.exit
}

// Stop asks for the end of the command and of everything it started: TERM at once,
// and KILL after grace, at once if that is not positive. It does not wait; Done
// does. Asking again can only shorten the grace.
func (j *Job) Stop(grace time.Duration) {
	grace = max(grace, 0)
	j.mu.Lock()
	if j.over {
		j.mu.Unlock()
		return
	}
	if limit := time.Now().Add(grace + endTimeout); j.killTimer == nil {
		j.killTime = limit
		j.killTimer = time.AfterFunc(grace+endTimeout, j.supervisor.kill)
	} else if limit.Before(j.killTime) {
		j.killTime = limit
		j.killTimer.Reset(grace + endTimeout)
	}
	j.mu.Unlock()
	j.supervisor.send(order{Stop: j.spec.ID, Grace: grace})
}

// Signal sends a signal to the group of the command. One that has ended gets none.
func (j *Job) Signal(sig syscall.Signal) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.over && j.exit.PGID > 0 {
		_ = syscall.Kill(-j.exit.PGID, sig) // it may end just now
	}
}

// Activity returns the size of the log and the processor time of everything the
// command has run so far, 0 where that is not known. Growth of either is progress.
// The processor time never falls, but what nobody waited for may be missing.
func (j *Job) Activity() (bytesLogged int64, cpu time.Duration, err error) {
	if j.spec.Log != "" {
		info, statErr := os.Stat(j.spec.Log)
		switch {
		case statErr == nil:
			bytesLogged = info.Size()
		case !errors.Is(statErr, fs.ErrNotExist):
			err = fmt.Errorf("activity of %s: %w", j.spec.ID, statErr)
		}
	}
	j.mu.Lock()
	running := !j.over
	j.mu.Unlock()
	var seconds float64
	if running {
		var cpuErr error
		if seconds, cpuErr = cpuBelow(j.supervisor.pid()); cpuErr != nil {
			err = errors.Join(err, fmt.Errorf("activity of %s: %w", j.spec.ID, cpuErr))
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lastCPU = max(j.lastCPU, time.Duration((seconds-j.before)*float64(time.Second)))
	return bytesLogged, j.lastCPU, err
}
