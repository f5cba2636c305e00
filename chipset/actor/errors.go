package actor

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

var (
	// ErrInvalid is returned for an invalid argument.
	ErrInvalid = errors.New("invalid argument")
	// ErrTimeout is returned when a wait takes longer than its time limit.
	ErrTimeout = errors.New("timed out waiting")
)

// invalid is an ErrInvalid with its sentence.
type invalid struct{ text string }

func (e *invalid) Error() string { return e.text }
func (e *invalid) Unwrap() error { return ErrInvalid }

// Invalidf makes an ErrInvalid.
func Invalidf(format string, args ...any) error { return &invalid{fmt.Sprintf(format, args...)} }

// hinted is an error with a hint: a line that says what to do about it.
type hinted struct {
	err  error
	hint string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// Hint returns what to do about the error.
func (h *hinted) Hint() string { return h.hint }

// WithHint adds a hint to an error; nil stays nil. HintFor finds it again.
func WithHint(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &hinted{err, hint}
}

const diskFull = "free some space on the disk, and run the command again; nothing is lost"

// HintFor returns the hint that an error carries, else the one for its kind, or "".
func HintFor(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) && h.Hint() != "" {
		return h.Hint()
	}
	if hint := identityHint(err); hint != "" {
		return hint
	}
	for _, row := range []struct {
		is   error
		hint string
	}{
		{rig.ErrNoRig, "chipset init makes a rig in the git repository you stand in; --dir names one elsewhere"},
		{rig.ErrUntrusted, "chipset trust shows what it would run, and takes it over; a rig of another user is theirs to run"},
		{state.ErrCorrupt, "chipset doctor lists everything that can't be read"},
		{state.ErrLockTimeout, "chipset status shows which processes are alive"},
		{unix.ENOSPC, diskFull}, {unix.EDQUOT, diskFull},
		{unix.EROFS, "make the file system writable, and run the command again; nothing is lost"},
	} {
		if errors.Is(err, row.is) {
			return row.hint
		}
	}
	return ""
}

// identityHint returns what to do about an unusable rig.json, or "". No command
// opens such a tree, not even the doctor.
func identityHint(err error) string {
	var c *state.Corruption
	switch {
	case errors.Is(err, state.ErrNoTree):
	case !errors.As(err, &c) || c.Path != string(state.StateDir.Join("rig.json")):
		return ""
	case errors.Is(err, state.ErrHardLinked):
		return "remove its other name, and keep this one: find . -samefile .chipset/state/rig.json in the rig's folder shows both"
	}
	return "put .chipset/state/rig.json back from a backup of this rig, then run chipset doctor; nothing is made over the tree"
}

// Text checks text of several lines. what names it for the message. Errors:
// state.ErrTooLarge.
func Text(what, text string, limit int64) (string, error) {
	switch {
	case int64(len(text)) > limit:
		return "", fmt.Errorf("%s: %w: %d bytes, at most %d", what, state.ErrTooLarge, len(text), limit)
	case !utf8.ValidString(text):
		return "", fmt.Errorf("%s: not valid UTF-8", what)
	}
	return text, nil
}

// OneLine checks that a text is one line and not too long. Errors: ErrInvalid.
func OneLine(what, text string, limit int) error {
	switch {
	case strings.TrimSpace(text) == "":
		return Invalidf("%s is empty", what)
	case !utf8.ValidString(text):
		return Invalidf("%s is not valid UTF-8", what)
	case strings.ContainsAny(text, "\n\r\x00"):
		return Invalidf("%s must be one line", what)
	case len(text) > limit:
		return Invalidf("%s has %d bytes, at most %d", what, len(text), limit)
	}
	return nil
}

// Words returns the words of a list, trimmed and without empty ones.
func Words(list []string) []string {
	var out []string
	for _, w := range list {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}
