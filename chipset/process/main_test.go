package process

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds every wait for another process; it is reached only by a failure.
const patience = time.Minute

// boxEndsEnv has a box ended by TERM before it has read its order.
const boxEndsEnv = "PROCESS_TEST_BOX_ENDS"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case SuperviseArg:
			os.Exit(Supervise(os.Stdin))
		case BrokeredArg:
			os.Exit(beBrokered(os.Args[2:]))
		case "caller":
			os.Exit(beCaller(os.Args[2:]))
		case BoxArg:
			if os.Getenv(boxEndsEnv) != "" {
				_ = unix.Kill(os.Getpid(), unix.SIGTERM)
				select {}
			}
			os.Exit(Box(os.Args[2:]))
		case "role":
			os.Exit(beRole())
		case "hunter":
			os.Exit(beHunter())
		}
	}
	// Or every supervisor under the race detector takes a second to exit.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// beRole is a role process for tests that kill one: it starts the job that it
// reads, says so, and does nothing more.
func beRole() int {
	var spec Spec
	if err := json.NewDecoder(os.Stdin).Decode(&spec); err != nil {
		fmt.Println(err)
		return 1
	}
	self, _ := os.Executable()
	job, err := start(context.Background(), self, spec, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("started")
	<-job.Done()
	return 0
}

// beHunter ends the processes of its own session, of which it is one.
func beHunter() int {
	session := os.Getenv(EnvSession)
	killed, err := KillOrphans(context.Background(), func(env map[string]string) bool {
		return session != "" && env[EnvSession] == session
	}, time.Second)
	fmt.Println(killed, err)
	return 0
}

// bench is what one test needs to run jobs: a directory, and a session that no
// other process on the machine has.
type bench struct {
	t       *testing.T
	dir     string
	session string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), session: fmt.Sprintf("s%d-%d", os.Getpid(), time.Now().UnixNano())}
	t.Cleanup(func() {
		if left := sessionProcesses(b.session); len(left) > 0 {
			t.Errorf("processes are left: %v", left)
			for _, pid := range left {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	})
	return b
}

// spec returns the job of a shell script.
func (b *bench) spec(script string) Spec {
	return Spec{
		ID:     b.session,
		Argv:   []string{"sh", "-c", script},
		Dir:    b.dir,
		Env:    []string{"PATH=" + os.Getenv("PATH"), EnvSession + "=" + b.session},
		Log:    filepath.Join(b.dir, "log"),
		Record: filepath.Join(b.dir, b.session+".json"),
		Grace:  200 * time.Millisecond,
	}
}

func (b *bench) start(spec Spec) *Job {
	b.t.Helper()
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	job, err := start(b.t.Context(), self, spec, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return job
}

func (b *bench) run(spec Spec) Exit {
	b.t.Helper()
	return b.wait(b.start(spec))
}

// wait returns the exit of a job, having checked that its record says the same.
func (b *bench) wait(job *Job) Exit {
	b.t.Helper()
	select {
	case <-job.Done():
	case <-time.After(patience):
		b.t.Fatal("the job does not end")
	}
	exit := job.Exit()
	record, found, err := ReadExit(job.spec.Record)
	if err != nil || !found {
		b.t.Fatalf("record: found %v, %v", found, err)
	}
	got, _ := json.Marshal(record)
	want, _ := json.Marshal(exit)
	if string(got) != string(want) {
		b.t.Errorf("record %s, exit %s", got, want)
	}
	return exit
}

func (b *bench) log() string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, "log"))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// await waits until the log of another process holds text.
func (b *bench) await(text string) {
	b.t.Helper()
	b.until("the log holds "+text, func() bool {
		data, _ := os.ReadFile(filepath.Join(b.dir, "log"))
		return strings.Contains(string(data), text)
	})
}

// until polls for what another process brings about.
func (b *bench) until(what string, done func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited in vain until %s", what)
		}
	}
}

func (b *bench) write(name, text string, mode os.FileMode) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		b.t.Fatal(err)
	}
	return path
}
