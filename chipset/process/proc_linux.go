package process

import (
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// process is one line of the process table. Its start tells it from a later process
// of the same number.
type process struct {
	pid, ppid, pgid, session int
	start                    uint64
	name                     string
	dead                     bool    // a zombie: it runs no more, its parent has not looked yet
	cpu, reapedCPU           float64 // seconds: its own, and that of children it has waited for
	threads                  int
	resident                 int64 // bytes of memory, those among them that it shares with others
}

// readProcess returns false when there is no such process.
func readProcess(pid int) (process, bool) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return process{}, false
	}
	return statProcess(proc)
}

func statProcess(proc procfs.Proc) (process, bool) {
	stat, err := proc.Stat()
	if err != nil {
		return process{}, false
	}
	// The kernel counts these in hundredths of a second for every user program.
	const ticks = 100
	return process{
		pid: stat.PID, ppid: stat.PPID, pgid: stat.PGRP, session: stat.Session,
		start: stat.Starttime, name: stat.Comm, dead: stat.State == "Z" || stat.State == "X",
		cpu: stat.CPUTime(), reapedCPU: float64(stat.CUTime+stat.CSTime) / ticks,
		threads: stat.NumThreads, resident: int64(stat.ResidentMemory()),
	}, true
}

// processTable reads every process. One that comes or goes meanwhile may or may
// not be in it.
func processTable() ([]process, error) {
	procs, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	table := make([]process, 0, len(procs))
	for _, proc := range procs {
		if p, ok := statProcess(proc); ok {
			table = append(table, p)
		}
	}
	return table, nil
}

// descendants returns the living descendants of pid.
func descendants(pid int) []process {
	table, err := processTable()
	if err != nil {
		return nil
	}
	return below(table, map[int]bool{pid: true})
}

// descends reports whether a living process descends from this one.
func descends(pid int) bool {
	for pid > 1 && pid != os.Getpid() {
		p, ok := readProcess(pid)
		if !ok || p.ppid == pid {
			return false
		}
		pid = p.ppid
	}
	return pid == os.Getpid()
}

// AnyAncestor reports whether one of the processes that this one descends from was started with an
// environment that has something.
func AnyAncestor(has func(env map[string]string) bool) bool {
	for p, ok := readProcess(os.Getppid()); ok && p.pid > 1; p, ok = readProcess(p.ppid) {
		if env, known := environ(p.pid); known && has(env) {
			return true
		}
	}
	return false
}

// Ancestors returns the programs that this process descends from, the nearest first. Shells, which only pass a
// command on, are left out.
func Ancestors() []Program {
	var all []Program
	for p, ok := readProcess(os.Getppid()); ok && p.pid > 1; p, ok = readProcess(p.ppid) {
		if !slices.Contains([]string{"sh", "bash", "dash", "zsh", "fish", "ksh"}, p.name) {
			all = append(all, Program{PID: p.pid, Start: p.start})
		}
	}
	return all
}

// below returns the living processes of table that descend from one of roots.
func below(table []process, roots map[int]bool) []process {
	children := make(map[int][]process)
	for _, p := range table {
		children[p.ppid] = append(children[p.ppid], p)
	}
	var found []process
	seen := make(map[int]bool)
	var walk func(pid int)
	walk = func(pid int) {
		for _, p := range children[pid] {
			if seen[p.pid] {
				continue
			}
			seen[p.pid] = true
			if !p.dead {
				found = append(found, p)
			}
			walk(p.pid)
		}
	}
	for pid := range roots {
		walk(pid)
	}
	return found
}

// alive reports whether this very process still runs.
func (p process) alive() bool {
	now, ok := readProcess(p.pid)
	return ok && now.start == p.start && !now.dead
}

// signal signals this very process, or returns ESRCH. A descriptor of the process
// is taken before its start is compared, so its number can't change hands between.
func (p process) signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return unix.ESRCH
	}
	if err == nil {
		defer unix.Close(fd)
	}
	if !p.alive() {
		return unix.ESRCH
	}
	if err != nil {
		// Before Linux 5.3, or behind a filter that does not know the call.
		return unix.Kill(p.pid, sig)
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// stopAll stops all that find returns, until it finds no other: what forks faster than it can be killed holds still then.
func stopAll(find func() []process) {
	const mostLooks = 100
	stopped := map[process]bool{}
	for range mostLooks {
		before := len(stopped)
		for _, p := range find() {
			if id := p.identity(); !stopped[id] {
				stopped[id] = true
				_ = p.signal(unix.SIGSTOP)
			}
		}
		if len(stopped) == before {
			return
		}
	}
}

// environ returns the environment a process was started with, and false when it
// may not be read or there is none.
func environ(pid int) (map[string]string, bool) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return nil, false
	}
	entries, err := proc.Environ()
	if err != nil || len(entries) == 0 {
		return nil, false
	}
	env := make(map[string]string, len(entries))
	for _, entry := range entries {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	return env, true
}

// BootID returns the kernel's name for this boot, "" when it has none.
func BootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// mountOf returns the kernel's number for the mount that a folder is on, 0 where it has none. A new kernel
// gives none of them a second time before the next boot.
func mountOf(dir string) uint64 {
	for _, mask := range []int{unix.STATX_MNT_ID_UNIQUE, unix.STATX_MNT_ID} {
		var s unix.Statx_t
		if unix.Statx(unix.AT_FDCWD, dir, unix.AT_STATX_DONT_SYNC, mask, &s) == nil && int(s.Mask)&mask != 0 {
			return s.Mnt_id
		}
	}
	return 0
}

// bootTime returns the time of day at which this machine started, zero when it is not known. It moves with
// the clock.
func bootTime() time.Time {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(up.Nano()))
}

// startTime returns when a process started, in clock ticks since boot, 0 when it is
// not known.
func startTime(pid int) uint64 {
	p, _ := readProcess(pid)
	return p.start
}

func sameProcess(pid int, start uint64) bool {
	if pid <= 0 {
		return false
	}
	return process{pid: pid, start: start}.alive()
}

// cpuBelow returns the seconds of processor time of everything a supervisor has run
// so far, living or not. It can shrink by what a process leaves behind that nobody
// waited for.
func cpuBelow(supervisor int) (float64, error) {
	table, err := processTable()
	if err != nil {
		return 0, err
	}
	total := 0.0
	for _, p := range table {
		if p.pid == supervisor {
			total += p.reapedCPU
		}
	}
	for _, p := range below(table, map[int]bool{supervisor: true}) {
		total += p.cpu + p.reapedCPU
	}
	return total, nil
}

// cpuOfIdle is cpuBelow for a supervisor without a job.
func cpuOfIdle(supervisor int) float64 {
	p, _ := readProcess(supervisor)
	return p.reapedCPU
}
