// Package fault names what ends an attempt at a bead, by whose fault that is: the
// work's own, or that of something around it. Package agentcli and its clients
// recognise faults in the output of coding agents, package process and the executor
// find those of the machine; a retire record carries them. Only values live here.
package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Class says whose fault the end of an attempt is, and so what happens next.
type Class string

const (
	// Work: the attempt itself, whatever nothing else explains. It is charged. The
	// zero Fault, with the class "", means the same.
	Work Class = "work"
	// Capacity: a service refuses or can't be reached for now. Nothing is charged; it
	// ends by itself, at Fault.Until or after some time.
	Capacity Class = "capacity"
	// Environment: something around the work is wrong, and stays wrong until somebody
	// mends it. Nothing is charged; it ends when a check passes.
	Environment Class = "environment"
	// Unknown: nothing says whose fault it is. What happens to other beads decides.
	Unknown Class = "unknown"
)

// Kind is the cause of a fault.
type Kind string

// Kinds of the class Capacity.
const (
	// RateLimit: too many requests (429). Ends after seconds to minutes.
	RateLimit Kind = "rate_limit"
	// Overloaded: the service has no room for anybody (503, 529). Ends after minutes.
	Overloaded Kind = "overloaded"
	// ServerError: the service fails (other 5xx). Ends when its operator has mended it.
	ServerError Kind = "server_error"
	// UsageLimit: what the account may use in some hours or days is used up. Ends at
	// the reset that the service names.
	UsageLimit Kind = "usage_limit"
	// Network: the service can't be reached. Ends when the connection is back.
	Network Kind = "network"
	// NoAnswer: the service takes requests and answers none. Ends when it does.
	NoAnswer Kind = "no_answer"
)

// Kinds of the class Environment.
const (
	// NotLoggedIn: the client has no credentials. Ends with a login or a key.
	NotLoggedIn Kind = "not_logged_in"
	// WrongKey: the service does not know the credentials. Ends with other ones.
	WrongKey Kind = "wrong_key"
	// AccessDenied: the account may not do this (403). Ends with another account or plan.
	AccessDenied Kind = "access_denied"
	// ModelUnknown: there is no such model for this account. Ends with another model.
	ModelUnknown Kind = "model_unknown"
	// Credit: the account has no money left. Ends with a payment.
	Credit Kind = "credit"
	// FlagsRefused: the client does not understand its command line. Ends with another
	// version of it, or another preset.
	FlagsRefused Kind = "flags_refused"
	// ClientMissing: there is no such program. Ends with its installation.
	ClientMissing Kind = "client_missing"
	// ClientRefused: the program is there and can't be executed. Ends when its file is
	// mended.
	ClientRefused Kind = "client_refused"
	// ClientBroken: the client ends before its session begins, for a reason of its own.
	// Ends when its installation or configuration is mended.
	ClientBroken Kind = "client_broken"
	// BadWorker: the definition or the bead names a worker that can't be run as it is
	// written. Ends with another definition.
	BadWorker Kind = "bad_worker"
	// SetupFailed: the setup command of a worktree failed. Ends when it passes.
	SetupFailed Kind = "setup_failed"
	// WorktreeFailed: a worktree, or what a worker needs beside it, can't be made. Ends
	// when it can.
	WorktreeFailed Kind = "worktree_failed"
	// TestCannotRun: the test fails on the target itself. Ends when it passes there.
	TestCannotRun Kind = "test_cannot_run"
	// DiskFull: the disk, or the share of it, is used up. Ends when there is room.
	DiskFull Kind = "disk_full"
	// NoPermission: the system refuses access to a file. Ends when it is granted.
	NoPermission Kind = "no_permission"
	// TargetGone: the target branch does not exist. Ends when it does.
	TargetGone Kind = "target_gone"
	// Budget: what may be used is used up. Ends when the person allows more, that of a day at midnight.
	Budget Kind = "budget"
	// RemoteGone: the remote can't be reached or does not exist. Ends when it answers.
	RemoteGone Kind = "remote_gone"
)

// Kinds of the class Unknown.
const (
	// RequestRefused: the service refuses a request for a reason that nothing here knows.
	RequestRefused Kind = "request_refused"
	// ShortFailure: the worker failed after a short time, without a change. Ends when
	// other beads tell: a second one that fails alike makes it the environment's.
	ShortFailure Kind = "short_failure"
)

// ContextTooLong is of the class Work: the session has outgrown what the model can
// read. Ends with a new session.
const ContextTooLong Kind = "context_too_long"

// Class returns the class of a kind, and "" for a kind that this binary does not know.
func (k Kind) Class() Class {
	switch k {
	case RateLimit, Overloaded, ServerError, UsageLimit, Network, NoAnswer:
		return Capacity
	case NotLoggedIn, WrongKey, AccessDenied, ModelUnknown, Credit, FlagsRefused, ClientMissing, ClientRefused, ClientBroken, BadWorker,
		SetupFailed, WorktreeFailed, TestCannotRun, DiskFull, NoPermission, TargetGone, RemoteGone, Budget:
		return Environment
	case RequestRefused, ShortFailure:
		return Unknown
	case ContextTooLong:
		return Work
	}
	return ""
}

