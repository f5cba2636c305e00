package state

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNotFound is returned by verbs and stores when the named object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists is returned by WriteNew and Move when the name is taken; nothing was changed.
	ErrExists = errors.New("already exists")
	// ErrConflict is returned when a compare-and-swap lost or a transition is not legal; nothing was changed.
	ErrConflict = errors.New("conflict")
	// ErrCorrupt is returned for a file that cannot be parsed or contradicts its name.
	ErrCorrupt = errors.New("corrupt state")
	// ErrNotRegular is returned for a path that leads through a link or is not a regular file.
	ErrNotRegular = errors.New("not a regular file of the tree")
	// ErrHardLinked is returned for a file with a second hard link. It is an ErrNotRegular.
	ErrHardLinked = fmt.Errorf("%w: it has a second hard link", ErrNotRegular)
	// ErrTooLarge is returned for content above the limit of its kind.
	ErrTooLarge = errors.New("too large")
	// ErrRefused is returned for a file that the system refuses to read. The file may be valid and stays where it is.
	ErrRefused = errors.New("refused by the system")
	// ErrBadID is returned for an identifier that CheckID refuses.
	ErrBadID = errors.New("invalid ID")
	// ErrLockTimeout is returned when a lock was not free before the deadline.
	ErrLockTimeout = errors.New("timed out waiting for a lock")
	// ErrNoTree is returned when rig.json is missing or names another rig.
	ErrNoTree = errors.New("not the live tree of this rig")
)

// Conflict is an ErrConflict that says what was found instead.
type Conflict struct {
	// What names the object, for example "hook polecat-alpha".
	What string
	// Why is one sentence for a person.
	Why string
}

func (c *Conflict) Error() string { return c.What + ": " + c.Why }

// Unwrap makes errors.Is(err, ErrConflict) true.
func (c *Conflict) Unwrap() error { return ErrConflict }

// Conflictf makes a Conflict.
func Conflictf(what, format string, args ...any) error {
	return &Conflict{What: what, Why: fmt.Sprintf(format, args...)}
}

// Corruption is an ErrCorrupt with its file and reason.
type Corruption struct {
	// Path is relative to .chipset.
	Path string
	// Reason is one sentence for a person.
	Reason string
	// Cause is a sentinel such as ErrTooLarge, one that wraps the system's error, or nil.
	Cause error
}

func (c *Corruption) Error() string { return c.Path + ": " + c.Reason }

// Unwrap makes errors.Is true for ErrCorrupt and for the cause.
func (c *Corruption) Unwrap() []error {
	if c.Cause == nil {
		return []error{ErrCorrupt}
	}
	return []error{ErrCorrupt, c.Cause}
}

// Unknown is an ErrNotFound that knows the nearest existing names.
type Unknown struct {
	Kind, Name string
	// Known returns the existing names, or is nil. Only Hint calls it, because most
	// callers need no hint.
	Known func() []string
}

func (u *Unknown) Error() string { return fmt.Sprintf("no %s %q", u.Kind, u.Name) }

// Unwrap makes errors.Is(err, ErrNotFound) true.
func (u *Unknown) Unwrap() error { return ErrNotFound }

// Absent is an ErrNotFound whose text says by itself that there is nothing.
type Absent string

func (a Absent) Error() string { return string(a) }

// Unwrap makes errors.Is(err, ErrNotFound) true.
func (a Absent) Unwrap() error { return ErrNotFound }

// Hint returns the existing names that resemble Name as a question, or "".
func (u *Unknown) Hint() string {
	if u.Known == nil {
		return ""
	}
	nearest := Nearest(u.Name, u.Known())
	if len(nearest) == 0 {
		return ""
	}
	return "did you mean " + strings.Join(nearest, ", ") + "?"
}
