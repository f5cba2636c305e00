//go:build !linux

package process

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// groupPoll is how often an exited command's group is looked at: without a
// subreaper nobody tells of its end.
const groupPoll = 10 * time.Millisecond

func prepareSupervisor() {}

func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// child is the command and its process group. What leaves the group is not found.
type child struct {
	pid   int
	group *cgroup
}

func (s *supervisor) follow(pid int) *child { return &child{pid: pid, group: s.group} }

func (c *child) wait(events chan<- childEvent) {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(c.pid, &status, 0, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	gone := c.groupGone()
	events <- childEvent{exited: true, status: status, gone: gone}
	for !gone {
		time.Sleep(groupPoll)
		gone = c.groupGone()
		if gone {
			events <- childEvent{gone: true}
		}
	}
}

func (c *child) groupGone() bool { return errors.Is(unix.Kill(-c.pid, 0), unix.ESRCH) }

// spawn starts a program in the command's group, with which it ends.
func (c *child) spawn(path string, argv []string, attr *syscall.ProcAttr) (int, <-chan unix.WaitStatus, error) {
	attr.Sys = &syscall.SysProcAttr{Setpgid: true, Pgid: c.pid}
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return 0, nil, err
	}
	ended := make(chan unix.WaitStatus, 1)
	go func() {
		var status unix.WaitStatus
		for {
			if _, err := unix.Wait4(pid, &status, 0, nil); !errors.Is(err, unix.EINTR) {
				break
			}
		}
		ended <- status
	}()
	return pid, ended, nil
}

// descends is asked only on Linux: elsewhere a process whose parent has ended descends
// from nobody that is known.
func descends(int) bool { return false }

// AnyAncestor is known only on Linux, where no process leaves its supervisor.
func AnyAncestor(func(env map[string]string) bool) bool { return false }

// Ancestors is known only on Linux.
func Ancestors() []Program { return nil }

// signalSpawned signals what spawn has started.
func (c *child) signalSpawned(pid int, sig unix.Signal) { _ = unix.Kill(pid, sig) }

func (c *child) signal(sig unix.Signal) { _ = unix.Kill(-c.pid, sig) }

// abandon kills the command right after its start, before anybody waits for it, and returns how it ended.
func (c *child) abandon() (status unix.WaitStatus) {
	c.signal(unix.SIGKILL)
	events := make(chan childEvent, 4)
	go c.wait(events)
	for event := range events {
		if event.exited {
			status = event.status
		}
		if event.gone {
			break
		}
	}
	return status
}
