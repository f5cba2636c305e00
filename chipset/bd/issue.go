package bd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/state"
)

// Issue is one issue of bd. Fields that have no meaning here are kept in Extra.
type Issue struct {
	// Kind is "issue" or "" for issues, and something else for the other records of newer exports.
	Kind         string          `json:"_type,omitempty"`
	ID           string          `json:"id"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	Design       string          `json:"design,omitempty"`
	Acceptance   string          `json:"acceptance_criteria,omitempty"`
	Notes        string          `json:"notes,omitempty"`
	Status       string          `json:"status,omitempty"`
	Priority     int             `json:"priority"`
	Type         string          `json:"issue_type,omitempty"`
	Assignee     string          `json:"assignee,omitempty"`
	CreatedAt    *state.Time     `json:"created_at,omitempty"`
	CreatedBy    string          `json:"created_by,omitempty"`
	UpdatedAt    *state.Time     `json:"updated_at,omitempty"`
	ClosedAt     *state.Time     `json:"closed_at,omitempty"`
	CloseReason  string          `json:"close_reason,omitempty"`
	DeferUntil   string          `json:"defer_until,omitempty"`
	Labels       []string        `json:"labels,omitempty"`
	Dependencies []Dependency    `json:"dependencies,omitempty"`
	Ephemeral    bool            `json:"ephemeral,omitempty"`
	Pinned       bool            `json:"pinned,omitempty"`
	Template     bool            `json:"is_template,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (i *Issue) UnmarshalJSON(data []byte) error {
	type plain Issue
	return state.UnmarshalWithExtra(data, (*plain)(i), &i.Extra)
}

// MarshalJSON writes unknown fields back.
func (i Issue) MarshalJSON() ([]byte, error) {
	type plain Issue
	return state.MarshalWithExtra(plain(i), i.Extra)
}

// Dependency is a relation of an issue to another one.
type Dependency struct {
	IssueID     string `json:"issue_id,omitempty"`
	DependsOnID string `json:"depends_on_id"`
	Type        string `json:"type,omitempty"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (d *Dependency) UnmarshalJSON(data []byte) error {
	type plain Dependency
	return state.UnmarshalWithExtra(data, (*plain)(d), &d.Extra)
}

// MarshalJSON writes unknown fields back.
func (d Dependency) MarshalJSON() ([]byte, error) {
	type plain Dependency
	return state.MarshalWithExtra(plain(d), d.Extra)
}

// The statuses of an issue that mean something here. bd knows more, and lets
// its users define their own.
const (
	statusOpen       = "open"
	statusInProgress = "in_progress"
	statusHooked     = "hooked"
	statusBlocked    = "blocked"
	statusDeferred   = "deferred"
	statusPinned     = "pinned"
	statusClosed     = "closed"
	// statusTombstone: deleted, kept so that the deletion is not undone by a merge.
	statusTombstone = "tombstone"
)

const (
	depBlocks      = "blocks"
	depParentChild = "parent-child"
)

// holdsBack reports whether the issue can't start before the other one is closed.
func (d *Dependency) holdsBack() bool {
	return slices.Contains([]string{"", depBlocks, "conditional-blocks", "waits-for"}, d.Type)
}

// over reports whether the issue holds nothing back any more.
func (i *Issue) over() bool { return i.Status == statusClosed || i.Status == statusTombstone }

// ignored returns why an issue is not a work item, or "".
func (i *Issue) ignored() string {
	switch {
	case i.Kind != "" && i.Kind != "issue":
		return "it is a " + i.Kind
	case i.Ephemeral:
		return "it is ephemeral"
	case i.Template:
		return "it is a template"
	case slices.Contains([]string{"message", "event", "gate", "molecule", "agent", "role", "rig", "convoy", "slot", "merge-request"}, i.Type):
		return "it is a " + i.Type
	}
	return ""
}

// hash returns a hash of the issue's content, without the time of its last change.
func (i Issue) hash() (string, error) {
	i.UpdatedAt = nil
	if i.Status == "" {
		i.Status = statusOpen
	}
	if i.Kind == "issue" {
		i.Kind = ""
	}
	data, err := state.EncodeLine(i)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}

// longestID leaves room for what branches and merge requests add to the ID of a bead.
const longestID = 48

// beadID returns the ID of the bead for an issue: the issue's own ID if it is legal and
// can be part of a branch's name, else one derived from it. Different issues have
// different ones.
func beadID(issue string) state.BeadID {
	if id, err := state.ParseBeadID(issue); err == nil && len(issue) <= longestID &&
		!strings.Contains(issue, "..") && !strings.HasSuffix(issue, ".") && !strings.HasSuffix(issue, ".lock") {
		return id
	}
	sum := sha256.Sum256([]byte(issue))
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, issue)
	const hashed = 10
	readable = strings.Trim(readable[:min(len(readable), longestID-hashed-1)], "-")
	if readable == "" {
		readable = "bd"
	}
	return state.BeadID(readable + "-" + hex.EncodeToString(sum[:hashed/2]))
}
