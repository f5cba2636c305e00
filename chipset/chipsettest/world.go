// Package chipsettest drives the real binary in real repositories, from the
// outside, as people and scripts do.
package chipsettest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// built are the binaries of this process by their ldflags, below dir while Main runs.
var built = struct {
	sync.Mutex
	dir  string
	bins map[string]string
}{bins: map[string]string{}}

// Main runs the tests of a package. What they build is kept until it returns.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "chipset-built-")
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	built.dir = dir
	return m.Run()
}

// Build returns the path of the binary, linked with ldflags. Below Main each is built once;
// tests don't change it.
func Build(t testing.TB, ldflags ...string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	flags := strings.Join(ldflags, " ")
	if bin, found := built.bins[flags]; found {
		return bin
	}
	dir := t.TempDir()
	if built.dir != "" {
		dir = filepath.Join(built.dir, strconv.Itoa(len(built.bins)))
	}
	bin := filepath.Join(dir, "chipset")
	cmd := exec.Command("go", "build", "-ldflags", flags, "-o", bin, "github.com/gastown-chipset/chipset/cmd/chipset")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if built.dir != "" {
		built.bins[flags] = bin
	}
	return bin
}

// World is one repository with a rig in it.
type World struct {
	t     testing.TB
	Bin   string
	Dir   string
	env   []string
	start func(*exec.Cmd) error
}

// Options of a new world.
type Options struct {
	// Polecats is the size of the pool.
	Polecats int
	// Test is the test command.
	Test string
	// Definition replaces chipset.yaml when not empty.
	Definition string
	// Checkout is the branch that the person has checked out; "" means main.
	Checkout string
	// Env has NAME=VALUE entries for every command.
	Env []string
	// Dir is where the repository is made; "" means a new folder.
	Dir string
	// Start replaces (*exec.Cmd).Start, for programs that need a start of their own kind.
	Start func(*exec.Cmd) error
}

