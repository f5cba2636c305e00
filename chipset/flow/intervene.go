package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Step is one move of a bead by the mayor or a person, with what goes along. As an
// effect it relies on nothing, and everything after it relies on it: the bead is
// what arbitrates.
type Step struct {
	BeadID state.BeadID
	// Assignment, when not empty, makes the step a compare-and-swap on it.
	Assignment state.AssignmentID
	// From are the statuses in which the step is right.
	From   []bead.Status
	To     bead.Status
	Reason string
	By     state.AgentID
	// Also does more to the bead in the same write, or is nil.
	Also func(b *bead.Bead)
	// Supersede retires the live merge request of the assignment that the bead
	// leaves behind.
	Supersede bool
}

// maxNotes bounds what a bead remembers of its failed attempts, maxNote one of them
// in bytes.
const (
	maxNotes = 20
	maxNote  = 8 << 10
)

// Rework is what the mayor's decision to begin a bead again does to it.
func Rework(a mayor.Reopen, by state.AgentID) Step {
	return Step{BeadID: a.Bead, Assignment: a.Assignment, From: []bead.Status{a.From}, To: bead.Open, By: by, Supersede: a.MR != "",
		Also: func(b *bead.Bead) {
			a.Charge.To(b)
			if a.Note != "" {
				b.ReworkNotes = append(b.ReworkNotes, wording.Clip(a.Note, maxNote))
			}
			if n := len(b.ReworkNotes); n > maxNotes {
				b.ReworkNotes = b.ReworkNotes[n-maxNotes:]
			}
			if !a.ReadyAt.IsZero() {
				b.ReadyAt = &a.ReadyAt
			}
		}}
}

// Block is what the mayor's decision to wait for a person does to a bead. It relies
// on the mail to the person, see BlockID.
func Block(a mayor.Block, by state.AgentID) Step {
	return Step{BeadID: a.Bead, Assignment: a.Assignment, From: []bead.Status{a.From}, To: bead.Blocked, By: by,
		Reason: wording.Clip(a.Reason, maxNote), Also: func(b *bead.Bead) { a.Charge.To(b) }}
}

// BlockID is the ID of the mail that tells a person of a bead that will be blocked.
// The charges in it tell one blocking of an assignment from the next, and are the
// same until the bead is swapped.
func BlockID(a state.AssignmentID, b *bead.Bead) string {
	return fmt.Sprintf("block-%s-%d-%d-%d", a, b.Attempts, b.Conflicts, b.Restarts)
}

// Name implements Effect.
func (s Step) Name() string { return "bead" }

// Bead implements BeadChange.
func (s Step) Bead() state.BeadID { return s.BeadID }

// Change implements BeadChange.
func (s Step) Change(b *bead.Bead, now state.Time) error {
	if s.Assignment != "" && b.AssignmentID != s.Assignment {
		return b.CheckAssignment(s.Assignment, s.From...)
	}
	if !slices.Contains(s.From, b.Status) {
		return state.Conflictf("bead "+string(b.ID), "is %s, not %s", b.Status, oneOf(s.From))
	}
	reason := s.Reason
	if s.To == bead.Open {
		reason = "" // close_reason says why a bead is closed
	}
	if err := b.Become(s.To, reason, now); err != nil {
		return err
	}
	if s.Also != nil {
		s.Also(b)
	}
	return nil
}

// oneOf lists statuses as a choice: "open, hooked or done".
func oneOf(statuses []bead.Status) string {
	last := len(statuses) - 1
	return strings.TrimPrefix(wording.Join(statuses[:last], ", ")+" or "+string(statuses[last]), " or ")
}

// Unsling takes a slung bead back. Its worker is stopped by its polecat, which
// saves the work.
func Unsling(id state.BeadID, by state.AgentID) Step {
	return Step{BeadID: id, From: []bead.Status{bead.Hooked, bead.InProgress}, To: bead.Open, By: by, Reason: "taken back by " + string(by)}
}

