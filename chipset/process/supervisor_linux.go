package process

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/process/broker"
)

// mostReaped bounds how many ends are taken note of at once.
const mostReaped = 64

// maxSweep bounds the time of one sweep of KILL.
const maxSweep = time.Second

// prepareSupervisor makes every descendant that loses its parent a child of this
// process, and keeps descriptors it was started with to itself.
func prepareSupervisor() {
	// Both exist since long before the oldest kernel that Go runs on, or are a
	// precaution only (close_range, Linux 5.11).
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	_ = unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC)
}

func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// child is the command and everything that descends from it.
type child struct {
	pid   int
	group *cgroup

	mu sync.Mutex
	// reaped means that pid may by now belong to somebody else.
	reaped bool
	// brokered are the commands that run for it, with who waits for their end.
	brokered map[int]chan<- unix.WaitStatus
	// gone means that nothing of the command is left, and nothing may be started.
	gone bool
	// orphans counts the processes that have ended after their parents since a time. More than mostOrphans in a second are too many; 0 is
	// no bound.
	orphans, mostOrphans int
	since                time.Time
}

// follow returns the command that a process is the first of.
func (s *supervisor) follow(pid int) *child {
	return &child{pid: pid, group: s.group, mostOrphans: s.spec.Limits.Tasks}
}

// wait reports the command's end, and then the end of everything: since orphans
// become children of the subreaper, having no child is having no descendant.
func (c *child) wait(events chan<- childEvent) {
	for {
		// Looking without reaping leaves the number of the command taken until
		// the lock is held, so that signal never hits a stranger.
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != nil && !errors.Is(err, unix.ECHILD) {
			continue
		}
		event := c.reap()
		if event.exited || event.gone || event.over {
			events <- event
		}
		if event.gone {
			return
		}
	}
}

func (c *child) reap() childEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	var event childEvent
	for range mostReaped {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			c.gone, event.gone = true, true
			return event
		case pid == 0:
			return event
		case pid == c.pid:
			c.reaped = true
			event.exited, event.status = true, status
		case c.brokered[pid] != nil:
			c.brokered[pid] <- status
			delete(c.brokered, pid)
		default:
			event.over = c.countOrphan() || event.over
		}
	}
	return event // others want the lock, too
}

// countOrphan reports once that too many have ended.
func (c *child) countOrphan() bool {
	if now := time.Now(); now.Sub(c.since) > time.Second {
		c.since, c.orphans = now, 0
	}
	c.orphans++
	return c.orphans == c.mostOrphans+1 && c.mostOrphans > 0
}

// spawn starts a program beside the command, in a group of its own. It counts as one of
// the command's processes: nothing of the command is gone before it is.
func (c *child) spawn(path string, argv []string, attr *syscall.ProcAttr) (int, <-chan unix.WaitStatus, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return 0, nil, broker.ErrGone
	}
	attr.Sys = &syscall.SysProcAttr{Setpgid: true}
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return 0, nil, err
	}
	if c.brokered == nil {
		c.brokered = make(map[int]chan<- unix.WaitStatus)
	}
	ended := make(chan unix.WaitStatus, 1)
	c.brokered[pid] = ended
	return pid, ended, nil
}

// signalSpawned signals what spawn has started: KILL its whole group, and otherwise the
// process, which ends the programs that it runs by itself.
func (c *child) signalSpawned(pid int, sig unix.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.brokered[pid] == nil {
		return
	}
	if sig == unix.SIGKILL {
		_ = unix.Kill(-pid, sig)
		return
	}
	_ = unix.Kill(pid, sig)
}

// signal signals the command's group at once, and then what has left the group.
func (c *child) signal(sig unix.Signal) {
	c.mu.Lock()
	inGroup := !c.reaped
	if inGroup {
		_ = unix.Kill(-c.pid, sig)
	}
	c.mu.Unlock()
	if sig == unix.SIGKILL {
		c.group.kill()
		c.sweep()
		return
	}
	for _, p := range descendants(unix.Getpid()) {
		if inGroup && p.pgid == c.pid {
			continue
		}
		_ = p.signal(sig)
	}
}

// sweep kills this process's children until all of them are dead, for at most maxSweep: what descends from one of them becomes a child
// as its parents die. Nothing is reaped meanwhile: what has ended keeps its number, so nobody else is hit, and its place among the
// processes that its user may have. What forks and ends faster than it is found runs out of places, and holds still.
func (c *child) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer goFirst()()
	dead := map[int]bool{} // those that have been killed
	for until := time.Now().Add(maxSweep); time.Now().Before(until); {
		all := children()
		fresh := false
		for _, pid := range all {
			if _, known := dead[pid]; !known {
				_ = unix.Kill(pid, unix.SIGKILL)
				dead[pid], fresh = false, true
			}
		}
		if fresh {
			continue
		}
		for _, pid := range all {
			if !dead[pid] {
				p, there := readProcess(pid)
				dead[pid] = !there || p.dead
				fresh = fresh || !dead[pid]
			}
		}
		if !fresh {
			return
		}
		time.Sleep(time.Millisecond) // they need the processors to end
	}
}

// goFirst has this goroutine run before all usual processes until its result is called, where this user may ask for that: each of those that
// are to be killed has a share of the processors as large as this process's otherwise.
func goFirst() (end func()) {
	runtime.LockOSThread()
	var usual *unix.SchedAttr
	if usual, _ = unix.SchedGetAttr(0, 0); usual != nil {
		_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}, 0)
	}
	return func() {
		if usual != nil {
			_ = unix.SchedSetAttr(0, usual, 0)
		}
		runtime.UnlockOSThread()
	}
}

// children returns the numbers of this process's children, dead ones that nobody has waited for among them.
func children() []int {
	self := unix.Getpid()
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", self)) // orphans are the first thread's, which has forked the others
	if err != nil {
		return childrenInTable(self)
	}
	var all []int
	for field := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// childrenInTable returns the children of a process where the kernel lists them nowhere.
func childrenInTable(parent int) []int {
	table, _ := processTable()
	var all []int
	for _, p := range table {
		if p.ppid == parent {
			all = append(all, p.pid)
		}
	}
	return all
}

// abandon kills the command right after its start, before anybody waits for it, and returns how it ended.
func (c *child) abandon() (status unix.WaitStatus) {
	events := make(chan childEvent, 4)
	go c.wait(events)
	c.signal(unix.SIGKILL)
	for event := range events {
		if event.exited {
			status = event.status
		}
		if event.gone {
			break
		}
		c.signal(unix.SIGKILL)
	}
	return status
}
