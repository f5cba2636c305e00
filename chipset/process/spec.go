package process

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/fault"
)

const (
	// EnvSession is the variable that names a worker's session, and by which
	// its processes are found again after a crash.
	EnvSession = "CHIPSET_SESSION"

	// envSupervisor marks the supervisor itself; its value is the job's ID.
	envSupervisor = "CHIPSET_SUPERVISOR"

	// envPrefix is what the supervisor keeps of the command's environment.
	envPrefix = "CHIPSET_"

	// DefaultGrace is the time between TERM and KILL when a Spec names none.
	DefaultGrace = 5 * time.Second

	// leftoverGrace bounds the grace of what a command that has exited by
	// itself leaves in the background: its work is over, nobody waits for it.
	leftoverGrace = time.Second
)

var (
	// ErrBadSpec is returned by Start for a Spec that breaks its own rules.
	ErrBadSpec = errors.New("invalid job")
	// ErrNotStarted is wrapped by the StartError that Start returns when the command
	// could not even be tried.
	ErrNotStarted = errors.New("job not started")
	// ErrBadRecord is returned by ReadExit for a file that is not an exit record.
	ErrBadRecord = errors.New("invalid exit record")
)

// StartError is returned by Start when the command could not even be tried: its
// directory, its log, its input or its record is not usable.
type StartError struct {
	// ID is that of the job.
	ID string
	// Fault says why.
	Fault fault.Fault

	// killed: somebody killed the supervisor before it started anything.
	killed bool
}

func (e *StartError) Error() string {
	return fmt.Sprintf("%v: %s: %s", ErrNotStarted, e.ID, e.Fault.Reason)
}

// Unwrap returns ErrNotStarted.
func (e *StartError) Unwrap() error { return ErrNotStarted }

// Spec says what to run. All paths are absolute, and their directories exist: the
// supervisor makes no directories.
type Spec struct {
	// ID names the job, usually by its session; it must be a legal ID.
	ID string `json:"id"`
	// Argv is executed as it stands, without a shell. A name without a slash is
	// looked up in the PATH of Env.
	Argv []string `json:"argv"`
	// Dir is the command's working directory.
	Dir string `json:"dir"`
	// Env is the command's complete environment but for PWD, which is Dir; nothing
	// is inherited. It should hold EnvSession, or KillOrphans can't tell the command's
	// processes.
	Env []string `json:"env"`
	// Stdin is the file the command reads, "" for the null device.
	Stdin string `json:"stdin"`
	// Log receives standard output and standard error, appended; "" discards.
	// The command writes to it directly, so nothing is lost with the supervisor.
	Log string `json:"log"`
	// Record is the file of the exit record.
	Record string `json:"record"`
	// Broker is what the command may ask of its rig, nil for nothing.
	Broker *Broker `json:"broker,omitempty"`
	// Settle makes what the command left below Dir durable before the final record says
	// that it is (Exit.Settled).
	Settle bool `json:"settle,omitempty"`
	// Attended runs the command on the terminal that Attend is given, instead of on Stdin and Log.
	Attended bool `json:"attended,omitempty"`
	// Sandbox restricts the command, which gets its own TMPDIR; nil runs it as it is. The command can also write to
	// Log and read Stdin by their names, as /dev/stderr and /dev/stdin do.
	Sandbox *sandbox.Profile `json:"sandbox,omitempty"`
	// Timeout ends the command after that time on a monotonic clock; 0 is never.
	Timeout time.Duration `json:"timeout"`
	// Grace is the time between TERM and KILL; 0 is DefaultGrace.
	Grace time.Duration `json:"grace"`
	// Limits bound what the command and all that it starts may use up.
	Limits Limits `json:"limits,omitzero"`
}

// Limits are looked at every now and then; 0 is no bound. A command over one of them is ended (Exit.Over), but for Log.
type Limits struct {
	// Disk bounds in bytes what Dir and the sandbox's TMPDIR take on the disk.
	Disk int64 `json:"disk,omitempty"`
	// Log bounds what Spec.Log takes: of a longer one only the end is kept, where the system can do that.
	Log int64 `json:"log,omitempty"`
	// Memory bounds in bytes what all processes hold, Tasks how many processes and threads there are. Both are known on Linux
	// only, and a command over one of them is killed at once.
	Memory int64 `json:"memory,omitempty"`
	Tasks  int   `json:"tasks,omitempty"`
}

// String says in a few words what is bounded on this system, "" for nothing.
func (l Limits) String() string {
	var all []string
	if processesKnown && l.Memory > 0 {
		all = append(all, units.BytesSize(float64(l.Memory))+" of memory")
	}
	if processesKnown && l.Tasks > 0 {
		all = append(all, fmt.Sprintf("%d processes and threads", l.Tasks))
	}
	if l.Disk > 0 {
		all = append(all, units.BytesSize(float64(l.Disk))+" on the disk")
	}
	return strings.Join(all, ", ")
}

// Broker says how the supervisor runs what the command asks for: its own program with
// BrokeredArg, the command line of the caller behind that, and an environment that the
// caller has no part in.
type Broker struct {
	// Address is that of the socket; the command finds it in broker.EnvAddress.
	Address string `json:"address"`
	// Dir is the working directory.
	Dir string `json:"dir"`
	// Env is the environment, without what names the agent: that is taken from the
	// variables of Spec.Env that begin with CHIPSET_.
	Env []string `json:"env"`
	// MaxCalls is how many commands are run; further ones are refused and counted (Exit.Refused). 0 is no bound.
	MaxCalls int `json:"max_calls,omitempty"`
}

// check returns an error that wraps ErrBadSpec and names the offending field.
func (s Spec) check() error {
	if err := state.CheckID(s.ID); err != nil {
		return fmt.Errorf("%w: ID: %w", ErrBadSpec, err)
	}
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return fmt.Errorf("%w: no command", ErrBadSpec)
	}
	for _, text := range append(append([]string{}, s.Argv...), s.Env...) {
		if strings.ContainsRune(text, 0) {
			return fmt.Errorf("%w: NUL byte in an argument or the environment", ErrBadSpec)
		}
	}
	paths := []struct {
		name, value string
		optional    bool
	}{{"Dir", s.Dir, false}, {"Record", s.Record, false}, {"Log", s.Log, true}, {"Stdin", s.Stdin, true}, {"Sandbox.Temp", s.temp(), s.Sandbox == nil}}
	if s.Broker != nil {
		paths = append(paths, struct {
			name, value string
			optional    bool
		}{"Broker.Dir", s.Broker.Dir, false})
	}
	for _, path := range paths {
		if path.optional && path.value == "" {
			continue
		}
		if !filepath.IsAbs(path.value) || strings.ContainsRune(path.value, 0) {
			return fmt.Errorf("%w: %s %q is not an absolute path", ErrBadSpec, path.name, path.value)
		}
	}
	if s.Timeout < 0 || s.Grace < 0 {
		return fmt.Errorf("%w: negative duration", ErrBadSpec)
	}
	return nil
}

func (s Spec) temp() string {
	if s.Sandbox == nil {
		return ""
	}
	return s.Sandbox.Temp
}

func (s Spec) grace() time.Duration {
	if s.Grace == 0 {
		return DefaultGrace
	}
	return s.Grace
}

// lookEnv returns the value of name in a list of NAME=VALUE; the last one counts,
// as it does for exec(2) users such as a shell.
func lookEnv(env []string, name string) string {
	value := ""
	for _, entry := range env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}
