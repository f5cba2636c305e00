package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
)

// BoxArg is the hidden argument with which the binary becomes a command in a sandbox:
//
//	chipset box -- COMMAND
//
// Only a supervisor can start it. As with SuperviseArg, the caller of Box dispatches on it before anything else.
const BoxArg = "box"

// boxLink is the descriptor on which a box receives its order and answers. The execution of the command closes it.
const boxLink = 3

// boxOrder is the message of a supervisor to its box.
type boxOrder struct {
	Profile sandbox.Profile `json:"profile"`
	// Path is the file to execute.
	Path string `json:"path"`
	// Listen are addresses of its own network on which the supervisor wants to listen; empty where it has none.
	Listen []string `json:"listen,omitempty"`
}

// boxAnswer is the message of a box to its supervisor: first that it is restricted, then, if execution failed, why.
type boxAnswer struct {
	Restricted bool   `json:"restricted,omitempty"`
	Error      string `json:"error,omitempty"`
	// Errno is why execve(2) failed, or 0.
	Errno syscall.Errno `json:"errno,omitempty"`
}

// Box is the body of the hidden command: it restricts this process as its supervisor says and executes args, which
// are "--" and the command. It returns, with the exit code, only when that has failed. It may be called once in a
// process, by its main goroutine.
func Box(args []string) int {
	// The kernel restricts threads, and the one that executes the command becomes the process.
	runtime.LockOSThread()
	unix.CloseOnExec(boxLink)
	link := os.NewFile(boxLink, "supervisor")
	var order boxOrder
	if err := json.NewDecoder(link).Decode(&order); err != nil || len(args) < 2 {
		fmt.Fprintln(os.Stderr, "chipset box is started by a rig only")
		return 1
	}
	answer := json.NewEncoder(link)
	if err := handOver(order.Listen); err != nil {
		_ = answer.Encode(boxAnswer{Error: err.Error()})
		return 1
	}
	path, argv, gate, err := order.Profile.Enter(order.Path, args[1:])
	if err != nil {
		_ = answer.Encode(boxAnswer{Error: err.Error()})
		return 1
	}
	text, err := json.Marshal(boxAnswer{Restricted: true})
	if err != nil || sendFiles(text, gate) != nil {
		return 1 // the supervisor is gone
	}
	err = syscall.Exec(path, argv, os.Environ())
	var errno syscall.Errno
	_ = errors.As(err, &errno)
	_ = answer.Encode(boxAnswer{Error: err.Error(), Errno: errno})
	return 1
}

// execBoxed starts a command in its sandbox and waits until it is executed.
func (s *supervisor) execBoxed(path string, attr *syscall.ProcAttr) (*child, error) {
	if err := s.makeTemp(); err != nil {
		return nil, err
	}
	attr.Env = append(attr.Env, "TMPDIR="+s.spec.Sandbox.Temp)
	if err := s.isolate(attr); err != nil {
		return nil, err
	}
	ends, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "box"), os.NewFile(uintptr(ends[1]), "box")
	defer ours.Close()
	defer theirs.Close()
	self, err := ownProgram()
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	attr.Files = append(attr.Files, theirs.Fd())
	pid, err := s.group.start(self, append([]string{"chipset", BoxArg, "--"}, s.spec.Argv...), attr)
	if err != nil {
		return nil, &fs.PathError{Op: "exec", Path: self, Err: err}
	}
	_ = theirs.Close()
	c := s.follow(pid)
	err = s.awaitBox(ours, path)
	if err == nil {
		return c, nil
	}
	if status := c.abandon(); errors.Is(err, errBoxEnded) && status.Signaled() {
		return nil, &endedEarly{status}
	}
	return nil, err
}

// errBoxEnded means that a box is gone, and has not said why.
var errBoxEnded = errors.New("it ended before the command began")

// endedEarly means that somebody ended a box before the command began: that says nothing of the command.
type endedEarly struct{ status unix.WaitStatus }

func (e *endedEarly) Error() string {
	return "sandbox: " + errBoxEnded.Error() + ": " + unix.SignalName(e.status.Signal())
}

// awaitBox gives a box its order and waits until it has executed the command.
func (s *supervisor) awaitBox(link *os.File, path string) error {
	profile := *s.spec.Sandbox
	profile.Tasks = s.spec.Limits.Tasks
	profile.Write, profile.Show = append(profile.Write, s.spec.Log), append(profile.Show, s.spec.Stdin)
	order, err := json.Marshal(boxOrder{Profile: profile, Path: path, Listen: s.listens()})
	if err == nil {
		// Without a line break: where a box does not read it, the link is reset when the command is executed.
		_, err = link.Write(order)
	}
	if errors.Is(err, unix.EPIPE) {
		err = errBoxEnded
	}
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	handed := &handedFiles{link: link}
	answers := json.NewDecoder(handed)
	for restricted := false; ; {
		var a boxAnswer
		switch err := answers.Decode(&a); {
		case errors.Is(err, io.EOF) && restricted:
			return nil
		case err != nil:
			return fmt.Errorf("sandbox: %w: %w", errBoxEnded, err)
		case a.Errno != 0:
			return &fs.PathError{Op: "exec", Path: path, Err: a.Errno}
		case a.Error != "":
			return fmt.Errorf("sandbox: %s", a.Error)
		}
		if err := s.take(handed.files); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		restricted = true
	}
}

// makeTemp makes the folder for temporary files, empty.
func (s *supervisor) makeTemp() error {
	s.removeTemp()
	if err := os.Mkdir(s.spec.Sandbox.Temp, 0o700); err != nil { //nolint:forbidigo // temporary files are no state
		return fmt.Errorf("temporary folder: %w", err)
	}
	return nil
}

func (s *supervisor) removeTemp() {
	if s.spec.Sandbox != nil {
		_ = RemoveTemp(s.spec.Sandbox.Temp) // what can't be removed stays
	}
}

// RemoveTemp removes the temporary folder of a command that has ended. What the command made unreadable is made
// readable first.
func RemoveTemp(temp string) error {
	if err := os.RemoveAll(temp); err == nil { //nolint:forbidigo // temporary files are no state
		return nil
	}
	_ = filepath.WalkDir(temp, func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(temp) //nolint:forbidigo // temporary files are no state
}

// socketPair returns two connected sockets that no command inherits.
func socketPair() ([2]int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(ends[0])
		unix.CloseOnExec(ends[1])
	}
	return ends, err
}

// ownProgram is the file of this binary, also after another has taken its name.
func ownProgram() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}
