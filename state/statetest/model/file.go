package model

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/gastown-chipset/chipset/state/disk"
)

// file is an open file of a Recorder.
type file struct {
	disk.File
	r        *Recorder
	path     string
	number   int
	volatile bool
}

// Write implements disk.File.
func (f *file) Write(data []byte) (int, error) {
	if f.volatile {
		return f.File.Write(data)
	}
	n, short := len(data), false
	err := f.r.do("write", f.path, func() (err error) {
		if short = f.r.short(len(f.r.calls) - 1); short {
			data = data[:len(data)/2]
		}
		n, err = f.File.Write(data)
		return err
	}, func(call int) {
		node := f.r.h.nodes[f.number]
		node.short = node.short || short
		node.versions = append(node.versions, append(bytes.Clone(node.last()), data...))
		f.r.h.note(effect{kind: written, call: call, node: f.number})
	}, nil)
	if err != nil {
		return 0, err
	}
	if short {
		return n, io.ErrShortWrite
	}
	return n, nil
}

func (f *file) sync(op string, kind effectKind) error {
	if f.volatile {
		return nil
	}
	note := func(failed bool) func(int) {
		return func(call int) {
			f.r.h.note(effect{kind: kind, call: call, node: f.number, failed: failed})
		}
	}
	failed := note(true)
	if kind == flushed { // says nothing when it succeeds late, and nothing when it fails
		failed = func(call int) { f.r.h.note(effect{kind: synced, call: call, node: f.number, failed: true}) }
	}
	return f.r.do(op, f.path, func() error { return nil }, note(false), failed)
}

// Sync implements disk.File.
func (f *file) Sync() error { return f.sync("sync", synced) }

// Flush implements disk.File.
func (f *file) Flush() error { return f.sync("flush", flushed) }

// StartFlush implements disk.File. That a write was begun promises nothing.
func (f *file) StartFlush() error {
	if f.volatile {
		return nil
	}
	return f.r.do("start-flush", f.path, func() error { return nil }, f.r.nothing, nil)
}

// Close implements disk.File. Where it fails, that was the only word of a
// write that never happened, unless the file was synced.
func (f *file) Close() error {
	if f.volatile {
		return f.File.Close()
	}
	if f.r.isDead() {
		return f.File.Close() // the kernel does it
	}
	return f.r.do("close", f.path, f.File.Close, f.r.nothing, func(call int) {
		_ = f.File.Close() // a failed close closes as well
		f.r.h.note(effect{kind: torn, call: call, node: f.number})
		for _, number := range f.r.names {
			f.r.spoilt = f.r.spoilt || number == f.number
		}
	})
}

func (r *Recorder) isDead() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dead
}

// pendingFile is a file that is to replace another.
type pendingFile struct {
	disk.File
	r          *Recorder
	temp, path string
	over       bool
}

// Replace implements disk.Pending.
func (p *pendingFile) Replace() error {
	if err := p.Sync(); err != nil {
		return err
	}
	if err := p.Close(); err != nil {
		return err
	}
	if err := p.r.Rename(p.temp, p.path); err != nil {
		return err
	}
	p.over = true
	return nil
}

// Cleanup implements disk.Pending.
func (p *pendingFile) Cleanup() error {
	if p.over {
		return nil
	}
	err := p.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	if removed := p.r.Remove(p.temp); removed != nil {
		err = removed
	}
	return err
}

// FaultKind is what goes wrong at a call.
type FaultKind int

// The faults. Those of a device say what it would; a killed process leaves what
// it did, and nothing after that.
const (
	NoFault FaultKind = iota
	KillBefore
	KillAfter
	IOError    // of anything but a sync
	NoSpace    // of anything that takes room
	ReadOnly   // of this call and all that follow
	FailedSync // of a sync or barrier, once: the next one succeeds though the data is gone
	ShortWrite // half is written, then an error
)

func (k FaultKind) String() string {
	return [...]string{"no fault", "kill before", "kill after", "EIO", "ENOSPC", "EROFS", "failed sync", "short write"}[k]
}

func (k FaultKind) error() error {
	switch k {
	case NoSpace:
		return syscall.ENOSPC
	case ReadOnly:
		return syscall.EROFS
	case NoFault, KillBefore, KillAfter, ShortWrite:
		return nil
	case IOError, FailedSync:
	}
	return syscall.EIO
}

// fits reports whether the fault can hit a call.
func (k FaultKind) fits(op string) bool {
	sync := op == "sync" || op == "sync-file" || op == "sync-dir" || op == "barrier" || op == "flush"
	switch k {
	case NoFault:
		return false
	case IOError:
		return !sync
	case NoSpace:
		return !sync && op != "close" && op != "remove" && op != "start-flush"
	case FailedSync:
		return sync
	case ShortWrite:
		return op == "write"
	case KillBefore, KillAfter, ReadOnly:
	}
	return op != "close" || k != ReadOnly
}

// Fault is a fault at the call of a number, counted from 0.
type Fault struct {
	Call int
	Kind FaultKind
}
