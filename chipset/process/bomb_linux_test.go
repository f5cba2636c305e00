package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// comets is a program of 64 processes that go on for 20 seconds: each leaves group and session, forks and ends, again and again, so
// that none can be found for long by its number, its parent, its group or its session.
const comets = `perl -MPOSIX -e '$SIG{TERM} = "IGNORE"; $end = time + 20; fork for 1 .. 6;
	while (time < $end) { setsid; my $p = fork; exit if $p; select undef, undef, undef, 0.01 unless defined $p }'`

// TestBoxEndsBombs: processes that fork and leave faster than they can be found are ended all the same, soon.
func TestBoxEndsBombs(t *testing.T) {
	tests := []struct {
		name, script string
		want         Exit
	}{
		{"of a command that goes on", comets + " & exec sleep 60", Exit{Code: 137, Over: OverTasks}},
		{"that a command leaves behind", comets + " & exit 7", Exit{Code: 7}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			spec := b.boxed(test.script)
			spec.Limits = Limits{Tasks: 32}
			begun := time.Now()
			exit := b.run(spec)
			if took := time.Since(begun); exit.Code != test.want.Code || exit.Over != test.want.Over || took > 12*time.Second {
				t.Errorf("ended after %v: %+v: %s", took, exit, b.log())
			}
		})
	}
}

// A machine where root may make no control group, as in a container.
func TestBombsWithoutControlGroups(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("users without privileges have none anyway")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if exec.Command("unshare", "-m", "true").Run() != nil {
		t.Skip("this root may make no mount namespace")
	}
	cmd := exec.Command("sh", "-c", `mount -t tmpfs none /sys/fs/cgroup && exec "$0" -test.run='^TestBoxEndsBombs$'`, self)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// fakeGroup is a control group of a machine that has all controllers, as far as files show it.
func fakeGroup(t *testing.T, files map[string]string) *cgroup {
	t.Helper()
	g := &cgroup{dir: t.TempDir()}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func TestControlGroupKeepsLimits(t *testing.T) {
	for _, test := range []struct {
		limits       Limits
		memory, pids string
	}{
		{Limits{}, "", ""},
		{Limits{Memory: 1 << 30}, "1073741824", ""},
		{Limits{Tasks: 300}, "", "300"},
		{Limits{Memory: 64 << 20, Tasks: 16, Disk: 5}, "67108864", "16"},
	} {
		g := fakeGroup(t, map[string]string{"memory.max": "", "pids.max": ""})
		g.keep(test.limits)
		for file, want := range map[string]string{"memory.max": test.memory, "pids.max": test.pids} {
			if text, err := os.ReadFile(filepath.Join(g.dir, file)); err != nil || string(text) != want {
				t.Errorf("%+v: %s holds %q, want %q: %v", test.limits, file, text, want, err)
			}
		}
	}
	bare := fakeGroup(t, nil) // without controllers
	bare.keep(Limits{Memory: 1, Tasks: 1})
	if names, err := os.ReadDir(bare.dir); err != nil || len(names) > 0 {
		t.Errorf("files are made: %v, %v", names, err)
	}
}

func TestControlGroupTellsWhatWasRefused(t *testing.T) {
	for _, test := range []struct{ memory, pids, want string }{
		{"", "", ""},
		{"low 0\nhigh 0\nmax 7\noom 1\noom_kill 0\noom_group_kill 0\n", "max 0\n", ""},
		{"low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 0\n", "max 3\n", OverMemory},
		{"oom_kill 0\n", "max 12\n", OverTasks},
	} {
		if got := fakeGroup(t, map[string]string{"memory.events": test.memory, "pids.events": test.pids}).exceeded(); got != test.want {
			t.Errorf("memory %q, pids %q: %q, want %q", test.memory, test.pids, got, test.want)
		}
	}
	if got := (*cgroup)(nil).exceeded(); got != "" {
		t.Errorf("no group: %q", got)
	}
}

// A command that the kernel has refused processes is over its limit, whatever can be seen of it.
func TestControlGroupIsAsked(t *testing.T) {
	s := supervisor{group: fakeGroup(t, map[string]string{"pids.events": "max 1\n"})}
	if got := s.exceeded(); got != OverTasks {
		t.Errorf("it is over %q", got)
	}
}

// The kernel itself keeps the limits where it has the controllers.
func TestControlGroupOfTheMachine(t *testing.T) {
	g := newCgroup("test-of-limits", Limits{Memory: 64 << 20, Tasks: 32})
	if g == nil {
		t.Skip("this user may make no control group here")
	}
	defer g.remove()
	for file, want := range map[string]string{"memory.max": "67108864", "pids.max": "32"} {
		text, err := os.ReadFile(filepath.Join(g.dir, file))
		if err != nil {
			t.Skipf("the kernel offers no controller here: %v", err)
		}
		if strings.TrimSpace(string(text)) != want {
			t.Errorf("%s is %q, want %q", file, text, want)
		}
	}
}
