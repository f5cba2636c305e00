package chipsettest_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/state/statetest/powercut"
)

// bench is one power-cut disk, used for all states of a sweep: the prepared
// trees are put in one after the other. Where nothing fails and no power is cut,
// they are unpacked into a file system in memory that is mounted over the disk.
type bench struct {
	t       *testing.T
	mount   string
	fs      *powercut.FS
	starter *powercut.Starter
	bin     string
	world   *chipsettest.World
	fresh   *powercut.Tree // a rig in which nothing has happened yet
	journal bool
	plain   bool   // the file system in memory is mounted
	out     string // what commands print lies here, off the disk
}

// markEnv marks what was started on the disk, so that all of it can be ended.
const markEnv = "POWERCUT_DISK"

func newBench(t *testing.T, bin string, journal bool) *bench {
	t.Helper()
	b := &bench{t: t, bin: bin, out: t.TempDir(), mount: t.TempDir(), journal: journal}
	var err error
	if b.fs, err = powercut.Mount(b.mount); err != nil {
		t.Fatal(err)
	}
	if b.starter, err = b.fs.NewStarter(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.endAll()
		b.remount(false)
		b.starter.Close()
		if err := b.fs.Close(); err != nil {
			t.Error(err)
		}
	})
	b.unpack(powercut.NewTree())
	b.world = chipsettest.New(t, b.bin, chipsettest.Options{Dir: filepath.Join(b.fs.Dir(), "repo"),
		Start: b.launch, Definition: sweepDefinition, Env: []string{markEnv + "=" + b.fs.Dir()}})
	b.fresh = b.pack()
	return b
}

const sweepDefinition = `rig: {name: sweep, bead_prefix: sw, tick: 100ms, patrol: 200ms}
agents:
  agents:
    - {name: mayor, role: mayor}
    - {name: witness, role: witness}
    - {name: refinery, role: refinery}
    - {name: polecat-pool, role: polecat, count: 2}
worker: {default: sh, grace: 1s}
merge: {target: main, test: "true"}
gupp: {limits: {restart_cooldown: 0s}}
sandbox: off
`

// launch starts a program on the disk that programs see now.
func (b *bench) launch(cmd *exec.Cmd) error {
	if b.plain {
		return cmd.Start()
	}
	return b.starter.Start(cmd)
}

// remount lets programs see an empty file system in memory, or the power-cut disk.
func (b *bench) remount(plain bool) {
	b.t.Helper()
	var err error
	if b.plain {
		err = unix.Unmount(b.mount, unix.MNT_DETACH)
	}
	if plain {
		err = errors.Join(err, unix.Mount("sweep", b.mount, "tmpfs", 0, ""))
	}
	if b.plain = plain; err != nil {
		b.t.Fatal(err)
	}
}

