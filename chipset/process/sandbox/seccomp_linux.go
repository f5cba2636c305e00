//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// denied are the system calls that no command of a rig needs: those that inspect other processes, mount, use kernel keys, join
// namespaces, or change the kernel.
func denied() []uint32 {
	return []uint32{
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
		unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SETNS,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_BPF, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
		// Its operations pass every filter.
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	}
}

const (
	namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

	// Offsets in struct seccomp_data; those of arguments are of the lower half, because both architectures are little-endian.
	offsetCall, offsetArch, offsetFirst, offsetSecond, offsetThird = 0, 4, 16, 24, 32

	// x32 marks the calls of the third ABI of an x86-64 kernel.
	x32 = 0x40000000

	ioctlTypeInto, ioctlConsole = unix.TIOCSTI, 0x541C // TIOCLINUX
)

// program returns the filter. It refuses all calls of other architectures and those of denied; clone and unshare that make a
// namespace; ioctl that types into a terminal; prlimit64 that changes another process (a limit of zero seconds ends it); and fcntl that
// takes a lease, which delays whoever opens the file. clone3 fails with ENOSYS, because its flags are in memory; the C library
// falls back to clone. With gate, connect is decided by whoever holds the filter's file.
func program(gate bool) []unix.SockFilter {
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		least = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		bits  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	)
	answer := func(value uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value} }
	refuse, missing, allow := answer(seccompErrno|uint32(unix.EPERM)), answer(seccompErrno|uint32(unix.ENOSYS)), answer(seccompAllow)

	filter := []unix.SockFilter{
		{Code: load, K: offsetArch}, {Code: equal, K: architecture(), Jt: 1}, missing,
		{Code: load, K: offsetCall}, {Code: least, K: x32, Jf: 1}, missing,
		{Code: equal, K: unix.SYS_CLONE3, Jf: 1}, missing,
	}
	if gate {
		filter = append(filter, unix.SockFilter{Code: equal, K: unix.SYS_CONNECT, Jf: 1}, answer(seccompNotify))
	}
	for _, call := range denied() {
		filter = append(filter, unix.SockFilter{Code: equal, K: call, Jf: 1}, refuse)
	}
	for _, call := range []struct{ number, flags uint32 }{{unix.SYS_CLONE, namespaces}, {unix.SYS_UNSHARE, namespaces | unix.CLONE_NEWTIME}} {
		filter = append(filter, unix.SockFilter{Code: equal, K: call.number, Jf: 4},
			unix.SockFilter{Code: load, K: offsetFirst}, unix.SockFilter{Code: bits, K: call.flags, Jf: 1}, refuse, allow)
	}
	filter = append(filter, unix.SockFilter{Code: equal, K: unix.SYS_PRLIMIT64, Jf: 8},
		unix.SockFilter{Code: load, K: offsetFirst}, unix.SockFilter{Code: equal, K: 0, Jt: 5},
		unix.SockFilter{Code: load, K: offsetThird}, unix.SockFilter{Code: equal, K: 0, Jf: 2},
		unix.SockFilter{Code: load, K: offsetThird + 4}, unix.SockFilter{Code: equal, K: 0, Jt: 1}, refuse, allow,
		unix.SockFilter{Code: equal, K: unix.SYS_FCNTL, Jf: 4},
		unix.SockFilter{Code: load, K: offsetSecond}, unix.SockFilter{Code: equal, K: unix.F_SETLEASE, Jf: 1}, refuse, allow)
	return append(filter, unix.SockFilter{Code: equal, K: unix.SYS_IOCTL, Jf: 4},
		unix.SockFilter{Code: load, K: offsetSecond}, unix.SockFilter{Code: equal, K: ioctlTypeInto, Jt: 1},
		unix.SockFilter{Code: equal, K: ioctlConsole, Jf: 1}, refuse, allow)
}

const seccompErrno, seccompNotify, seccompAllow = 0x00050000, 0x7fc00000, 0x7fff0000 // SECCOMP_RET_ERRNO, _USER_NOTIF, _ALLOW

func architecture() uint32 {
	if runtime.GOARCH == "arm64" {
		return unix.AUDIT_ARCH_AARCH64
	}
	return unix.AUDIT_ARCH_X86_64
}

// seccompAvailable returns why the kernel filters no system calls, or nil.
func seccompAvailable() error {
	const actionAvailable = 2 // SECCOMP_GET_ACTION_AVAIL
	action := uint32(seccompErrno)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, actionAvailable, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return errno
	}
	return nil
}

// filterSystemCalls installs the filter for the calling thread and the program that it executes. It needs no_new_privs. With gate it
// returns the listener for connect(2); nil where a filter around this process has one already.
func filterSystemCalls(gate bool) (*os.File, error) {
	const (
		setModeFilter = 1           // SECCOMP_SET_MODE_FILTER
		asked         = 1<<3 | 1<<5 // SECCOMP_FILTER_FLAG_NEW_LISTENER, _WAIT_KILLABLE_RECV
	)
	filter := program(gate)
	if len(filter) > unix.BPF_MAXINSNS {
		return nil, errors.New("the filter is too long")
	}
	flags := uintptr(0)
	if gate {
		flags = asked
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, flags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(filter)
	switch {
	case errno == unix.EBUSY && gate:
		return filterSystemCalls(false)
	case errno != 0:
		return nil, errno
	case gate:
		return os.NewFile(fd, "seccomp"), nil
	}
	return nil, nil //nolint:nilnil // nobody is asked
}
