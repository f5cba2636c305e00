package powercut

import (
	"fmt"
	"syscall"
)

// Kind says what goes wrong.
type Kind int

const (
	// None is no fault: operations are counted.
	None Kind = iota
	// KillBefore ends the programs before the operation happens.
	KillBefore
	// KillAfter ends them once it has happened and before they hear of it.
	KillAfter
	// IOError fails this one operation with EIO. What it was to make durable is lost.
	IOError
	// DiskFull fails it, and all later ones that need room, with ENOSPC.
	DiskFull
	// ReadOnly fails it and all later ones with EROFS, as a file system does
	// that gave up. Nothing becomes durable any more.
	ReadOnly
	// FailedSync fails an fsync or syncfs with EIO and loses what it was to make durable.
	FailedSync
	// FailedBarrier is FailedSync of a syncfs alone.
	FailedBarrier
	// ShortWrite writes half of what it was given, and says so.
	ShortWrite
)

// Kinds are all kinds of faults, without None.
func Kinds() []Kind {
	return []Kind{KillBefore, KillAfter, IOError, DiskFull, ReadOnly, FailedSync, FailedBarrier, ShortWrite}
}

func (k Kind) String() string {
	names := [...]string{"none", "kill-before", "kill-after", "eio", "enospc", "erofs", "failed-sync", "failed-barrier", "short-write"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return names[k]
}

// Fault is one thing that goes wrong at one operation: that with the number At,
// or the next that it applies to. The first operation is 1.
type Fault struct {
	Kind Kind
	At   int
}

func (f Fault) String() string { return fmt.Sprintf("%s@%d", f.Kind, f.At) }

// Class says what an operation does, as far as faults differ on it.
type Class int

const (
	// Name changes what a name means and needs no room.
	Name Class = iota
	// NewName needs room in a folder.
	NewName
	// Data writes to a file.
	Data
	// Attr changes size or permissions.
	Attr
	// Sync makes something durable.
	Sync
	// Barrier makes everything durable.
	Barrier
	// Close is the close of a file that was written to.
	Close
)

// Applies reports whether a fault of this kind can hit an operation of that class.
func (k Kind) Applies(c Class) bool {
	switch k {
	case DiskFull:
		return c == NewName || c == Data
	case ReadOnly:
		return c != Close
	case FailedSync:
		return c == Sync || c == Barrier
	case FailedBarrier:
		return c == Barrier
	case ShortWrite:
		return c == Data
	case None, KillBefore, KillAfter, IOError:
	}
	return true
}

// Op is one operation that changes something, as it was logged.
type Op struct {
	N     int
	Class Class
	Name  string // as strace calls it
	Path  string // from the root of the disk
	Err   syscall.Errno
	Note  string // what the fault did
}

func (o Op) String() string {
	text := fmt.Sprintf("%d %s %s", o.N, o.Name, o.Path)
	if o.Err != 0 {
		text += " = " + o.Err.Error()
	}
	if o.Note != "" {
		text += " [" + o.Note + "]"
	}
	return text
}

// script counts the operations and says which of them go wrong.
type script struct {
	fault Fault
	kill  func()
	log   []Op
	hit   bool
	met   chan struct{} // closed when the fault was met
	seen  func(n int, after bool, disk *Tree)
}

// verdict is what is to happen to one operation.
type verdict struct {
	errno syscall.Errno // refused with it
	lose  bool          // and what waited for it is lost
	half  bool          // only half of it happens
	stop  bool          // the machine stops: at once when errno is set, else after it
}

// next counts one operation and judges it.
func (s *script) next(class Class, name, path string) verdict {
	op := Op{N: len(s.log) + 1, Class: class, Name: name, Path: path}
	v := s.judge(op)
	op.Err = v.errno
	if v != (verdict{}) {
		if !s.hit {
			close(s.met)
		}
		s.hit = true
		op.Note = s.fault.Kind.String()
	}
	s.log = append(s.log, op)
	return v
}

func (s *script) judge(op Op) verdict {
	f := s.fault
	if f.Kind == None || op.N < f.At || !f.Kind.Applies(op.Class) {
		return verdict{}
	}
	switch f.Kind { // those that last
	case DiskFull:
		return verdict{errno: syscall.ENOSPC}
	case ReadOnly:
		return verdict{errno: syscall.EROFS, lose: op.Class == Sync || op.Class == Barrier}
	case None, KillBefore, KillAfter, IOError, FailedSync, FailedBarrier, ShortWrite:
	}
	if s.hit {
		return verdict{}
	}
	switch f.Kind {
	case KillBefore:
		return verdict{errno: syscall.EIO, stop: true}
	case KillAfter:
		return verdict{stop: true}
	case ShortWrite:
		return verdict{half: true}
	case None, IOError, DiskFull, ReadOnly, FailedSync, FailedBarrier:
	}
	return verdict{errno: syscall.EIO, lose: true}
}

// result notes how the last operation ended when no fault decided it.
func (s *script) result(err syscall.Errno) {
	if err != 0 {
		s.log[len(s.log)-1].Err = err
	}
}
