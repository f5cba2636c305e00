package refused

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state/statetest"
)

// call is a system call on a file.
type call struct {
	name string
	// folder and path are the places of its arguments; path is -1 for one on an open file.
	folder, path int
}

// calls are those that package os makes. Reads and writes are not among them: for the code above they fail as opening does.
func calls() map[int32]call {
	return map[int32]call{
		unix.SYS_OPENAT: {"open", 0, 1}, unix.SYS_NEWFSTATAT: {"stat", 0, 1}, unix.SYS_READLINKAT: {"readlink", 0, 1},
		unix.SYS_MKDIRAT: {"mkdir", 0, 1}, unix.SYS_UNLINKAT: {"unlink", 0, 1}, unix.SYS_SYMLINKAT: {"symlink", 1, 2},
		unix.SYS_RENAMEAT: {"rename", 0, 1}, unix.SYS_RENAMEAT2: {"rename", 0, 1}, unix.SYS_LINKAT: {"link", 2, 3},
		unix.SYS_FSYNC: {"fsync", 0, -1}, unix.SYS_FDATASYNC: {"fsync", 0, -1}, unix.SYS_SYNCFS: {"syncfs", 0, -1}, unix.SYS_GETDENTS64: {"list", 0, -1},
	}
}

// Calls runs do on a thread of its own, and returns the calls that it makes there on files below a folder. The nth of
// them, counted from 1, fails with EIO, and none if n is 0. Calls of other goroutines, and of programs that do starts, are
// left alone.
func Calls(t testing.TB, below string, n int, do func()) []Call {
	t.Helper()
	r := &refusal{below: below, nth: n, calls: calls()}
	begun, over := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(over)
		runtime.LockOSThread() // and never free it: nothing else shall run under the filter
		r.thread = uint32(unix.Gettid())
		fd, err := r.filter()
		begun <- err
		if err == nil {
			go r.answer(fd)
			do()
		}
	}()
	if err := <-begun; err != nil {
		statetest.Missing(t, "no system call can be made to fail: "+err.Error())
	}
	<-over
	r.Lock()
	defer r.Unlock()
	return r.made
}

// refusal is one run of Calls.
type refusal struct {
	below  string
	nth    int
	calls  map[int32]call
	thread uint32

	sync.Mutex
	made []Call
}

// filter puts this thread under a filter that asks before each of the calls, and returns where it asks.
func (r *refusal) filter() (int, error) {
	const number, pointerHigh = 0, 12 // of struct seccomp_data: nr, the upper half of instruction_pointer
	// The code of a Go program lies in the lowest 4 GiB, unlike that of git, which is not asked about.
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: pointerHigh},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
	}
	for nr := range r.calls {
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(nr), Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	// With the second flag (Linux 5.19) the runtime's signals do not interrupt a call that has been taken note of.
	const listen, uninterrupted = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, listen|uninterrupted, uintptr(unsafe.Pointer(&prog)))
	if errno == unix.EINVAL {
		fd, _, errno = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, listen, uintptr(unsafe.Pointer(&prog)))
	}
	if errno != 0 {
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	unix.CloseOnExec(int(fd))
	return int(fd), nil
}

// notice is struct seccomp_notif.
type notice struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

// answer answers until the thread, and every program that it started, has ended.
func (r *refusal) answer(fd int) {
	defer unix.Close(fd)
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		if fds[0].Revents&unix.POLLIN == 0 {
			return
		}
		var n notice
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
			continue // its caller was killed meanwhile
		}
		a := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		counted, refused := r.note(n)
		if refused {
			a = response{id: n.id, err: -int32(unix.EIO)}
		}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
		if errno != 0 && counted {
			r.forgetLast() // a signal of the runtime has interrupted the call, which is made again
		}
	}
}

// note counts a call of the thread below the folder, and reports whether it is to fail.
func (r *refusal) note(n notice) (counted, refused bool) {
	if n.pid != r.thread {
		return false, false
	}
	c := r.calls[n.nr]
	path := ""
	if c.path >= 0 {
		path = textAt(n.args[c.path])
	}
	if !filepath.IsAbs(path) {
		folder, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", int32(n.args[c.folder])))
		if err != nil {
			return false, false
		}
		path = filepath.Join(folder, path)
	}
	if path != r.below && !strings.HasPrefix(path, r.below+"/") {
		return false, false
	}
	r.Lock()
	defer r.Unlock()
	made := Call{What: c.name + " " + strings.TrimPrefix(strings.TrimPrefix(path, r.below), "/")}
	if r.nth == 0 {
		made.From = callers()
	}
	r.made = append(r.made, made)
	return true, len(r.made) == r.nth
}

func (r *refusal) forgetLast() {
	r.Lock()
	defer r.Unlock()
	r.made = r.made[:len(r.made)-1]
}

// callers are the lines of the goroutine that waits for an answer.
func callers() string {
	buf := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "locked to thread") && strings.Contains(stack, "refused.Calls.func") {
			return strings.Join(regexp.MustCompile(`\S+\.go:\d+`).FindAllString(stack, -1), " ")
		}
	}
	return ""
}

// textAt is a text in the memory of this process.
func textAt(at uint64) string {
	buf := make([]byte, unix.PathMax)
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}
	remote := []unix.RemoteIovec{{Base: uintptr(at), Len: len(buf)}}
	n, err := unix.ProcessVMReadv(os.Getpid(), local, remote, 0)
	if err != nil {
		return ""
	}
	text, _, _ := bytes.Cut(buf[:n], []byte{0})
	return string(text)
}