// New makes a repository with one commit and a rig in it.
func New(t testing.TB, bin string, opts Options) *World {
	t.Helper()
	w := &World{t: t, Bin: bin, Dir: opts.Dir, start: opts.Start}
	if w.Dir == "" {
		w.Dir = filepath.Join(t.TempDir(), "my repo")
	}
	if w.start == nil {
		w.start = (*exec.Cmd).Start
	}
	home := t.TempDir()
	GivePersonToken(t, home)
	w.env = append(clients.Inherit(clean(os.Environ())), "CHIPSET_PERSON_TOKEN=of the tests", "HOME="+home, "XDG_CONFIG_HOME=", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@chipset.invalid", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@chipset.invalid")
	w.env = append(w.env, opts.Env...)
	if err := os.MkdirAll(w.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w.Git("init", "-q", "-b", "main")
	w.Write("README.md", "a repository\n")
	w.Write("person.txt", "one\ntwo\nthree\n")
	w.Git("add", "-A")
	w.Git("commit", "-q", "-m", "first")
	if opts.Checkout != "" {
		w.Git("checkout", "-q", "-b", opts.Checkout)
	}
	args := []string{"init", "--worker", "sh", "--test", opts.Test, "--polecats", fmt.Sprint(opts.Polecats), "--target", "main"}
	if opts.Definition != "" {
		w.Write(".chipset/chipset.yaml", opts.Definition)
		args = []string{"init"}
	}
	w.Chipset(args...)
	t.Cleanup(w.endAll)
	return w
}

// GivePersonToken lets the commands of a world decide as the person, although there is no
// terminal.
func GivePersonToken(t testing.TB, home string) {
	t.Helper()
	file := filepath.Join(home, ".config", "chipset", "person-token")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("of the tests"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// clean drops what would lead git or chipset to another repository.
func clean(environ []string) []string {
	var kept []string
	for _, e := range environ {
		if !strings.HasPrefix(e, "GIT_") && !strings.HasPrefix(e, "CHIPSET_") {
			kept = append(kept, e)
		}
	}
	return kept
}

// Write puts a file into the checkout.
func (w *World) Write(name, text string) {
	w.t.Helper()
	gittest.Write(w.t, w.Dir, name, text)
}

// Read returns a file of the checkout.
func (w *World) Read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.Dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// Git runs git in the checkout and returns its output; a failure ends the test.
func (w *World) Git(args ...string) string {
	w.t.Helper()
	out, err := w.TryGit(args...)
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimRight(out, "\n")
}

// TryGit is Git that may fail.
func (w *World) TryGit(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := w.command("git", args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := w.run(cmd)
	return out.String(), err
}

func (w *World) run(cmd *exec.Cmd) error {
	if err := w.start(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// Command is a command in the checkout, as Git and Try run it, not started.
func (w *World) Command(name string, args ...string) *exec.Cmd { return w.command(name, args...) }

func (w *World) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = w.Dir, w.env
	return cmd
}

// Chipset runs the binary and returns its output; a failure ends the test.
func (w *World) Chipset(args ...string) string {
	w.t.Helper()
	out, code := w.Try(args...)
	if code != 0 {
		w.t.Fatalf("chipset %v: exit %d\n%s", args, code, out)
	}
	return out
}

// Try runs the binary and returns its standard output (with standard error
// behind it when it failed) and exit code.
func (w *World) Try(args ...string) (string, int) {
	w.t.Helper()
	var out, errs bytes.Buffer
	cmd := w.command(w.Bin, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := w.run(cmd)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return strings.TrimRight(out.String(), "\n"), 0
	case errors.As(err, &exit):
		return out.String() + errs.String(), exit.ExitCode()
	}
	w.t.Fatalf("chipset %v: %v", args, err)
	return "", 1
}

// Output is what a process has written by now. It may be read while the process runs.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Process is a chipset that runs beside the test.
type Process struct {
	Cmd    *exec.Cmd
	Output *Output
	done   chan struct{}
	err    error
}

// Start runs the binary in the background, in a process group of its own.
func (w *World) Start(args ...string) *Process {
	w.t.Helper()
	p := &Process{Cmd: w.command(w.Bin, args...), Output: &Output{}, done: make(chan struct{})}
	p.Cmd.Stdout, p.Cmd.Stderr = p.Output, p.Output
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := w.start(p.Cmd); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		p.err = p.Cmd.Wait()
		close(p.done)
	}()
	w.t.Cleanup(func() { p.KillGroup() })
	return p
}

// Kill is kill -9 of the process alone; what it started is left to itself.
func (p *Process) Kill() { p.Cmd.Process.Kill(); <-p.done }

// KillGroup is kill -9 of the process and of what shares its group (git).
func (p *Process) KillGroup() { syscall.Kill(-p.Cmd.Process.Pid, syscall.SIGKILL); <-p.done }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running reports whether it has not ended by itself.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Beads reads all beads through the command line.
func (w *World) Beads() []bead.Bead {
	w.t.Helper()
	var all []bead.Bead
	w.decode(&all, "work", "list", "--json")
	return all
}

// Queue reads all merge requests through the command line.
func (w *World) Queue() []mergequeue.Request {
	w.t.Helper()
	var all []mergequeue.Request
	w.decode(&all, "queue", "list", "--json")
	return all
}

func (w *World) decode(to any, args ...string) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.Chipset(args...)), to); err != nil {
		w.t.Fatalf("chipset %v: %v", args, err)
	}
}

// Strays lists the processes that belong to the rig of this world: workers,
// supervisors, test commands.
func (w *World) Strays() []string {
	var found []string
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		environ, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil || !bytes.Contains(environ, []byte("CHIPSET_DIR="+w.Dir+"\x00")) {
			continue
		}
		cmdline, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		found = append(found, e.Name()+": "+strings.ReplaceAll(string(cmdline), "\x00", " "))
	}
	return found
}

// Eventually waits for what another process does; it polls because no event of
// that process reaches the test.
func (w *World) Eventually(limit time.Duration, what string, ok func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(limit)
	for !ok() {
		if time.Now().After(deadline) {
			w.t.Fatalf("not within %s: %s", limit, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// endAll ends what a failed test left running.
func (w *World) endAll() {
	for _, s := range w.Strays() {
		pid, _, _ := strings.Cut(s, ":")
		_ = exec.Command("kill", "-9", pid).Run() // gone already is as good
	}
}
