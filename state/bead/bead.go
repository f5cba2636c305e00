// Package bead stores the work items: state/work/{bead}.json. Every step of the work on a
// bead is a compare-and-swap on its file, so that the work lands at most once, however
// late an old worker wakes up.
package bead

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/gastown-chipset/chipset/state"
)

// Status is the status of a bead.
type Status string

const (
	// Open: not assigned; ends when it is slung, blocked or cancelled.
	Open Status = "open"
	// Hooked: on an agent's hook; ends when the agent activates it, or it is taken back.
	Hooked Status = "hooked"
	// InProgress: an agent works on it; ends when the attempt is retired or taken back.
	InProgress Status = "in_progress"
	// Done: submitted to the merge queue; ends when it lands or is reworked.
	Done Status = "done"
	// Merged: landed on the target branch. Final.
	Merged Status = "merged"
	// Closed: finished with nothing to land. Final unless reopened.
	Closed Status = "closed"
	// Failed: this attempt is over; the mayor decides what comes next.
	Failed Status = "failed"
	// Blocked: waits for a person; ends with reopen or cancel.
	Blocked Status = "blocked"
	// Cancelled: no longer wanted; ends only with reopen.
	Cancelled Status = "cancelled"
)

// Landed reports whether the work has landed, or had nothing to land, so that dependants
// may start.
func (s Status) Landed() bool { return s == Merged || s == Closed }

// Finished reports whether the rig will do nothing more with the bead.
func (s Status) Finished() bool { return s.Landed() || s == Cancelled }

// next returns the statuses that may follow. The mayor and human set open, hooked, blocked
// and cancelled; the polecat in_progress, done, failed and closed; the refinery merged.
func (s Status) next() []Status {
	switch s {
	case Open:
		return []Status{Hooked, Blocked, Cancelled}
	case Hooked:
		return []Status{InProgress, Open, Blocked, Cancelled}
	case InProgress:
		return []Status{Done, Failed, Closed, Open, Blocked, Cancelled}
	case Done:
		return []Status{Merged, Open, Blocked, Cancelled}
	case Failed:
		return []Status{Open, Blocked, Cancelled}
	case Blocked:
		return []Status{Open, Done, Cancelled} // done again: its merge request is retried
	case Closed, Cancelled:
		return []Status{Open}
	case Merged:
		return nil
	}
	return nil
}

// CanBecome reports whether a bead may change from s to another status.
func (s Status) CanBecome(to Status) bool { return slices.Contains(s.next(), to) }

// Statuses lists all statuses.
func Statuses() []Status {
	return []Status{Open, Hooked, InProgress, Done, Merged, Closed, Failed, Blocked, Cancelled}
}

// Known reports whether s is a valid status.
func (s Status) Known() bool { return slices.Contains(Statuses(), s) }

// Priority is P1 (first) to P3.
type Priority string

// Priorities.
const (
	P1 Priority = "P1"
	P2 Priority = "P2"
	P3 Priority = "P3"
)

// Rank is 1 for P1 to 3 for P3.
func (p Priority) Rank() int {
	switch p {
	case P1:
		return 1
	case P3:
		return 3
	case P2:
	}
	return 2
}