// Cancel gives a bead up.
func Cancel(id state.BeadID, reason string, by state.AgentID) Step {
	return Step{BeadID: id, To: bead.Cancelled, By: by, Reason: reason,
		From: []bead.Status{bead.Open, bead.Hooked, bead.InProgress, bead.Done, bead.Failed, bead.Blocked}}
}

// Reopen makes a bead open again that waits for a person, was given up, or finished
// with nothing to land. Its charges start again.
func Reopen(id state.BeadID, a state.AssignmentID, reason string, by state.AgentID) Step {
	return Step{BeadID: id, Assignment: a, To: bead.Open, By: by, Supersede: true,
		From: []bead.Status{bead.Blocked, bead.Failed, bead.Cancelled, bead.Closed},
		Also: func(b *bead.Bead) {
			b.Attempts, b.Conflicts, b.Restarts, b.Unended = 0, 0, 0, 0
			if reason != "" {
				b.ReworkNotes = append(b.ReworkNotes, "reopened by "+string(by)+": "+reason)
			}
		}}
}

// Deny sends the work of a merge request back that the person does not let land: the bead is open again, and
// its next worker reads the reason. Nothing is charged.
func Deny(q *mergequeue.Request, reason string, by state.AgentID) Step {
	return Step{BeadID: q.BeadID, Assignment: q.AssignmentID, From: []bead.Status{bead.Done}, To: bead.Open, By: by, Supersede: true,
		Also: func(b *bead.Bead) {
			b.ReworkNotes = append(b.ReworkNotes, wording.Clip(fmt.Sprintf("%s did not let it land, because it changes %s: %s", by, q.Held.Summary(), reason), maxNote))
		}}
}

// TakeBack makes a bead open again that is assigned, but is on no hook, and counts that.
func TakeBack(a mayor.TakeBack, by state.AgentID) Step {
	return Step{BeadID: a.Bead, Assignment: a.Assignment, From: []bead.Status{bead.Hooked, bead.InProgress}, To: bead.Open, By: by,
		Reason: "the hook of " + string(a.Agent) + " no longer names it", Also: func(b *bead.Bead) {
			b.Unended++
			if !a.ReadyAt.IsZero() {
				b.ReadyAt = &a.ReadyAt
			}
		}}
}

// MayTakeBack reports whether an assigned bead is to be taken back: its hook no
// longer names the assignment, and no dispatch of it is on its way. The healing of
// that dispatch decides.
func MayTakeBack(rec *dispatch.Record, hooked, a state.AssignmentID) bool {
	return hooked != a && (rec.AssignmentID != a || rec.Stage == dispatch.Confirmed)
}

// Intervention is the sequence of a step and what follows from it: the hook that
// still names the assignment is cleared, then its merge request is superseded. A
// crash in between leaves a hook that names an assignment its bead no longer has,
// which the mayor clears.
type Intervention struct {
	Step Step
	// Assignment and Assignee are those that the bead leaves behind. Under the lock
	// of its dispatch no other step changes them.
	Assignment state.AssignmentID
	Assignee   state.AgentID
	// Hooked is what the hook of the assignee names, Request the merge request of the
	// assignment or nil.
	Hooked  state.AssignmentID
	Request *mergequeue.Request
	// Taken is true once this run has moved the bead, Refusal why the step is not
	// right.
	Taken   bool
	Refusal error
}

// Answer takes note of how the last effect went.
func (i *Intervention) Answer(e Effect, err error) {
	if e.Name() == i.Step.Name() {
		i.Taken, i.Refusal = err == nil, err
	}
}

// Next returns the next effect of an intervention.
func (i *Intervention) Next() Effect {
	switch {
	case i.Refusal != nil:
		return Done{}
	case !i.Taken:
		return i.Step
	case i.Assignment == "":
		return Done{}
	case i.Hooked == i.Assignment:
		return ClearHook{Agent: i.Assignee, Assignment: i.Assignment, BeadID: i.Step.BeadID, By: i.Step.By}
	case i.Step.Supersede && i.Request != nil && i.Request.Status.Live():
		return Supersede{MR: i.Request.ID, BeadID: i.Step.BeadID, By: i.Step.By}
	}
	return Done{}
}