// NeedsPerson reports whether trying again can't end a fault of the kind: somebody has to log in, pay, or change
// a key, a model or a command line.
func (k Kind) NeedsPerson() bool {
	switch k {
	case NotLoggedIn, WrongKey, AccessDenied, ModelUnknown, Credit, FlagsRefused:
		return true
	default:
		return false
	}
}

// Phrase says what a kind means, for a reason to begin with.
func (k Kind) Phrase() string {
	switch k {
	case RateLimit:
		return "the model's API limits the rate of requests"
	case Overloaded:
		return "the model's API is overloaded"
	case ServerError:
		return "the model's API fails"
	case UsageLimit:
		return "the usage limit of the account is reached"
	case Network:
		return "the model's API can't be reached"
	case NoAnswer:
		return "the model's API does not answer"
	case NotLoggedIn:
		return "the client is not logged in"
	case WrongKey:
		return "the model's API does not accept the key"
	case AccessDenied:
		return "the model's API denies access"
	case ModelUnknown:
		return "there is no such model for this account"
	case Credit:
		return "the account has no credit left"
	case FlagsRefused:
		return "the client does not accept its command line"
	case ClientMissing:
		return "the command can't be found"
	case ClientRefused:
		return "the command can't be executed"
	case DiskFull:
		return "the disk is full"
	case NoPermission:
		return "access to a file is refused"
	case Budget:
		return "the budget is used up"
	case RequestRefused:
		return "the model's API refuses the request"
	case ContextTooLong:
		return "the session is too long for the model"
	case ClientBroken, BadWorker, SetupFailed, WorktreeFailed, TestCannotRun, TargetGone, RemoteGone, ShortFailure:
	}
	return strings.ReplaceAll(string(k), "_", " ")
}

// Limits of what a fault may hold, in bytes.
const (
	// MaxReason bounds Fault.Reason.
	MaxReason = 300
	maxKind   = 40
)

// Fault is why an attempt ended, where its cause is known. The zero Fault says that it is not known:
// the end is the work's own.
type Fault struct {
	Class Class `json:"class"`
	Kind  Kind  `json:"kind"`
	// Until is when the service said it ends, zero where it did not.
	Until state.Time `json:"until,omitzero"`
	// Reason names the cause in one line of plain English. What others wrote may be
	// quoted in it.
	Reason string `json:"reason"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (f *Fault) UnmarshalJSON(b []byte) error {
	type plain Fault
	return state.UnmarshalWithExtra(b, (*plain)(f), &f.Extra)
}

// MarshalJSON writes unknown fields back.
func (f Fault) MarshalJSON() ([]byte, error) {
	type plain Fault
	return state.MarshalWithExtra(plain(f), f.Extra)
}

// New returns a fault of a kind that this package names. The reason is made one line
// of at most MaxReason bytes; an empty one becomes the kind's phrase.
func New(kind Kind, reason string) Fault {
	const ellipsis = len("…")
	return Fault{Class: kind.Class(), Kind: kind, Reason: wording.Subject(reason, MaxReason-ellipsis, kind.Phrase())}
}

// OfError returns the fault that an error of the system means: a full disk, or access
// that is refused. For any other error it is one of the given kind.
func OfError(err error, otherwise Kind) Fault {
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		otherwise = DiskFull
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		otherwise = NoPermission
	}
	return New(otherwise, err.Error())
}

// IsZero reports whether there is no fault.
func (f Fault) IsZero() bool {
	return f.Class == "" && f.Kind == "" && f.Reason == "" && f.Until.IsZero() && len(f.Extra) == 0
}

// Check returns an error unless the fault is zero or complete. A kind that this binary
// does not know is taken as a newer one wrote it.
func (f *Fault) Check() error {
	switch {
	case f.IsZero():
		return nil
	case f.Class != Work && f.Class != Capacity && f.Class != Environment && f.Class != Unknown:
		return fmt.Errorf("unknown class of fault %q", wording.Clip(string(f.Class), maxKind))
	case !isWord(string(f.Kind)):
		return fmt.Errorf("kind of fault %q is not a word of at most %d letters", wording.Clip(string(f.Kind), maxKind), maxKind)
	case f.Kind.Class() != "" && f.Kind.Class() != f.Class:
		return fmt.Errorf("a fault of the kind %s is of the class %s, not %s", f.Kind, f.Kind.Class(), f.Class)
	case strings.TrimSpace(f.Reason) == "" || len(f.Reason) > MaxReason || !utf8.ValidString(f.Reason) || strings.ContainsFunc(f.Reason, unicode.IsControl):
		return fmt.Errorf("the reason of a fault is not one line of at most %d bytes", MaxReason)
	}
	return nil
}

// isWord reports whether s has only small letters and underscores, and not too many.
func isWord(s string) bool {
	return s != "" && len(s) <= maxKind && !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' })
}
