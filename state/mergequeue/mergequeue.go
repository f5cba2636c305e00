// Package mergequeue stores the merge requests: state/merge-queue/{mr}.json.
package mergequeue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Status is the status of a merge request.
type Status string

const (
	// Pending: it waits for its turn; ends when the refinery begins with it.
	Pending Status = "pending"
	// Merging: the refinery works on it; after a crash it starts again or is finished.
	Merging Status = "merging"
	// Merged: its candidate is on the target branch, durably. Final.
	Merged Status = "merged"
	// Conflicted: it can't land (conflict, failed tests, could not run); ends with
	// superseded (rework), pending (retry) or dropped.
	Conflicted Status = "conflicted"
	// Superseded: a rework replaces it. Final.
	Superseded Status = "superseded"
	// Dropped: a person has dropped it. Final.
	Dropped Status = "dropped"
)

// Live reports whether the request has not ended.
func (s Status) Live() bool { return s == Pending || s == Merging || s == Conflicted }

func (s Status) next() []Status {
	switch s {
	case Pending:
		return []Status{Merging, Dropped, Superseded}
	case Merging:
		return []Status{Pending, Merged, Conflicted, Superseded, Dropped}
	case Conflicted:
		return []Status{Pending, Superseded, Dropped}
	case Merged, Superseded, Dropped:
	}
	return nil
}

// Stage is how far the refinery has come with a merging request.
type Stage string

// Stages, in order.
const (
	StageCheckout Stage = "checkout"
	StageRebase   Stage = "rebase"
	StageTest     Stage = "test"
	StageMerge    Stage = "merge"
	StagePush     Stage = "push"
)

// Failure is why a request could not land.
type Failure string

// Failures. A request with one is never merged.
const (
	FailConflict    Failure = "conflict"
	FailTests       Failure = "tests_failed"
	FailCouldNotRun Failure = "could_not_run"
	FailRefused     Failure = "refused" // the branch touches .chipset/, or its head is missing
)

// Request is one merge request.
type Request struct {
	ID state.MergeID `json:"id"`
	// Seq is strictly increasing: the FIFO order.
	Seq          int64              `json:"seq"`
	BeadID       state.BeadID       `json:"bead_id"`
	AssignmentID state.AssignmentID `json:"assignment_id"`
	AgentID      state.AgentID      `json:"agent_id"`
	SourceBranch string             `json:"source_branch"`
	TargetBranch string             `json:"target_branch"`
	// Head is the commit that lands, after a rebase.
	Head string `json:"head"`
	// Base is the commit at which the branch began.
	Base   string `json:"base,omitempty"`
	Status Status `json:"status"`
	Stage  Stage  `json:"stage,omitempty"`
	// Onto is the tip of the target that Candidate was rebased on.
	Onto      string `json:"onto,omitempty"`
	Candidate string `json:"candidate,omitempty"`
	// Tested is true once the test command has passed on Candidate, or on StackTip if
	// that is set.
	Tested bool `json:"tested,omitempty"`
	// Stack are the requests that are tested and land together, including this one, in
	// their order. It is empty for a request by itself.
	Stack []state.MergeID `json:"stack,omitempty"`
	// StackTip is the candidate of the last request of the stack, which contains the
	// others. It is tested, and the target is advanced to it.
	StackTip string `json:"stack_tip,omitempty"`
	// MergedSHA is the commit on the target that contains the work: Candidate. If the
	// rebase left nothing, it is the earlier commit that contains the work, or empty if
	// that is not known.
	MergedSHA string  `json:"merged_sha,omitempty"`
	Failure   Failure `json:"failure,omitempty"`
	Reason    string  `json:"reason,omitempty"`
	// Waiting says why the request waits for a reason that is not its own: the test fails
	// on the tip of the target, or a checkout has local changes in the way.
	Waiting string `json:"waiting,omitempty"`
	// InTheWay is true while Waiting names files of a checkout that only this request would overwrite.
	InTheWay    bool       `json:"in_the_way,omitempty"`
	Attempts    int        `json:"attempts"`
	SubmittedAt state.Time `json:"submitted_at"`
	UpdatedAt   state.Time `json:"updated_at"`
	// NoticeName is the fixed name of the merge_notification to the mayor.
	NoticeName string `json:"notice_name,omitempty"`
	// Notified is true once that mail is durable; until then it is sent again.
	Notified bool `json:"notified,omitempty"`
	// Held is the last change of protected files that the refinery found in the candidate, or nil.
	Held *Hold `json:"held,omitempty"`
	// Allowed is the Hold.Change that the person has allowed, or "".
	Allowed string `json:"allowed,omitempty"`

	Extra state.Extra `json:"-"`
}

// Hold describes a change of protected files, which only the person may allow. It is immutable.
type Hold struct {
	// Change identifies the content of the change: paths, modes and blobs before and after.
	Change string `json:"change"`
	// Onto and Candidate are the commits between which the change was found.
	Onto      string `json:"onto"`
	Candidate string `json:"candidate"`
	// Paths are the protected files, the first MaxHeldPaths of Count.
	Paths []string `json:"paths"`
	Count int      `json:"count"`
	// Stat describes the size of the change.
	Stat string `json:"stat,omitempty"`
}

// MaxHeldPaths bounds the paths that a Hold lists.
const MaxHeldPaths = 50