// Supersede retires a merge request whose place a rework takes. It relies on the
// bead, which is no longer done under the request's assignment. A request that is
// over is left alone.
type Supersede struct {
	MR     state.MergeID
	BeadID state.BeadID
	By     state.AgentID
}

// Name implements Effect.
func (Supersede) Name() string { return "superseded" }

// Request implements RequestChange.
func (e Supersede) Request() state.MergeID { return e.MR }

// Change implements RequestChange.
func (e Supersede) Change(q *mergequeue.Request, now state.Time) error {
	if !q.Status.Live() {
		return state.ErrUnchanged
	}
	return q.Become(mergequeue.Superseded, now)
}

// Revive makes the bead of a request that is retried done again, under its lock,
// in which the request is put back: a done bead with a conflicted request is what
// the mayor reworks.
type Revive struct {
	MR mergequeue.Request
	By state.AgentID
}

// Name implements Effect.
func (Revive) Name() string { return "revived" }

// Bead implements BeadChange.
func (e Revive) Bead() state.BeadID { return e.MR.BeadID }

// Change implements BeadChange.
func (e Revive) Change(b *bead.Bead, now state.Time) error {
	if err := b.CheckAssignment(e.MR.AssignmentID, bead.Done, bead.Blocked); err != nil {
		return err
	}
	if b.Status == bead.Blocked {
		return b.Become(bead.Done, "", now)
	}
	b.Touch(now)
	return nil
}

// PutBack gives a request its place in the queue back. It relies on the lock of its
// bead, which stays done or becomes so.
type PutBack struct {
	MR state.MergeID
	By state.AgentID
}

// Name implements Effect.
func (PutBack) Name() string { return "pending" }

// Request implements RequestChange.
func (e PutBack) Request() state.MergeID { return e.MR }

// Change implements RequestChange.
func (e PutBack) Change(q *mergequeue.Request, now state.Time) error {
	if q.Status == mergequeue.Pending {
		return state.ErrUnchanged
	}
	q.Reason, q.NoticeName, q.Notified = "", "", false
	return q.Become(mergequeue.Pending, now)
}

// StopWaiting lets a request that waits try again at once.
type StopWaiting struct {
	MR state.MergeID
	By state.AgentID
}

// Name implements Effect.
func (StopWaiting) Name() string { return "retried" }

// Request implements RequestChange.
func (e StopWaiting) Request() state.MergeID { return e.MR }

// Change implements RequestChange.
func (e StopWaiting) Change(q *mergequeue.Request, _ state.Time) error {
	if q.Waiting == "" {
		return state.ErrUnchanged
	}
	q.Waiting, q.InTheWay = "", false
	return nil
}

// Drop is the step that blocks the bead of a request that is given up, so that
// nothing lands in between.
func Drop(q *mergequeue.Request, reason string, by state.AgentID) (Step, DropRequest) {
	why := "merge request " + string(q.ID) + " was dropped"
	if reason != "" {
		why += ": " + reason
	}
	return Step{BeadID: q.BeadID, Assignment: q.AssignmentID, From: []bead.Status{bead.Done}, To: bead.Blocked, Reason: why, By: by},
		DropRequest{MR: q.ID, Reason: reason, By: by}
}

// DropRequest gives a request up. It relies on its bead, which is blocked, or not
// done under the request's assignment any more.
type DropRequest struct {
	MR     state.MergeID
	Reason string
	By     state.AgentID
}

// Name implements Effect.
func (DropRequest) Name() string { return "dropped" }

// Request implements RequestChange.
func (e DropRequest) Request() state.MergeID { return e.MR }

// Change implements RequestChange.
func (e DropRequest) Change(q *mergequeue.Request, now state.Time) error {
	if q.Status == mergequeue.Dropped { // the refinery saw the blocked bead first
		return state.ErrUnchanged
	}
	q.Reason, q.Waiting = e.Reason, ""
	return q.Become(mergequeue.Dropped, now)
}
