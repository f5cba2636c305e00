// Package fault classifies why an attempt at a bead ended: for a reason of the work
// itself, or because of something around it. Package agentcli and its clients recognise
// faults in the output of coding agents, package process and the executor those of the
// machine; retire records store them. The package defines only values.
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

// Class is the class of a fault. It decides what happens next.
type Class string

const (
	// Work: the attempt itself failed, or no other cause is known. It is charged. The
	// zero Fault, with the class "", means the same.
	Work Class = "work"
	// Capacity: a service refuses requests or can't be reached for now. The attempt is
	// not charged; the fault ends by itself, at Fault.Until or after some time.
	Capacity Class = "capacity"
	// Environment: something around the work is wrong until a person repairs it. The
	// attempt is not charged; the fault ends when a check passes.
	Environment Class = "environment"
	// Unknown: the cause is not known. What happens to other beads decides.
	Unknown Class = "unknown"
)

// Kind is the cause of a fault.
type Kind string

// Kinds of the class Capacity.
const (
	// RateLimit: too many requests (429). Ends after seconds to minutes.
	RateLimit Kind = "rate_limit"
	// Overloaded: the service has no capacity (503, 529). Ends after minutes.
	Overloaded Kind = "overloaded"
	// ServerError: the service fails (other 5xx). Ends when its operator has repaired it.
	ServerError Kind = "server_error"
	// UsageLimit: the account has reached its limit for some hours or days. Ends at
	// the reset time that the service names.
	UsageLimit Kind = "usage_limit"
	// Network: the service can't be reached. Ends when the connection is back.
	Network Kind = "network"
	// NoAnswer: the service accepts requests but does not answer. Ends when it does.
	NoAnswer Kind = "no_answer"
)

// Kinds of the class Environment.
const (
	// NotLoggedIn: the client has no credentials. Ends with a login or a key.
	NotLoggedIn Kind = "not_logged_in"
	// WrongKey: the service does not accept the credentials. Ends with valid ones.
	WrongKey Kind = "wrong_key"
	// AccessDenied: the account may not do this (403). Ends with another account or plan.
	AccessDenied Kind = "access_denied"
	// ModelUnknown: the model does not exist for this account. Ends with another model.
	ModelUnknown Kind = "model_unknown"
	// Credit: the account has no money left. Ends with a payment.
	Credit Kind = "credit"
	// FlagsRefused: the client rejects its command line. Ends with another version of the
	// client, or another preset.
	FlagsRefused Kind = "flags_refused"
	// ClientMissing: the program does not exist. Ends with its installation.
	ClientMissing Kind = "client_missing"
	// ClientRefused: the program exists but can't be executed. Ends when its file is
	// repaired.
	ClientRefused Kind = "client_refused"
	// ClientBroken: the client ends before its session begins, for a reason of its own.
	// Ends when its installation or configuration is repaired.
	ClientBroken Kind = "client_broken"
	// BadWorker: the definition or the bead names a worker with an invalid command line.
	// Ends with another definition.
	BadWorker Kind = "bad_worker"
	// SetupFailed: the setup command of a worktree failed. Ends when it passes.
	SetupFailed Kind = "setup_failed"
	// WorktreeFailed: a worktree, or a file that a worker needs, can't be made. Ends when
	// it can.
	WorktreeFailed Kind = "worktree_failed"
	// TestCannotRun: the test fails on the target itself. Ends when it passes there.
	TestCannotRun Kind = "test_cannot_run"
	// DiskFull: the disk or a quota is full. Ends when there is space.
	DiskFull Kind = "disk_full"
	// NoPermission: the system refuses access to a file. Ends when it is granted.
	NoPermission Kind = "no_permission"
	// TargetGone: the target branch does not exist. Ends when it does.
	TargetGone Kind = "target_gone"
	// Budget: a budget is used up. Ends when the person allows more, that of a day at midnight.
	Budget Kind = "budget"
	// RemoteGone: the remote can't be reached or does not exist. Ends when it answers.
	RemoteGone Kind = "remote_gone"
)

// Kinds of the class Unknown.
const (
	// RequestRefused: the service refuses a request for an unknown reason.
	RequestRefused Kind = "request_refused"
	// ShortFailure: the worker failed after a short time, without a change. If a second
	// bead fails in the same way, it counts as a fault of the environment.
	ShortFailure Kind = "short_failure"
)

// ContextTooLong is of the class Work: the session is too long for the model. Ends with a
// new session.
const ContextTooLong Kind = "context_too_long"

// Class returns the class of a kind, or "" for an unknown kind.
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

// NeedsPerson reports whether trying again can't end a fault of the kind: a person has to log in, pay, or change
// a key, a model or a command line.
func (k Kind) NeedsPerson() bool {
	switch k {
	case NotLoggedIn, WrongKey, AccessDenied, ModelUnknown, Credit, FlagsRefused:
		return true
	default:
		return false
	}
}

// Phrase describes a kind, for the beginning of a reason.
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

// Limits of a fault's texts, in bytes.
const (
	// MaxReason bounds Fault.Reason.
	MaxReason = 300
	maxKind   = 40
)

// Fault is the cause of the end of an attempt. The zero Fault means that no cause is known, and the end
// counts as the work's own.
type Fault struct {
	Class Class `json:"class"`
	Kind  Kind  `json:"kind"`
	// Until is when the fault ends according to the service, or zero.
	Until state.Time `json:"until,omitzero"`
	// Reason names the cause in one line of plain English. It may quote output of other
	// programs.
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

// New returns a fault of a known kind. It cuts the reason to one line of at most MaxReason
// bytes; an empty reason becomes the kind's phrase.
func New(kind Kind, reason string) Fault {
	const ellipsis = len("…")
	return Fault{Class: kind.Class(), Kind: kind, Reason: wording.Subject(reason, MaxReason-ellipsis, kind.Phrase())}
}

// OfError returns a fault for an error of the system: DiskFull or NoPermission, or the
// kind otherwise for any other error.
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

// Check returns an error unless the fault is zero or complete. It accepts unknown kinds of
// newer versions.
func (f *Fault) Check() error {
	switch {
	case f.IsZero():
		return nil
	case f.Class != Work && f.Class != Capacity && f.Class != Environment && f.Class != Unknown:
		return fmt.Errorf("unknown class %q of a fault", wording.Clip(string(f.Class), maxKind))
	case !isWord(string(f.Kind)):
		return fmt.Errorf("kind %q of a fault is not a word of at most %d letters", wording.Clip(string(f.Kind), maxKind), maxKind)
	case f.Kind.Class() != "" && f.Kind.Class() != f.Class:
		return fmt.Errorf("a fault of kind %s has the class %s, not %s", f.Kind, f.Kind.Class(), f.Class)
	case strings.TrimSpace(f.Reason) == "" || len(f.Reason) > MaxReason || !utf8.ValidString(f.Reason) || strings.ContainsFunc(f.Reason, unicode.IsControl):
		return fmt.Errorf("the reason of a fault is not one line of at most %d bytes", MaxReason)
	}
	return nil
}

// isWord reports whether s consists of 1 to maxKind lower-case letters and underscores.
func isWord(s string) bool {
	return s != "" && len(s) <= maxKind && !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' })
}
