// Package lostsync makes syncs of whole file systems fail, as on a disk that has lost what was written.
package lostsync

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state/statetest"
)

const childEnv = "LOSTSYNC_TEST" // CHIPSET_ variables are taken away

// Run runs body in a process of its own, a child that runs the same test. From the call of fail on, each syncfs of that
// process and its children fails with EIO.
func Run(t *testing.T, body func(fail func())) {
	t.Helper()
	if os.Getenv(childEnv) == t.Name() {
		body(func() {
			if err := filter(); err != nil {
				t.Skip("no system call can be made to fail: ", err)
			}
		})
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
	cmd.Env = append(os.Environ(), childEnv+"="+t.Name())
	switch out, err := cmd.CombinedOutput(); {
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		statetest.Missing(t, string(out))
	}
}

// filter installs the filter for all threads of this process.
func filter() error {
	const (
		setModeFilter, allThreads = 1, 1 // SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC
		fails, allow              = 0x00050000 | uint32(unix.EIO), 0x7fff0000
	)
	runtime.LockOSThread() // for no_new_privs, which the kernel gives the other threads with the filter
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SYNCFS, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: fails}, {Code: unix.BPF_RET | unix.BPF_K, K: allow},
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, allThreads, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return errno
	}
	return nil
}