// Bead is one work item.
type Bead struct {
	ID          state.BeadID   `json:"id"`
	Title       string         `json:"title"`
	Description string         `json:"description,omitempty"`
	Acceptance  string         `json:"acceptance,omitempty"`
	Status      Status         `json:"status"`
	Priority    Priority       `json:"priority"`
	Type        string         `json:"type,omitempty"`
	Labels      []string       `json:"labels,omitempty"`
	BlockedBy   []state.BeadID `json:"blocked_by,omitempty"`
	ConvoyID    state.ConvoyID `json:"convoy_id,omitempty"`

	Assignee     state.AgentID      `json:"assignee,omitempty"`
	AssignmentID state.AssignmentID `json:"assignment_id,omitempty"`
	// Branch is the branch of the current or last assignment.
	Branch string `json:"branch,omitempty"`
	// Assignments counts how often the bead was slung; it numbers the branches.
	Assignments int `json:"assignments,omitempty"`
	// Attempts counts failed attempts that are charged, Conflicts merge conflicts, and
	// Restarts stalled workers that were replaced.
	Attempts  int `json:"attempts,omitempty"`
	Conflicts int `json:"conflicts,omitempty"`
	Restarts  int `json:"restarts,omitempty"`
	// Unended counts consecutive assignments that ended without a retire record: the hook
	// was completed or cleared by hand.
	Unended int `json:"unended,omitempty"`
	// ReworkNotes tell the next worker why earlier attempts failed, oldest first.
	ReworkNotes []string `json:"rework_notes,omitempty"`

	CreatedAt state.Time    `json:"created_at"`
	CreatedBy state.AgentID `json:"created_by,omitempty"`
	// FoundIn is the bead whose worker added this one, or "".
	FoundIn   state.BeadID `json:"found_in,omitempty"`
	UpdatedAt state.Time   `json:"updated_at"`
	// ReadyAt is when the bead may be slung again after a failure.
	ReadyAt     *state.Time       `json:"ready_at,omitempty"`
	ClosedAt    *state.Time       `json:"closed_at,omitempty"`
	CloseReason string            `json:"close_reason,omitempty"`
	AllowEmpty  bool              `json:"allow_empty,omitempty"`
	Worker      string            `json:"worker,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	// Gen counts the writes; every change is a compare-and-swap on it.
	Gen int64 `json:"gen"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (b *Bead) UnmarshalJSON(data []byte) error {
	type plain Bead
	return state.UnmarshalWithExtra(data, (*plain)(b), &b.Extra)
}

// MarshalJSON writes unknown fields back.
func (b Bead) MarshalJSON() ([]byte, error) {
	type plain Bead
	return state.MarshalWithExtra(plain(b), b.Extra)
}

// FailureCounts formats the counters of failures for messages.
func (b *Bead) FailureCounts() string {
	s := fmt.Sprintf("failed attempts: %d, conflicts: %d, restarts: %d", b.Attempts, b.Conflicts, b.Restarts)
	if b.Unended > 0 {
		s += fmt.Sprintf(", hook completed or cleared by hand: %d", b.Unended)
	}
	return s
}

// Cooling reports whether the bead must wait for ReadyAt. If the clock was set back since
// the bead changed, it need not wait.
func (b *Bead) Cooling(now state.Time) bool {
	return b.ReadyAt != nil && b.ReadyAt.After(now.Time) && !b.UpdatedAt.After(now.Time)
}

// Become changes the status and the fields that depend on it, or returns an ErrConflict.
func (b *Bead) Become(to Status, reason string, now state.Time) error {
	if !b.Status.CanBecome(to) {
		return state.Conflictf("bead "+string(b.ID), "is %s and can't become %s", b.Status, to)
	}
	b.Status, b.UpdatedAt = to, now
	b.Gen++
	b.ReadyAt = nil
	if to.Finished() {
		b.ClosedAt = &now
	} else {
		b.ClosedAt = nil
	}
	b.CloseReason = reason
	switch to {
	case Open:
		b.Assignee, b.AssignmentID = "", ""
	case Done, Failed, Closed:
		b.Unended = 0
	case Hooked, InProgress, Merged, Blocked, Cancelled:
	}
	return nil
}

// MetaImported is the key of Metadata for the ID of the bead in another issue tracker.
// Only such a bead can be finished there.
const MetaImported = "bd_id"

// MetaSource is the key of Metadata for the data that an import keeps of the issue: a JSON
// object, in which "as" is the status that the import gave the bead, and "gen" the bead's
// gen after that.
const MetaSource = "bd"

// Imported reports whether the bead came from another issue tracker.
func (b *Bead) Imported() bool { return b.Metadata[MetaImported] != "" }

// CloseImported closes an imported bead that is not being worked on, because it was
// finished in the other issue tracker, or returns an ErrConflict.
func (b *Bead) CloseImported(reason string, at, now state.Time) error {
	if !b.Imported() || !slices.Contains(editable(), b.Status) {
		return state.Conflictf("bead "+string(b.ID), "is %s and can't be closed", b.Status)
	}
	b.Status, b.UpdatedAt, b.ClosedAt, b.CloseReason, b.ReadyAt = Closed, now, &at, reason, nil
	b.Gen++
	return nil
}

// editable lists the statuses in which a person may edit the text of a bead.
func editable() []Status { return []Status{Open, Failed, Blocked} }

// Editable reports whether a person may edit the text of the bead.
func (b *Bead) Editable() bool { return slices.Contains(editable(), b.Status) }

// Touch records a change that keeps the status.
func (b *Bead) Touch(now state.Time) { b.UpdatedAt = now; b.Gen++ }

// CheckAssignment returns an ErrConflict unless the bead has this assignment and one of
// the given statuses, so that late actions of an earlier assignment are refused.
func (b *Bead) CheckAssignment(by state.AssignmentID, in ...Status) error {
	if b.AssignmentID != by || !slices.Contains(in, b.Status) {
		return state.Conflictf("bead "+string(b.ID), "is %s under assignment %q, not %v under %q", b.Status, b.AssignmentID, in, by)
	}
	return nil
}

// BranchFor returns the branch of the n-th assignment (from 1). Each assignment has a
// branch of its own.
func BranchFor(id state.BeadID, n int) string {
	if n <= 1 {
		return "polecat/" + string(id)
	}
	return fmt.Sprintf("polecat/%s-%d", id, n)
}

// Limits of what a person or an agent may write into a bead, in bytes.
const (
	MaxTitle = 500
	MaxText  = 512 << 10
)

var prefixPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9]{1,8}$`)
})

// NewID returns a fresh name {prefix}-{5 of a-z0-9}.
func NewID(prefix string) (state.BeadID, error) {
	if !prefixPattern().MatchString(prefix) {
		return "", fmt.Errorf("%w: bead prefix %q", state.ErrBadID, prefix)
	}
	return state.BeadID(prefix + "-" + state.Random(5)), nil
}

func check(name string, b *Bead) error {
	switch {
	case string(b.ID) != name:
		return fmt.Errorf("id %q contradicts the file's name", b.ID)
	case !b.Status.Known():
		return fmt.Errorf("unknown status %q", b.Status)
	case b.Priority != P1 && b.Priority != P2 && b.Priority != P3:
		return fmt.Errorf("unknown priority %q", b.Priority)
	case strings.TrimSpace(b.Title) == "":
		return fmt.Errorf("no title")
	case len(b.Title) > MaxTitle || strings.ContainsAny(b.Title, "\n\r\x00"):
		return fmt.Errorf("the title must be one line of at most %d bytes", MaxTitle)
	case b.Gen < 0 || b.Attempts < 0 || b.Restarts < 0 || b.Conflicts < 0 || b.Unended < 0 || b.Assignments < 0:
		return fmt.Errorf("a counter is negative")
	case b.Gen > state.MaxCounter:
		return fmt.Errorf("gen %d is above the maximum of %d", b.Gen, int64(state.MaxCounter))
	case (b.Status == Hooked || b.Status == InProgress || b.Status == Done) && b.AssignmentID == "":
		return fmt.Errorf("%s without an assignment_id", b.Status)
	}
	return nil
}
