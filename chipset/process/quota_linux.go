package process

import (
	"errors"
	"io/fs"
	"os"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// dropBeginning gives the first bytes of a file back to the disk.
func dropBeginning(file *os.File, bytes int64) error {
	if bytes <= 0 {
		return nil
	}
	return unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, bytes)
}

// exceeded names which of Tasks and Memory the command uses more of, or "".
func (s *supervisor) exceeded() string {
	if what := s.group.exceeded(); what != "" {
		return what
	}
	l, tasks, memory := s.spec.Limits, 0, int64(0)
	all := descendants(os.Getpid())
	for _, p := range all {
		tasks += p.threads
		memory += p.resident
	}
	switch {
	case l.Tasks > 0 && tasks > l.Tasks:
		return OverTasks
	case l.Memory > 0 && memory > l.Memory && proportional(all) > l.Memory:
		return OverMemory
	}
	return ""
}

// proportional is the memory of processes in bytes, of which what several share counts once. That takes the kernel longer.
func proportional(all []process) int64 {
	var memory int64
	for _, p := range all {
		proc, err := procfs.NewProc(p.pid)
		if err != nil {
			continue
		}
		maps, err := proc.ProcSMapsRollup()
		switch {
		case err == nil:
			memory += int64(maps.Pss + maps.SwapPss)
		case errors.Is(err, fs.ErrPermission):
			memory += p.resident // it hides from its user
		default: // it has ended meanwhile
		}
	}
	return memory
}

// processesKnown: Memory and Tasks are.
const processesKnown = true

// MachineMemory is what the machine has, in bytes; 0 is not known.
func MachineMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
