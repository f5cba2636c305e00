package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// BenchmarkStart compares starts in one run: the second minus the first is what the box costs.
func BenchmarkStart(b *testing.B) {
	for _, boxed := range []bool{false, true} {
		name := map[bool]string{false: "bare", true: "boxed"}[boxed]
		b.Run(name, func(b *testing.B) {
			needLandlock(b)
			dir := b.TempDir()
			self, err := os.Executable()
			if err != nil {
				b.Fatal(err)
			}
			host := NewHost(self)
			defer host.Close()
			for i := 0; b.Loop(); i++ {
				spec := Spec{ID: "bench", Argv: []string{"/bin/true"}, Dir: dir, Record: filepath.Join(dir, "record")}
				if boxed {
					spec.Sandbox = &sandbox.Profile{Mode: sandbox.Auto, Write: []string{dir}, Temp: filepath.Join(dir, "temp"),
						Hide: []string{filepath.Join(os.Getenv("HOME"), ".ssh")}}
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
