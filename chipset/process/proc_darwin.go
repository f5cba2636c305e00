package process

import "golang.org/x/sys/unix"

// BootID returns the kernel's name for this boot, "" when it has none.
func BootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

// startTime returns when a process started, in microseconds since 1970, 0 when it
// is not known.
func startTime(pid int) uint64 {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid {
		return 0
	}
	start := info.Proc.P_starttime
	return uint64(start.Sec)*1e6 + uint64(start.Usec)
}

func sameProcess(pid int, start uint64) bool {
	return pid > 0 && start != 0 && startTime(pid) == start
}
