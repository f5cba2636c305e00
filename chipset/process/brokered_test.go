package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/process/broker"
)

// beBrokered is the program that a supervisor runs for a worker of these tests.
func beBrokered(args []string) int {
	files, command, err := BrokeredArgs(args)
	if err != nil {
		return 99
	}
	cwd, _ := os.Getwd()
	fmt.Printf("%q agent %q mine %q address %q in %s\n", command, os.Getenv("CHIPSET_AGENT"), os.Getenv("MINE"), os.Getenv(broker.EnvAddress), filepath.Base(cwd))
	for i, name := range files {
		var text bytes.Buffer
		_, _ = text.ReadFrom(os.NewFile(uintptr(3+i), name))
		fmt.Printf("%s holds %q\n", name, text.String())
	}
	switch command[0] {
	case "die":
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	case "hang":
		fmt.Println("pid", os.Getpid())
		time.Sleep(time.Hour) // an empty select ends a program without cgo: nothing could wake it
	}
	return 7
}

// beCaller is a process that calls its broker, with a file if one is named.
func beCaller(args []string) int {
	a, err := broker.ParseAddress(os.Getenv(broker.EnvAddress))
	if err != nil {
		fmt.Println(err)
		return 98
	}
	c := broker.Command{Args: args, Descriptors: []int{0, 1, 2}}
	if f, err := os.Open("given"); err == nil {
		c.Files, c.Descriptors = []string{"given"}, append(c.Descriptors, int(f.Fd()))
	}
	status, err := broker.Call(context.Background(), a, c)
	if err != nil {
		fmt.Println("error:", err)
	}
	return status.Code
}

// brokered returns the job of a script that calls its broker with $CALL ARG….
func (b *bench) brokered(script string) (Spec, broker.Address) {
	b.t.Helper()
	folder, err := broker.Folder()
	if err != nil {
		b.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	a := broker.NewAddress(folder)
	spec := b.spec(script)
	spec.Env = append(spec.Env, broker.EnvAddress+"="+a.String(), "CHIPSET_AGENT=alpha", "CALL="+self+" caller", "GORACE=atexit_sleep_ms=0")
	rig := filepath.Join(b.dir, "rig")
	if err := os.MkdirAll(rig, 0o700); err != nil {
		b.t.Fatal(err)
	}
	spec.Broker = &Broker{Address: a.String(), Dir: rig, Env: []string{"MINE=of the rig", "GORACE=atexit_sleep_ms=0"}}
	return spec, a
}

func TestBrokerRunsCommandsAsTheAgent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("given", "with the worker's rights", 0o600)
	spec, a := b.brokered(`cd / ; CHIPSET_AGENT=mayor MINE=forged $CALL a 'b c'; echo "code $?"; cd - >/dev/null; $CALL with; $CALL die; echo "code $?"`)
	b.run(spec)
	got := b.log()
	for _, want := range []string{
		`["a" "b c"] agent "alpha" mine "of the rig" address "" in rig`, "code 7\n", `given holds "with the worker's rights"`, "code 137\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing from:\n%s", want, got)
		}
	}
	if _, err := os.Lstat(a.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	if _, err := broker.Call(t.Context(), a, broker.Command{Descriptors: []int{0, 1, 2}}); !errors.Is(err, broker.ErrGone) {
		t.Errorf("a call after the end: %v", err)
	}
}

func TestBrokerRefusesStrangers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec, a := b.brokered(`CHIPSET_BROKER=wrong@${CHIPSET_BROKER#*@} $CALL x; echo "code $?"; until [ -e over ]; do sleep 0.01; done`)
	job := b.start(spec)
	b.await("code 1\n")
	if got := b.log(); !strings.Contains(got, broker.ErrRefused.Error()) || strings.Contains(got, "agent") {
		t.Errorf("a wrong secret: %s", got)
	}
	if runtime.GOOS == "linux" { // this test knows the secret, and is no process of the session
		if _, err := broker.Call(t.Context(), a, broker.Command{Args: []string{"x"}, Descriptors: []int{0, 1, 2}}); !errors.Is(err, broker.ErrRefused) {
			t.Errorf("a process of another session: %v", err)
		}
	}
	b.write("over", "", 0o600)
	b.wait(job)
}

// A caller that is killed takes its command along; the rest of the session goes on.
func TestBrokerEndsTheCommandOfAKilledCaller(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec, _ := b.brokered(`$CALL hang & pid=$!; until grep -q "^pid [0-9]" log; do sleep 0.01; done; kill -9 $pid; wait $pid; echo "killed $?"
		until [ -e over ]; do sleep 0.01; done; $CALL again; echo "code $?"`)
	job := b.start(spec)
	b.await("killed 137\n")
	_, text, _ := strings.Cut(b.log(), "pid ")
	pid, err := strconv.Atoi(strings.Fields(text)[0])
	if err != nil {
		t.Fatal(err)
	}
	b.until("its command is gone", func() bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) })
	b.write("over", "", 0o600)
	b.wait(job)
	if got := b.log(); !strings.Contains(got, "code 7\n") {
		t.Errorf("the session does not go on: %s", got)
	}
}

// What the command leaves at its broker ends with it.
func TestBrokeredCommandsEndWithTheJob(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec, _ := b.brokered(`$CALL hang & until grep -q "^pid [0-9]" log; do sleep 0.01; done`)
	if exit := b.run(spec); exit.Code != 0 {
		t.Errorf("exit %+v", exit)
	} // newBench finds what is left
}
