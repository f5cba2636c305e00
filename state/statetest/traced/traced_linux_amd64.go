package traced

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state/statetest"
)

// Calls runs one test of this test binary in a child under ptrace and returns,
// for each word that it said, the calls that followed: fsync, syncfs and rename.
func Calls(t testing.TB, test string, env ...string) map[string]string {
	t.Helper()
	runtime.LockOSThread() // ptrace is a matter between threads
	defer runtime.UnlockOSThread()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		statetest.Missing(t, "no process may be traced: "+err.Error())
	}
	first := cmd.Process.Pid
	defer func() { _, _ = cmd.Process.Wait() }()
	var status unix.WaitStatus
	if _, err := unix.Wait4(first, &status, 0, nil); err != nil {
		t.Fatal(err)
	}
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL
	if err := unix.PtraceSetOptions(first, options); err != nil {
		t.Fatal(err)
	}
	calls := map[string][]string{}
	at := ""
	entered := map[int]bool{}
	for pid := first; ; {
		signal := 0
		if status.Stopped() && status.StopSignal() != unix.SIGTRAP && status.StopSignal() != unix.SIGTRAP|0x80 && status.StopSignal() != unix.SIGSTOP {
			signal = int(status.StopSignal())
		}
		if status.Stopped() {
			_ = unix.PtraceSyscall(pid, signal) // one that has just died has no next call
		}
		if pid, err = unix.Wait4(-1, &status, unix.WALL, nil); err != nil {
			break // no child is left
		}
		if status.Exited() && pid == first {
			if status.ExitStatus() != 0 {
				t.Fatalf("the child ended with %d", status.ExitStatus())
			}
			break
		}
		if !status.Stopped() || status.StopSignal() != unix.SIGTRAP|0x80 {
			continue
		}
		if entered[pid] = !entered[pid]; !entered[pid] {
			continue
		}
		name, path := syscallOf(pid)
		if word, said := strings.CutPrefix(filepath.Base(path), "say-"); name == "mkdir" && said {
			at = word
		} else if name != "" && name != "mkdir" {
			calls[at] = append(calls[at], name)
		}
	}
	joined := map[string]string{}
	for what, names := range calls {
		joined[what] = strings.Join(names, " ")
	}
	return joined
}

// syscallOf names the call that a stopped thread is about to make, if it is one
// that the test is about, and its path.
func syscallOf(pid int) (name, path string) {
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(pid, &regs) != nil {
		return "", ""
	}
	switch regs.Orig_rax {
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		return "fsync", ""
	case unix.SYS_SYNCFS:
		return "syncfs", ""
	case unix.SYS_RENAME, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		return "rename", ""
	case unix.SYS_MKDIRAT:
		return "mkdir", textAt(pid, uintptr(regs.Rsi))
	case unix.SYS_MKDIR:
		return "mkdir", textAt(pid, uintptr(regs.Rdi))
	}
	return "", ""
}

func textAt(pid int, at uintptr) string {
	buf := make([]byte, 512)
	n, err := unix.PtracePeekData(pid, at, buf)
	if err != nil {
		return ""
	}
	text, _, _ := bytes.Cut(buf[:n], []byte{0})
	return string(text)
}
