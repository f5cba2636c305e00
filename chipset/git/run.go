package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// finishTime is how long a cancelled git that changes something may run on. A git that gets TERM while it
	// takes a lock leaves the lock behind, and the lock then stops every other git.
	finishTime = 3 * time.Second
	// termGrace is how long a cancelled git may clean up its lock files before it is killed.
	termGrace = 5 * time.Second
	// maxOutput bounds what one command may print, in bytes.
	maxOutput = 256 << 20
	// maxStderr bounds the standard error that is kept, in bytes; the end is kept.
	maxStderr = 8 << 10
)

// settings override the configuration of person, repository and system in every command.
// What a person may configure for their own use (hooks, signing, automatic stashing) must neither
// run nor block in a rig.
func settings() []string {
	return []string{
		"core.fsync=all",
		"core.hooksPath=/dev/null",
		"core.fsmonitor=false",
		"core.commitGraph=false", // a worker could write one with other parents and trees
		"core.untrackedCache=false",
		"core.quotePath=false",
		"core.filesRefLockTimeout=5000",
		"core.packedRefsTimeout=5000",
		"color.ui=false",
		"commit.gpgSign=false",
		"tag.gpgSign=false",
		"push.gpgSign=false",
		"diff.orderFile=/dev/null", // git status fails over a missing one
		"log.showSignature=false",
		"gc.auto=0",
		"maintenance.auto=false",
		"rerere.enabled=false",
		"advice.detachedHead=false",
		"rebase.autoStash=false",
		"rebase.autoSquash=false",
		"rebase.updateRefs=false",
		"submodule.recurse=false",
		"protocol.ext.allow=never",
	}
}

// place says where a command works. Only Open leaves gitDir empty.
type place struct {
	dir      string // working directory
	gitDir   string
	workTree string // empty for commands that need none
}

// Command is one run of git.
type Command struct {
	Args   []string
	Config []string // settings of this run alone, as key=value
	Stdin  []byte   // empty means /dev/null
	Env    []string // added to the environment, as KEY=value
	Read   bool     // changes nothing: takes no optional locks, so that a reader never gets in a person's way, and ends at once when it is cancelled
	// Network lets the command reach other repositories. Without it git fetches nothing, whatever a missing object or a
	// configuration asks for.
	Network bool
}

// Run runs git on the repository itself, without a work tree, and returns its standard output.
// It fails with an *Error. It is for the few callers that need plumbing which this package does not
// offer; arguments are passed unchecked.
func (r *Repo) Run(ctx context.Context, c Command) ([]byte, error) {
	return r.run(ctx, r.plain(), c)
}

func (r *Repo) run(ctx context.Context, p place, c Command) ([]byte, error) {
	stdout, _, err := r.runBoth(ctx, p, c)
	return stdout, err
}

