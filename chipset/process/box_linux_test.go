package process

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/process/proxy"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
)

// boxed returns the job of a shell script in a sandbox that may write to its directory.
func (b *bench) boxed(script string) Spec {
	spec := b.spec(script)
	spec.Sandbox = &sandbox.Profile{Mode: sandbox.Auto, Write: []string{b.dir}, Temp: filepath.Join(b.dir, "temp")}
	return spec
}

func needLandlock(t testing.TB) {
	t.Helper()
	if kind, missing := sandbox.Kind(); missing != "" {
		t.Skipf("this machine has only %q: %s", kind, missing)
	}
}

func TestBoxKeepsTheCommandsWays(t *testing.T) {
	needLandlock(t)
	tests := []struct {
		name, script, log string
		code              int
	}{
		{"exit code and both outputs", "echo out; echo err >&2; exit 7", "out\nerr\n", 7},
		{"own folder", "echo text > file; cat file", "text\n", 0},
		{"outputs by name", "echo a > /dev/null; echo b >> /dev/stdout; echo c >> /dev/stderr", "b\nc\n", 0},
		{"temporary folder", `test "$TMPDIR" = "$PWD/temp" && echo x > "$(mktemp)"; echo $?`, "0\n", 0},
		{"threads and children", "(sleep 0 & wait); echo $(echo deep)", "deep\n", 0},
		{"no core", "ulimit -c; ulimit -Hc", "0\n0\n", 0},
	}
	if os.Getuid() == 0 {
		tests = append(tests, struct {
			name, script, log string
			code              int
		}{"terminals of its own", "exec 3<>/dev/ptmx && ls /dev/pts", "0\nptmx\n", 0})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			exit := b.run(b.boxed(test.script))
			if exit.Code != test.code || b.log() != test.log {
				t.Errorf("exit %+v, log %q", exit, b.log())
			}
		})
	}
}

// TestBoxHoldsHostileCommands: each act fails in the box, and succeeds without it, so that the act is one.
func TestBoxHoldsHostileCommands(t *testing.T) {
	needLandlock(t)
	tests := []struct{ name, script string }{
		{"write outside", "echo x > $OUT/new"},
		{"change a file outside", "echo x >> $OUT/file"},
		{"truncate a file outside", ": > $OUT/file"},
		{"remove a file outside", "rm $OUT/file"},
		{"rename a file outside", "mv $OUT/file $OUT/other"},
		{"make a folder outside", "mkdir $OUT/dir"},
		{"write through a link", "ln -s $OUT link && echo x > link/new"},
		{"write through /proc", "echo x > /proc/self/root$OUT/new"},
		{"move a file out", "echo x > mine && ln mine $OUT/mine"},
		{"hard link to a file outside", "ln $OUT/file mine && echo x >> mine"},
		{"a child of a child", "sh -c 'setsid sh -c \"echo x > $OUT/new\"'"},
		{"read a secret", "cat $HOME/.ssh/id"},
		{"read a secret through a link", "ln -s $HOME/.ssh/id link && cat link"},
		{"execute a secret", "$HOME/.ssh/tool"},
		{"read the environment of the supervisor", "cat /proc/$PPID/environ"},
		{"signal the supervisor", "kill -0 $PPID"},
		{"limit the supervisor", "prlimit --pid $PPID --core=0:0"},
		{"open a device", `if [ "$(id -u)" = 0 ]; then : < /dev/kmsg; else : < /dev/ptmx; fi`},
		{"lease a file outside", `perl -e 'open F, "<", "$ENV{OUT}/file"; exit !fcntl(F, 1024, 0)'`},
		{"trace", "exec strace -o /dev/null true"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if kind, _ := sandbox.Kind(); test.name == "signal the supervisor" && slices.Contains([]string{"landlock 2, seccomp", "landlock 3, seccomp", "landlock 4, seccomp", "landlock 5, seccomp"}, kind) {
				t.Skip("this kernel does not restrict signals: " + kind)
			}
			if test.name == "trace" {
				if _, err := exec.LookPath("strace"); err != nil {
					t.Skip(err)
				}
			}
			t.Parallel()
			for _, boxed := range []bool{false, true} {
				b := newBench(t)
				home, out := t.TempDir(), t.TempDir()
				for path, text := range map[string]string{filepath.Join(home, ".ssh/id"): "key", filepath.Join(home, ".ssh/tool"): "#!/bin/sh\n", filepath.Join(out, "file"): "text"} {
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
						t.Fatal(err)
					}
				}
				spec := b.spec(test.script)
				if boxed {
					spec = b.boxed(test.script)
					spec.Sandbox.Hide = []string{filepath.Join(home, ".ssh")}
				}
				spec.Env = append(spec.Env, "OUT="+out, "HOME="+home)
				if exit := b.run(spec); (exit.Code != 0) != boxed {
					t.Errorf("boxed %v: exit %d: %s", boxed, exit.Code, b.log())
				}
			}
		})
	}
}

