package state

import (
	"crypto/rand"
	"fmt"
	"sort"

	"github.com/agext/levenshtein"
)

// IDs match `[a-z0-9][a-z0-9._-]{0,63}` and are not names that the tree itself uses.
// They are checked when they are made: by Parse…, or when a file is decoded, so that no
// raw string reaches a path.
type (
	// AgentID names an agent: a mailbox, a hook, a worktree.
	AgentID string
	// BeadID names a bead: {prefix}-{5 of a-z0-9}.
	BeadID string
	// ConvoyID names a convoy.
	ConvoyID string
	// AssignmentID names one assignment of a bead to an agent; new for each.
	AssignmentID string
	// SessionID names one incarnation of an agent or of a worker.
	SessionID string
	// MergeID names a merge request: mr-{bead}, mr-{bead}-2, …
	MergeID string
	// IncidentID names an incident.
	IncidentID string
	// RigID names one rig, forever.
	RigID string
)

// Human is the person. It always exists as a recipient.
const Human AgentID = "human"

// CheckID returns an ErrBadID unless s is a legal identifier.
func CheckID(s string) error {
	if s == "" || len(s) > 64 {
		return fmt.Errorf("%w: %q must have 1 to 64 characters", ErrBadID, clip(s))
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '.' && c != '_' && c != '-') {
			return fmt.Errorf("%w: %q: only a-z, 0-9, and after the first character . _ -", ErrBadID, clip(s))
		}
	}
	switch s {
	case "archive", "latest", "from":
		return fmt.Errorf("%w: %q is reserved", ErrBadID, s)
	}
	return nil
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

func parseID[T ~string](s string) (T, error) {
	if err := CheckID(s); err != nil {
		return "", err
	}
	return T(s), nil
}

// ParseAgentID checks an agent's name.
func ParseAgentID(s string) (AgentID, error) { return parseID[AgentID](s) }

// ParseBeadID checks a bead's name.
func ParseBeadID(s string) (BeadID, error) { return parseID[BeadID](s) }

// ParseAssignmentID checks an assignment's name.
func ParseAssignmentID(s string) (AssignmentID, error) { return parseID[AssignmentID](s) }

// ParseSessionID checks a session's name.
func ParseSessionID(s string) (SessionID, error) { return parseID[SessionID](s) }

// ParseMergeID checks a merge request's name.
func ParseMergeID(s string) (MergeID, error) { return parseID[MergeID](s) }

// UnmarshalText checks the name while a file is decoded.
func (id *AgentID) UnmarshalText(b []byte) error { return unmarshalID(id, b) }

// UnmarshalText checks the name while a file is decoded.
func (id *BeadID) UnmarshalText(b []byte) error { return unmarshalID(id, b) }

// UnmarshalText checks the name while a file is decoded.
func (id *ConvoyID) UnmarshalText(b []byte) error { return unmarshalID(id, b) }

// UnmarshalText checks the name while a file is decoded.
func (id *AssignmentID) UnmarshalText(b []byte) error { return unmarshalID(id, b) }

// UnmarshalText checks the name while a file is decoded.
func (id *SessionID) UnmarshalText(b []byte) error { return unmarshalID(id, b) }

// UnmarshalText checks the name while a file is decoded.
func (id *MergeID) UnmarshalText(b []byte) error { return unmarshalID(id, b) }

// UnmarshalText checks the name while a file is decoded.
func (id *IncidentID) UnmarshalText(b []byte) error { return unmarshalID(id, b) }

// UnmarshalText checks the name while a file is decoded.
func (id *RigID) UnmarshalText(b []byte) error { return unmarshalID(id, b) }

func unmarshalID[T ~string](id *T, b []byte) error {
	if len(b) == 0 { // an optional field written out empty by another tool
		*id = ""
		return nil
	}
	parsed, err := parseID[T](string(b))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

const idAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789"

// Random returns n characters of a-z0-9 from the system's random source.
func Random(n int) string {
	raw := make([]byte, n)
	rand.Read(raw) // never returns an error
	for i, b := range raw {
		raw[i] = idAlphabet[int(b)%len(idAlphabet)]
	}
	return string(raw)
}

// NewAssignmentID returns a fresh as-… name.
func NewAssignmentID() AssignmentID { return AssignmentID("as-" + Random(8)) }

// NewSessionID returns a fresh ses-… name.
func NewSessionID() SessionID { return SessionID("ses-" + Random(8)) }

// Nearest returns up to three of names that resemble name, best first.
func Nearest(name string, names []string) []string {
	type scored struct {
		name string
		d    int
	}
	var found []scored
	for _, n := range names {
		if d := levenshtein.Distance(name, n, nil); d <= max(2, len(name)/2) {
			found = append(found, scored{n, d})
		}
	}
	sort.Slice(found, func(i, j int) bool {
		if found[i].d != found[j].d {
			return found[i].d < found[j].d
		}
		return found[i].name < found[j].name
	})
	var out []string
	for i := 0; i < len(found) && i < 3; i++ {
		out = append(out, found[i].name)
	}
	return out
}
