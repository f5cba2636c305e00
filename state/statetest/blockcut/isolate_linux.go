package blockcut

import (
	"flag"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state/statetest"
)

const isolatedVar = "CHIPSET_BLOCKCUT_ISOLATED"

// Isolated runs the calling test again in a process with a mount namespace of
// its own, and returns true there. In the first process it returns false when
// the other has ended; the test has then failed or not, and must return.
//
// Loop devices and mounts of the namespace end with its last process, so a test
// that is killed leaves nothing mounted.
func Isolated(t *testing.T) bool {
	t.Helper()
	if os.Getenv(isolatedVar) == t.Name() {
		return true
	}
	statetest.RequireFUSE(t)
	statetest.RequireLoop(t)
	pattern := "^" + t.Name() + "$"
	if _, subtests, ok := strings.Cut(flag.Lookup("test.run").Value.String(), "/"); ok {
		pattern += "/" + subtests
	}
	args := []string{"-test.run=" + pattern}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	if deadline, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+time.Until(deadline).String())
	}
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), isolatedVar+"="+t.Name())
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // the signal comes when the thread that started the process ends
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		t.Errorf("in its own mount namespace: %v", err)
	}
	return false
}
