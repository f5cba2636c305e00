package powercut_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state/statetest"
	"github.com/gastown-chipset/chipset/state/statetest/powercut"
)

// The programs that run on the mounted disk are this test itself, told by the
// environment what to be: a test that opens files of its own mount can wait for
// itself forever.
const programEnv = "CHIPSET_POWERCUT_PROGRAM"

func TestMain(m *testing.M) {
	if name := os.Getenv(programEnv); name != "" {
		if err := programs()[name](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func programs() map[string]func() error {
	return map[string]func() error{
		"safe":              func() error { return publish(true, true) },
		"forgets file sync": func() error { return publish(false, true) },
		"forgets dir sync":  func() error { return publish(true, false) },
		"retries fsync":     retry,
		"syncfs":            syncAll,
		"probe":             probe,
	}
}

func publish(syncFile, syncDir bool) error {
	f, err := os.Create("tmp")
	if err != nil {
		return err
	}
	if _, err := f.Write(bytes.Repeat([]byte("new\n"), 1000)); err != nil {
		return err
	}
	if syncFile {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err := os.Rename("tmp", "a"); err != nil {
		return err
	}
	if !syncDir {
		return nil
	}
	dir, err := os.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// retry believes a second fsync after the first has failed.
func retry() error {
	f, err := os.OpenFile("a", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString("retried"); err != nil {
		return err
	}
	if f.Sync() == nil {
		return fmt.Errorf("the first fsync was to fail")
	}
	return f.Sync()
}

func syncAll() error {
	if err := publish(false, false); err != nil {
		return err
	}
	dir, err := os.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if _, _, errno := unix.Syscall(unix.SYS_SYNCFS, dir.Fd(), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// probe tries what programs expect of any file system.
func probe() error {
	for _, step := range []func() error{
		func() error { return os.MkdirAll("p/q/r", 0o755) },
		func() error { return os.WriteFile("p/q/file", []byte("hello"), 0o600) },
		func() error { return os.Symlink("../p/q/file", "p/link") },
		func() error { return os.Link("p/q/file", "p/second") },
		func() error { return expect(os.Mkdir("p/q", 0o755), os.ErrExist) },
		func() error { return expect(os.Remove("p"), syscall.ENOTEMPTY) },
		func() error { return os.Chmod("p/q/file", 0o755) },
		func() error { return os.Truncate("p/q/file", 2) },
		func() error { return appendTo("p/q/file", "y") },
		func() error { return expectText("p/link", "hey") },
		func() error { return expectText("p/second", "hey") },
		func() error { return os.Remove("p/second") },
		func() error { return os.Rename("p/q/r", "p/moved") },
		func() error { return listed("p", "link", "moved", "q") },
		func() error { return os.RemoveAll("p") },
		func() error { return expect(os.Mkdir(strings.Repeat("n", 256), 0o755), syscall.ENAMETOOLONG) },
		unnamed,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// unnamed publishes a file that was written before it had a name.
func unnamed() error {
	f, err := os.OpenFile(".", os.O_WRONLY|unix.O_TMPFILE, 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil // a kernel before 6.2 does not pass it on
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString("unnamed"); err != nil {
		return err
	}
	if err := unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER); err != nil {
		return err
	}
	for range 2 {
		err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.AT_FDCWD, "named", unix.AT_SYMLINK_FOLLOW)
		if err != nil {
			return expect(err, os.ErrExist)
		}
	}
	return fmt.Errorf("a name was given twice")
}

func expect(err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("want %v, got %v", want, err)
	}
	return nil
}

func expectText(name, want string) error {
	data, err := os.ReadFile(name)
	if err == nil && string(data) != want {
		err = fmt.Errorf("%s is %q, want %q", name, data, want)
	}
	return err
}

func appendTo(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	f.Close()
	return err
}

func listed(dir string, want ...string) error {
	entries, err := os.ReadDir(dir)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if err == nil && strings.Join(got, " ") != strings.Join(want, " ") {
		err = fmt.Errorf("%s holds %v, want %v", dir, got, want)
	}
	return err
}

type rig struct {
	t *testing.T
	*powercut.FS
	starter *powercut.Starter
}

func mount(t *testing.T) *rig {
	t.Helper()
	statetest.RequireFUSE(t)
	f, err := powercut.Mount(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.NewStarter()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return &rig{t, f, s}
}

// command runs a program on the disk and returns what it printed.
func (r *rig) command(env, name string, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.Dir(), &out, &out
	cmd.Env = append(os.Environ(), env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@chipset.invalid", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@chipset.invalid")
	if err := r.starter.Start(cmd); err != nil {
		return "", err
	}
	err := cmd.Wait()
	return out.String(), err
}

func (r *rig) program(name string) error {
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := r.command(programEnv+"="+name, self)
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func (r *rig) git(args ...string) string {
	r.t.Helper()
	out, err := r.command("", "git", args...)
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(out)
}

// start puts in a disk with one file that reads "old".
func (r *rig) start() {
	r.t.Helper()
	r.Inject(powercut.Fault{}, nil)
	if err := r.Insert(powercut.NewTree()); err != nil {
		r.t.Fatal(err)
	}
	if out, err := r.command("", "sh", "-c", "printf old > a"); err != nil {
		r.t.Fatal(err, out)
	}
	if err := r.Insert(r.Image()); err != nil {
		r.t.Fatal(err)
	}
	r.Inject(powercut.Fault{}, nil)
}

func (r *rig) text(name string) string {
	data, err := r.ReadFile(name)
	if err != nil {
		return "-"
	}
	if s := string(data); s != strings.Repeat("new\n", 1000) {
		return s
	}
	return "new"
}

func TestRealProgramsOnTheDisk(t *testing.T) {
	r := mount(t)
	if err := r.program("probe"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ program, afterDrop string }{
		{"safe", "new"},
		{"forgets file sync", ""},
		{"forgets dir sync", "old"},
		{"syncfs", "new"},
	} {
		t.Run(c.program, func(t *testing.T) {
			r.start()
			if err := r.program(c.program); err != nil {
				t.Fatal(err)
			}
			if got := r.text("a"); got != "new" {
				t.Errorf("before the cut: %q", got)
			}
			if err := r.Cut(powercut.Drop, nil); err != nil {
				t.Fatal(err)
			}
			if got := r.text("a"); got != c.afterDrop {
				t.Errorf("after the cut: %q, want %q", got, c.afterDrop)
			}
			// The kernel, too, must have forgotten the disk before the cut.
			if out, _ := r.command("", "cat", "a"); r.text("a") != c.afterDrop || len(out) == len("new\n")*1000 != (c.afterDrop == "new") {
				t.Errorf("a program reads %q", out)
			}
		})
	}
}

func TestRetriedFsyncIsBelievedAndLies(t *testing.T) {
	r := mount(t)
	r.start()
	r.Inject(powercut.Fault{Kind: powercut.FailedSync, At: 2}, nil)
	if err := r.program("retries fsync"); err != nil {
		ops, hit := r.Log()
		t.Fatal(err, ops, hit)
	}
	if err := r.Cut(powercut.Keep, nil); err != nil {
		t.Fatal(err)
	}
	if got := r.text("a"); got != "old\x00\x00\x00\x00" {
		t.Errorf("after the cut: %q", got)
	}
}

// Every fault at every operation of the right protocol: afterwards the file is
// old or new, and new when the program said so.
func TestEveryFaultAtEveryOperation(t *testing.T) {
	r := mount(t)
	r.start()
	if err := r.program("safe"); err != nil {
		t.Fatal(err)
	}
	ops, _ := r.Log()
	var names []string
	for _, op := range ops {
		names = append(names, op.Name+" "+op.Path)
	}
	const want = "creat tmp, write tmp, fsync tmp, close tmp, rename a, fsyncdir ."
	if got := strings.Join(names, ", "); got != want {
		t.Fatalf("the operations were\n%s, want\n%s", got, want)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	states := 0
	for _, op := range ops {
		for _, kind := range powercut.Kinds() {
			if !kind.Applies(op.Class) {
				continue
			}
			for _, mode := range []powercut.Mode{powercut.Drop, powercut.Keep, powercut.Ordered, powercut.Scatter} {
				fault := powercut.Fault{Kind: kind, At: op.N}
				r.faulty(fault, mode, rnd)
				states++
			}
		}
	}
	t.Logf("%d states", states)
}

func (r *rig) faulty(fault powercut.Fault, mode powercut.Mode, rnd *rand.Rand) {
	r.t.Helper()
	r.start()
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Dir, cmd.Env = r.Dir(), append(os.Environ(), programEnv+"=safe")
	started := make(chan struct{})
	r.Inject(fault, func() {
		<-started
		_ = cmd.Process.Kill()
	})
	if err := r.starter.Start(cmd); err != nil {
		r.t.Fatal(err)
	}
	close(started)
	err = cmd.Wait()
	ops, hit := r.Log()
	if !hit {
		r.t.Errorf("%s: was not met: %v", fault, ops)
	}
	killed := fault.Kind == powercut.KillBefore || fault.Kind == powercut.KillAfter
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); killed && (!ok || !status.Signaled()) {
		r.t.Errorf("%s: the program was not killed: %v", fault, err)
	}
	if err := r.Cut(mode, rnd); err != nil {
		r.t.Fatal(err)
	}
	got := r.text("a")
	if got != "new" && (got != "old" || err == nil) {
		r.t.Errorf("%s, %s: the program ended with %v and left %q: %v", fault, mode, err, got, ops)
	}
}

func TestGitOnTheDisk(t *testing.T) {
	r := mount(t)
	r.git("init", "-q", "-b", "main")
	r.start2git()
	r.git("gc", "-q") // packs are mapped into memory
	if got := r.git("log", "--format=%s"); got != "first" {
		t.Errorf("log: %q", got)
	}
	if err := r.Insert(r.Image()); err != nil {
		t.Fatal(err)
	}
	r.git("-c", "core.fsync=all", "commit", "-q", "--allow-empty", "-m", "second")
	if err := r.Cut(powercut.Drop, nil); err != nil {
		t.Fatal(err)
	}
	if got := r.git("log", "--format=%s"); got != "first" {
		t.Errorf("git made its ref durable without an fsync of its folder? log: %q", got)
	}
	r.git("fsck", "--full")
}

func (r *rig) start2git() {
	if out, err := r.command("", "sh", "-c", "seq 10000 > file"); err != nil {
		r.t.Fatal(err, out)
	}
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "first")
}

func TestUnmountLeavesTheFolder(t *testing.T) {
	statetest.RequireFUSE(t)
	dir := t.TempDir()
	f, err := powercut.Mount(dir)
	if err != nil {
		t.Fatal(err)
	}
	if f.Dir() != filepath.Join(dir, "disk") {
		t.Errorf("the disk is at %s", f.Dir())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left %v, %v", entries, err)
	}
}