// unpack shows programs a copy of a disk on which nothing fails.
func (b *bench) unpack(disk *powercut.Tree) {
	b.t.Helper()
	b.remount(true)
	if err := os.Mkdir(b.fs.Dir(), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := disk.Unpack(b.fs.Dir()); err != nil {
		b.t.Fatal(err)
	}
}

// pack makes a disk of what was unpacked, and of what became of it.
func (b *bench) pack() *powercut.Tree {
	b.t.Helper()
	disk, err := powercut.Pack(b.fs.Dir())
	if err != nil {
		b.t.Fatal(err)
	}
	if b.journal {
		disk.AtomicRenames()
	}
	return disk
}

// insert shows programs a power-cut disk.
func (b *bench) insert(image *powercut.Tree) {
	b.t.Helper()
	b.remount(false)
	b.fs.Inject(powercut.Fault{}, nil)
	if err := b.fs.Insert(image.Clone()); err != nil {
		b.t.Fatal(err)
	}
}

// outcome is how one command on the disk ended.
type outcome struct {
	out, errs string
	code      int // -1 when it was killed
	ops       []powercut.Op
	hit       bool
}

// run runs a command with a fault and waits for its end, and for the end of
// all that it started when the machine stops.
func (b *bench) run(c invocation, fault powercut.Fault) outcome {
	b.t.Helper()
	return b.start(c, fault, func(kill func()) <-chan struct{} { return b.fs.Inject(fault, kill) })
}

// observe runs a command without a fault and shows the disk at each of its operations.
func (b *bench) observe(c invocation, seen func(n int, after bool, disk *powercut.Tree)) outcome {
	b.t.Helper()
	return b.start(c, powercut.Fault{}, func(func()) <-chan struct{} {
		b.fs.Observe(seen)
		return nil
	})
}

func (b *bench) start(c invocation, fault powercut.Fault, inject func(kill func()) <-chan struct{}) outcome {
	b.t.Helper()
	var files [2]*os.File
	for i, name := range []string{"out", "err"} {
		f, err := os.Create(filepath.Join(b.out, name))
		if err != nil {
			b.t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	cmd := b.world.Command(b.bin, c.args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(c.stdin), files[0], files[1]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	started := make(chan struct{})
	kill := func() {
		<-started
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	met := inject(kill)
	if err := b.launch(cmd); err != nil {
		b.t.Fatal(err)
	}
	close(started)
	if fault.Kind == powercut.DiskFull || fault.Kind == powercut.ReadOnly {
		defer c.impatience(met, kill)()
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	o := outcome{code: cmd.ProcessState.ExitCode()}
	o.ops, o.hit = b.fs.Log()
	for i, to := range []*string{&o.out, &o.errs} {
		data, err := os.ReadFile(files[i].Name())
		if err != nil {
			b.t.Fatal(err)
		}
		*to = string(data)
	}
	return o
}

// impatience ends a command that does not end by itself while the disk takes
// nothing, some time after it met the fault.
func (c invocation) impatience(met <-chan struct{}, kill func()) (stop func()) {
	if c.patience == 0 {
		return func() {}
	}
	ended := make(chan struct{})
	go func() {
		select {
		case <-ended:
			return
		case <-met:
		}
		select {
		case <-ended:
		case <-time.After(c.patience):
			kill()
		}
	}()
	return func() { close(ended) }
}

// cut ends what runs and plays the power cut.
func (b *bench) cut(s cutting) {
	b.t.Helper()
	b.fs.Stop()
	b.endAll()
	if err := b.fs.Cut(s.mode, s.rnd()); err != nil {
		b.t.Fatal(err)
	}
	b.fs.Inject(powercut.Fault{}, nil)
}

// endAll ends every process that was started on the disk and is still there:
// git, workers, supervisors.
func (b *bench) endAll() {
	mark := []byte(markEnv + "=" + b.fs.Dir() + "\x00")
	self := os.Getpid()
	for again := true; again; {
		again = false
		entries, err := os.ReadDir("/proc")
		if err != nil {
			b.t.Fatal(err)
		}
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil || pid == self {
				continue
			}
			environ, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
			if err == nil && bytes.Contains(environ, mark) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				again = true // it may have started another meanwhile
			}
		}
	}
}

// view is what stands on the disk below .chipset/state; of the power-cut disk read past the kernel.
type view map[string][]byte

func (b *bench) view() view {
	const state = "repo/.chipset/state/"
	v := view{}
	if b.plain {
		b.read(filepath.Join(b.fs.Dir(), state), "", v)
		return v
	}
	for _, name := range b.fs.Files(state) {
		data, err := b.fs.ReadFile(name)
		if err != nil {
			b.t.Fatal(err)
		}
		v[strings.TrimPrefix(name, state)] = data
	}
	return v
}

// read adds the files of a folder that was unpacked. What a program that runs takes away meanwhile is not there.
func (b *bench) read(dir, below string, v view) {
	entries, err := os.ReadDir(filepath.Join(dir, below))
	for _, e := range entries {
		name := path.Join(below, e.Name())
		if e.IsDir() {
			b.read(dir, name, v)
		} else if v[name], err = os.ReadFile(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			delete(v, name)
			err = nil
		}
		if err != nil {
			break
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.t.Fatal(err)
	}
}
