package powercut

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Starter starts programs whose syncfs(2) and sync_file_range(2) the file system
// hears of. The kernel does not pass them on to FUSE, so the programs run under a
// seccomp filter that asks here for these two calls. The filter belongs to one thread of the test and
// is inherited by what that thread starts, and by nothing else.
type Starter struct {
	fs     *FS
	starts chan start
}

type start struct {
	cmd    *exec.Cmd
	result chan error
}

// NewStarter makes a starter of programs for one file system. It needs root.
func (f *FS) NewStarter() (*Starter, error) {
	s := &Starter{fs: f, starts: make(chan start)}
	listening := make(chan error)
	go s.run(listening)
	return s, <-listening
}

// Close ends the thread; what it started goes on.
func (s *Starter) Close() { close(s.starts) }

// Start is cmd.Start. A working directory on the disk is entered by a shell:
// between fork and exec the child is a part of the test, which waits for it
// without serving the disk that it would be waiting for.
func (s *Starter) Start(cmd *exec.Cmd) error {
	if strings.HasPrefix(cmd.Dir+"/", s.fs.Dir()+"/") {
		cmd.Args = append([]string{"sh", "-c", `cd "$0" && exec "$@"`, cmd.Dir, cmd.Path}, cmd.Args[1:]...)
		cmd.Path, cmd.Dir = "/bin/sh", ""
	}
	result := make(chan error)
	s.starts <- start{cmd, result}
	return <-result
}

// run never unlocks its thread, which ends with it: nothing else shall run under the filter.
func (s *Starter) run(listening chan<- error) {
	runtime.LockOSThread()
	fd, err := filter()
	listening <- err
	if err != nil {
		return
	}
	go s.answer(fd)
	for r := range s.starts {
		r.result <- r.cmd.Start()
	}
}

// filter puts the present thread under the filter and returns where the calls are told.
func filter() (int, error) {
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // seccomp_data.nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SYNCFS, Jt: 1},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SYNC_FILE_RANGE, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&prog)))
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

// answer serves the calls until the last program under the filter has ended.
func (s *Starter) answer(fd int) {
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
		r := s.respond(n)
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
	}
}

// respond does what a call is to do here, and lets the kernel do it elsewhere.
func (s *Starter) respond(n notice) response {
	pass := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	fd := fmt.Sprintf("/proc/%d/fd/%d", n.pid, n.args[0])
	at, err := os.Readlink(fd)
	if err != nil || !strings.HasPrefix(at+"/", s.fs.Dir()+"/") {
		return pass
	}
	if n.nr == unix.SYS_SYNCFS {
		return response{id: n.id, err: -int32(s.fs.Syncfs())} //nolint:gosec // an errno
	}
	var st unix.Stat_t
	if n.args[3]&unix.SYNC_FILE_RANGE_WAIT_AFTER != 0 && unix.Stat(fd, &st) == nil {
		s.fs.flushed(st.Ino)
	}
	return pass
}