// Summary names the files on one line.
func (h *Hold) Summary() string {
	const most = 3
	text := strings.Join(h.Paths[:min(most, len(h.Paths))], ", ")
	if h.Count > most {
		text += fmt.Sprintf(" and %d more", h.Count-most)
	}
	return text
}

// Passed reports whether other requests land before this one for now: files of a checkout were in its way, and
// it is not yet time to try again. The pause grows with the time that it has waited.
func (r *Request) Passed(now state.Time) bool {
	const least, most = 10 * time.Second, 10 * time.Minute
	since := now.Sub(r.UpdatedAt.Time)
	return r.InTheWay && r.Status == Pending && since >= 0 && since < min(max(r.UpdatedAt.Sub(r.SubmittedAt.Time), least), most)
}

// IsHeld reports whether the request waits for the person to allow its change of protected files.
func (r *Request) IsHeld() bool {
	return r.Held != nil && r.Status.Live() && r.Held.Change != r.Allowed
}

// UnmarshalJSON keeps unknown fields.
func (r *Request) UnmarshalJSON(b []byte) error {
	type plain Request
	return state.UnmarshalWithExtra(b, (*plain)(r), &r.Extra)
}

// MarshalJSON writes unknown fields back.
func (r Request) MarshalJSON() ([]byte, error) {
	type plain Request
	return state.MarshalWithExtra(plain(r), r.Extra)
}

// Unannounced reports whether the request has ended, successfully or not, and the mail
// that says so is not sent yet. A failed request may be superseded or dropped by then.
func (r *Request) Unannounced() bool {
	ended := r.Status == Merged || r.Status == Conflicted || !r.Status.Live() && r.Failure != ""
	return ended && r.NoticeName != "" && !r.Notified
}

// Become changes the status and the fields that depend on it, or returns an ErrConflict.
func (r *Request) Become(to Status, now state.Time) error {
	if !slices.Contains(r.Status.next(), to) {
		return state.Conflictf("merge request "+string(r.ID), "is %s and can't become %s", r.Status, to)
	}
	r.Status, r.UpdatedAt = to, now
	if to == Pending {
		r.ResetCandidate()
		r.Stage, r.Failure, r.Waiting = "", "", ""
	}
	return nil
}

// ResetCandidate removes the results of the last rebase and test.
func (r *Request) ResetCandidate() {
	r.Onto, r.Candidate, r.Tested, r.Stack, r.StackTip = "", "", false, nil, ""
}

// LandingCommit returns the commit that the target is advanced to.
func (r *Request) LandingCommit() string {
	if r.StackTip != "" {
		return r.StackTip
	}
	return r.Candidate
}

// HeldBefore reports whether the rebase left nothing, because the target already contained
// the work.
func (r *Request) HeldBefore() bool { return r.Candidate != "" && r.Candidate == r.Onto }

// Landed says how a merged request landed, for messages.
func (r *Request) Landed() string {
	switch {
	case !r.HeldBefore():
		return r.TargetBranch + " is at " + wording.ShortHash(r.MergedSHA)
	case r.MergedSHA == "":
		return cmp.Or(wording.Reason(r.Reason), r.TargetBranch+" held it already")
	}
	return r.TargetBranch + " held it already, as " + wording.ShortHash(r.MergedSHA)
}

// Told identifies the request in events.
func (r *Request) Told() event.Request {
	return event.Request{ID: r.ID, Bead: r.BeadID, Assignment: r.AssignmentID}
}

// why returns one sentence on the reason of the request's status, for events.
func (r *Request) why() string {
	switch r.Status {
	case Merging:
		text := fmt.Sprintf("try %d", r.Attempts)
		if len(r.Stack) > 0 && r.Stack[0] != r.ID {
			text += ", together with " + string(r.Stack[0])
		}
		return text
	case Pending:
		return r.Waiting
	case Merged:
		text := r.Landed()
		if len(r.Stack) > 1 {
			text += fmt.Sprintf(" (one of %d that were tested together)", len(r.Stack))
		}
		return text
	case Conflicted:
		return string(r.Failure) + ": " + wording.Clip(wording.FirstLine(r.Reason), maxWhy)
	case Superseded, Dropped:
	}
	return r.Reason
}

// maxWhy bounds the text of a failure in an event, in bytes.
const maxWhy = 200

// StackedWith returns, for each request that is tested or landed together with others,
// the others. Until they land, only the first request of a stack records it.
func StackedWith(all []Request) map[state.MergeID][]state.MergeID {
	with := map[state.MergeID][]state.MergeID{}
	for i := range all {
		if all[i].Status != Merging {
			continue
		}
		for _, id := range all[i].Stack {
			with[id] = slices.DeleteFunc(slices.Clone(all[i].Stack), func(other state.MergeID) bool { return other == id })
		}
	}
	return with
}

// IsDeep reports whether a queue with that many waiting requests is deep. It becomes deep
// above most, and stays deep above half of that, so that a queue that hovers around the
// limit is reported once.
func IsDeep(waiting, most int, was bool) bool {
	return waiting > most || was && waiting > most/2
}

// Find returns the request of an assignment, or nil.
func Find(all []Request, a state.AssignmentID) *Request {
	for i := range all {
		if all[i].AssignmentID == a {
			return &all[i]
		}
	}
	return nil
}