// runBoth also returns the end of standard error.
func (r *Repo) runBoth(ctx context.Context, p place, c Command) ([]byte, string, error) {
	fail := func(code int, stderr string, cause error) (string, error) {
		where := p.dir
		if p.gitDir != "" {
			where = p.gitDir
		}
		return stderr, &Error{Args: c.Args, Dir: where, ExitCode: code, Stderr: stderr, Cause: cause}
	}
	if err := ctx.Err(); err != nil {
		text, err := fail(-1, "", err)
		return nil, text, err
	}
	if err := r.clearWay(p); err != nil {
		text, err := fail(-1, "", err)
		return nil, text, err
	}
	limit := cmp.Or(r.Deadline, defaultDeadline)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w within %s", ErrNoEnd, limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, r.git, fullArgs(p, c)...)
	cmd.Dir = p.dir
	cmd.Env = r.environment(c)
	if p.gitDir != "" && r.linked(p) {
		cmd.Env = append(cmd.Env, "GIT_COMMON_DIR="+r.common) // not what the worktree's commondir says by now
	}
	if len(c.Stdin) > 0 {
		cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	stdout, stderr := &capped{limit: maxOutput}, &tail{limit: maxStderr}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	finish := finishTime
	if c.Read {
		finish = 0
	}
	err := runGroup(cmd, finish, ctx.Value(lowPriority{}) != nil)
	switch {
	case err == nil && stdout.over:
		text, err := fail(-1, "", fmt.Errorf("more than %d bytes of output", maxOutput))
		return nil, text, err
	case err == nil:
		return stdout.Bytes(), stderr.String(), nil
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		text, err := fail(-1, stderr.String(), context.Cause(ctx))
		return stdout.Bytes(), text, err
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		text, err := fail(exit.ExitCode(), stderr.String(), nil)
		return stdout.Bytes(), text, err
	default:
		text, err := fail(-1, stderr.String(), err)
		return stdout.Bytes(), text, err
	}
}

func fullArgs(p place, c Command) []string {
	var full []string
	for _, s := range append(settings(), c.Config...) {
		full = append(full, "-c", s)
	}
	if p.gitDir != "" {
		full = append(full, "--git-dir="+p.gitDir)
	}
	if p.workTree != "" {
		full = append(full, "--work-tree="+p.workTree)
	}
	return append(full, c.Args...)
}

// lowPriority is the key of a context whose commands run at low priority.
type lowPriority struct{}

// niceOfLowPriority gives a command a third of the processor time of a command at normal priority beside it.
const niceOfLowPriority = 5

// LowPriority returns a context whose commands run at a lower priority than the rig's other commands:
// many agents prepare and commit at the same time, but only the refinery lands their work.
func LowPriority(ctx context.Context) context.Context {
	return context.WithValue(ctx, lowPriority{}, true)
}

// runGroup runs cmd in a process group of its own: Ctrl-C in the terminal must not reach a git that is in the
// middle of a checkout. A cancelled command that has not ended after finish gets TERM, on which git removes its lock
// files, and KILL after termGrace. A cancelled command that succeeds anyway returns no error.
func runGroup(cmd *exec.Cmd, finish time.Duration, yields bool) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var (
		mu     sync.Mutex
		reaped bool
		later  []*time.Timer
	)
	signal := func(s syscall.Signal) error {
		mu.Lock()
		defer mu.Unlock()
		if reaped {
			return nil
		}
		return syscall.Kill(-cmd.Process.Pid, s)
	}
	cmd.Cancel = func() error {
		mu.Lock()
		later = []*time.Timer{
			time.AfterFunc(finish, func() { _ = signal(syscall.SIGTERM) }),
			time.AfterFunc(finish+termGrace, func() { _ = signal(syscall.SIGKILL) }),
		}
		mu.Unlock()
		return os.ErrProcessDone // so that Wait returns the command's own result
	}
	// A daemon that git left behind (a credential cache) may hold the pipes open forever.
	cmd.WaitDelay = finish + termGrace + time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	if yields {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, niceOfLowPriority) // without it the others are only slower
	}
	err := cmd.Wait()
	mu.Lock()
	reaped = true
	for _, t := range later {
		t.Stop()
	}
	mu.Unlock()
	if errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success() {
		return nil
	}
	return err
}

// passes reports whether a GIT_ variable is passed on to git: those for reaching remotes, identity, and
// configuration files. All others are dropped, because most redirect a command to another
// repository, index or object store when chipset itself was started by a git hook or alias.
func passes(name string) bool {
	switch name {
	case "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ASKPASS", "GIT_PROXY_COMMAND", "GIT_ALLOW_PROTOCOL",
		"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_COUNT",
		"GIT_EXEC_PATH", "GIT_TEMPLATE_DIR":
		return true
	}
	for _, prefix := range []string{"GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_SSL_", "GIT_HTTP_", "GIT_CURL_", "GIT_TRACE"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Environment returns environ without the GIT_ variables that would redirect git to another repository; those for
// remotes, identity and configuration files stay. Workers are started with it too.
func Environment(environ []string) []string {
	var clean []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "GIT_") || passes(name) {
			clean = append(clean, entry)
		}
	}
	return clean
}

func (r *Repo) environment(c Command) []string {
	env := append(slices.Clone(r.env), "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE="+os.DevNull+"/none",
		"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true", "GIT_PAGER=cat", "LC_ALL=C", "LANGUAGE=")
	if c.Read {
		env = append(env, "GIT_OPTIONAL_LOCKS=0")
	}
	if !c.Network {
		env = append(env, "GIT_ALLOW_PROTOCOL=none")
	}
	// An empty askpass ends git's search for a program that would open a window.
	if !hasVariable(env, "GIT_ASKPASS") {
		env = append(env, "GIT_ASKPASS=")
	}
	return append(env, c.Env...)
}

func hasVariable(env []string, name string) bool {
	return slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
}

// capped keeps the first limit bytes and remembers whether there were more.
type capped struct {
	bytes.Buffer
	limit int
	over  bool
}

func (c *capped) Write(p []byte) (int, error) {
	room := max(0, c.limit-c.Len())
	if len(p) > room {
		c.over = true
		c.Buffer.Write(p[:room])
		return len(p), nil
	}
	return c.Buffer.Write(p)
}

// tail keeps the last limit bytes.
type tail struct {
	data  []byte
	limit int
}

func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	if len(t.data) > 2*t.limit {
		t.data = append([]byte(nil), t.data[len(t.data)-t.limit:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	data := t.data
	if len(data) > t.limit {
		data = data[len(data)-t.limit:]
	}
	return strings.ToValidUTF8(string(data), "\uFFFD")
}

// fields splits NUL-terminated output.
func fields(out []byte) []string {
	text := strings.TrimSuffix(string(out), "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}

func line(out []byte) string { return strings.TrimSuffix(string(out), "\n") }