// A user without privileges has the same box: the tests are mostly run as root in containers, where the kernel lets more pass.
func TestBoxWithoutPrivileges(t *testing.T) {
	needLandlock(t)
	if os.Getuid() != 0 {
		t.Skip("the other tests have no privileges")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	const nobody = 65534
	copied := filepath.Join(dir, "tests")
	if out, err := exec.Command("cp", self, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(copied, "-test.run=^TestBox(Keeps|Holds|Has|Records|Ends)", "-test.parallel=2")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestBoxRemovesItsTemporaryFolder(t *testing.T) {
	needLandlock(t)
	b := newBench(t)
	spec := b.boxed(`mkdir -p $TMPDIR/a/b; touch $TMPDIR/a/b/c; chmod 000 $TMPDIR/a/b; chmod 500 $TMPDIR/a; ln -s / $TMPDIR/root`)
	if exit := b.run(spec); exit.Code != 0 {
		t.Fatalf("exit %+v: %s", exit, b.log())
	}
	if _, err := os.Lstat(spec.Sandbox.Temp); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
}

// TestTemporaryFilesCount: what a command puts into its temporary folder counts for what it may take of the disk.
func TestTemporaryFilesCount(t *testing.T) {
	needLandlock(t)
	t.Parallel()
	b := newBench(t)
	spec := b.boxed(`head -c 4194304 /dev/zero > "$TMPDIR/big"; exec sleep 60`)
	spec.Limits.Disk, spec.Sandbox.Temp = 1<<20, filepath.Join(t.TempDir(), "temp")
	if exit := b.run(spec); exit.Over != OverDisk {
		t.Errorf("exit %+v", exit)
	}
}

// TestBoxOrderOfAnyLength: a box reads its order in pieces, and starts wherever one ends.
func TestBoxOrderOfAnyLength(t *testing.T) {
	needLandlock(t)
	b := newBench(t)
	spec := b.boxed("true")
	sent := *spec.Sandbox // with what the supervisor adds
	sent.Write, sent.Show, sent.Hide = append(sent.Write, spec.Log), append(sent.Show, spec.Stdin), []string{""}
	order, err := json.Marshal(boxOrder{Profile: sent, Path: "/bin/sh"})
	if err != nil {
		t.Fatal(err)
	}
	const pieces = 1536 // what a json.Decoder has read after two of them
	for length := pieces - 6; length < pieces+6; length++ {
		spec.Sandbox.Hide = []string{strings.Repeat("/xxxxxxx", pieces)[:length-len(order)]}
		if exit := b.run(spec); exit.Code != 0 {
			t.Errorf("%d bytes: %+v", length, exit)
		}
	}
}

func TestBoxOfWhatCannotBeExecuted(t *testing.T) {
	needLandlock(t)
	b := newBench(t)
	spec := b.boxed("")
	spec.Argv = []string{b.write("script", "#!/no/such/interpreter\n", 0o755)}
	exit := b.run(spec)
	if !exit.NotFound || exit.Code != 127 || exit.PID != 0 {
		t.Errorf("no interpreter: %+v", exit)
	}
	spec.Argv = []string{b.write("text", "no program", 0o755)}
	exit = b.run(spec)
	if !exit.NotExecutable || exit.PID != 0 || !strings.Contains(exit.Error, "exec format error") {
		t.Errorf("no program: %+v", exit)
	}
}

// BenchmarkStart compares starts in one run: another minus the first is what the box costs.
func BenchmarkStart(b *testing.B) {
	for _, name := range []string{"bare", "boxed", "network"} {
		b.Run(name, func(b *testing.B) {
			needNetwork(b)
			dir := b.TempDir()
			self, err := os.Executable()
			if err != nil {
				b.Fatal(err)
			}
			host := NewHost(self)
			defer host.Close()
			for i := 0; b.Loop(); i++ {
				spec := Spec{ID: "bench", Argv: []string{"/bin/true"}, Dir: dir, Record: filepath.Join(dir, "record")}
				if name != "bare" {
					spec.Sandbox = &sandbox.Profile{Mode: sandbox.Auto, Write: []string{dir}, Temp: filepath.Join(dir, "temp"),
						Hide: []string{filepath.Join(os.Getenv("HOME"), ".ssh")}}
				}
				if name == "network" {
					spec.Sandbox.Network = &proxy.Rules{}
				}
				job, err := host.Start(b.Context(), spec)
				if err != nil {
					b.Fatal(err)
				}
				<-job.Done()
				if exit := job.Exit(); exit.Code != 0 {
					b.Fatalf("%+v", exit)
				}
			}
		})
	}
}

// TestBoxKeepsItsOwnSockets: a command's own servers are reached by their names, those of others are not.
func TestBoxKeepsItsOwnSockets(t *testing.T) {
	needLandlock(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range []*proxy.Rules{nil, {}} {
		b, outside := newBench(t), t.TempDir()
		if len(outside) > 80 {
			if outside, err = os.MkdirTemp("/tmp", "s"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(outside) })
		}
		for _, name := range []string{outside + "/s", "@" + outside} {
			l, err := net.Listen("unix", name)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
		spec := b.boxed("")
		spec.Argv = []string{self, "-test.run=^TestConnectYourself$", "-test.v"}
		spec.Env = append(spec.Env, "CONNECT_YOURSELF="+outside)
		spec.Sandbox.Network = network
		if network != nil && sandbox.NetworkMissing() != nil {
			continue
		}
		if exit := b.run(spec); exit.Code != 0 || !strings.Contains(b.log(), "--- PASS") {
			t.Errorf("network %v: exit %+v: %s", network, exit, b.log())
		}
	}
}

func TestConnectYourself(t *testing.T) {
	outside := os.Getenv("CONNECT_YOURSELF")
	if outside == "" {
		t.Skip("it is run by TestBoxKeepsItsOwnSockets")
	}
	for _, name := range []string{"mine", os.Getenv("TMPDIR") + "/mine", "@mine" + outside} {
		l, err := net.Listen("unix", name)
		if err != nil {
			if len(name) > 100 {
				continue
			}
			t.Fatal(err)
		}
		conn, err := net.Dial("unix", name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		conn.Close()
		l.Close()
	}
	for _, name := range []string{outside + "/s", "@" + outside, "/proc/self/root" + outside + "/s"} {
		if conn, err := net.Dial("unix", name); err == nil {
			conn.Close()
			t.Errorf("%s is reached", name)
		}
	}
	if _, err := net.Dial("unix", "none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a socket that is not there: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			conn.Close()
		})
	}
	all.Wait()
	if _, err := net.Dial("tcp", "127.0.0.1:1"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
}
