package process

import (
	"errors"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/process/broker"
)

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
		if event.exited || event.gone {
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
	for {
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
		}
	}
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
		stopAll(func() []process { return descendants(unix.Getpid()) })
	}
	for _, p := range descendants(unix.Getpid()) {
		if inGroup && p.pgid == c.pid {
			continue
		}
		_ = p.signal(sig)
	}
}

// abandon kills the command right after its start, before anybody waits for it.
func (c *child) abandon() {
	events := make(chan childEvent, 4)
	go c.wait(events)
	c.signal(unix.SIGKILL)
	for event := range events {
		if event.gone {
			return
		}
		c.signal(unix.SIGKILL)
	}
}
