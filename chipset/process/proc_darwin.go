package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// BootID returns the kernel's name for this boot, "" when it has none.
func BootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

// mountOf returns the number of the device that a folder is on, 0 where it can't be looked at.
func mountOf(dir string) uint64 {
	var s unix.Stat_t
	if unix.Stat(dir, &s) != nil {
		return 0
	}
	return uint64(uint32(s.Dev))
}

// bootTime returns the time of day at which this machine started, zero when it is not known.
func bootTime() time.Time {
	at, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return time.Time{}
	}
	return time.Unix(at.Unix())
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
