package process

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// keepSupervisor is how long a supervisor without a job is kept: starting one costs more
// than most of what a rig does for a bead, but an idle rig shall hold no processes.
const keepSupervisor = 5 * time.Second

// Host runs the jobs of one agent, one after the other, under a supervisor that it keeps a while for the
// next. Jobs that run at the same time have one each. Its methods may be called by several
// goroutines at once. The zero Host is not usable.
type Host struct {
	self string

	mu     sync.Mutex
	idle   *supervision
	expiry *time.Timer
	closed bool
}

// NewHost makes a host. self is the absolute path of a binary whose first argument SuperviseArg
// leads to Supervise.
func NewHost(self string) *Host { return &Host{self: self} }

// Start runs a command under a supervisor, the one that is kept or a new one. It returns when the command
// runs and its record is written; or when it has been found impossible to execute, which
// is no error but an Exit with code 126 or 127.
//
// The context bounds the start alone: a job that runs is ended by Stop, and by the
// end of this process. Errors wrap ErrBadSpec, ErrNotStarted or the context's.
func (h *Host) Start(ctx context.Context, spec Spec) (*Job, error) {
	return start(ctx, h.self, spec, h)
}

// Close ends the supervisor that is kept, and keeps no more. Jobs that run go on.
func (h *Host) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if s := h.idle; s != nil {
		h.idle = nil
		h.expiry.Stop()
		_ = s.end() // nothing of a job is left
	}
}

// drop ends the kept supervisor without waiting for it. The caller holds the lock.
func (h *Host) drop() {
	if s := h.idle; s != nil {
		h.idle = nil
		h.expiry.Stop()
		go func() { _ = s.end() }() // nothing of a job is left
	}
}

// keep takes a supervisor whose job is over.
func (h *Host) keep(s *supervision) {
	before := cpuOfIdle(s.pid())
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.idle != nil {
		go func() { _ = s.end() }() // nothing of a job is left
		return
	}
	s.before, h.idle = before, s
	h.expiry = time.AfterFunc(keepSupervisor, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.idle == s {
			h.drop()
		}
	})
}

// take returns the kept supervisor, or nil when there is none or somebody has ended it.
func (h *Host) take() *supervision {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.idle
	if s == nil {
		return nil
	}
	if !s.waits() {
		h.drop()
		return nil
	}
	h.idle = nil
	h.expiry.Stop()
	return s
}

// waits reports whether a supervisor without a job is still there: it has nothing to say, and its pipe
// stands.
func (s *supervision) waits() bool {
	pipe, err := s.reports.SyscallConn()
	if err != nil {
		return false
	}
	silent := false
	err = pipe.Read(func(fd uintptr) bool {
		_, readErr := unix.Read(int(fd), make([]byte, 1))
		silent = errors.Is(readErr, unix.EAGAIN)
		return true
	})
	return err == nil && silent
}
