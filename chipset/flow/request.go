package flow

import (
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

// What the refinery's decisions do to a merge request. Each is one write.

// MaxRequestText bounds what a request says of its failure, in bytes.
const MaxRequestText = 4 << 10

// Begin marks a request as merging: in the stage checkout, or rebase when Onto is
// known already.
type Begin struct {
	MR   state.MergeID
	Onto string
}

// Advance records the stage that a merging request comes to, before the stage is
// begun. A request that is no longer merging is an ErrConflict.
type Advance struct {
	MR   state.MergeID
	Onto string
	// Test is set for the stage test; without it the stage is rebase.
	Test *refinery.RunTest
}

// Conflicted is a bad end of a request. The name of its notice is fixed in the same
// write.
type Conflicted struct {
	refinery.MarkConflicted
	By state.AgentID
}

// Requeued puts a merging request back to its place.
type Requeued struct{ refinery.Requeue }

// Held makes a live request wait for the person's word about a change of protected files.
type Held struct{ refinery.Hold }

// Allow lets a change of protected files land. It is the person's word about that very change: a request that
// is held for another one by now is a conflict.
type Allow struct {
	MR state.MergeID
	// Held is the Change of the Hold.
	Held string
}

// Waits says why a live request stands still.
type Waits struct{ refinery.SetWaiting }

// Ended retires a request whose bead is no longer done under its assignment. It
// relies on the bead, whose lock is held: a retry puts bead and request back together.
type Ended struct {
	MR     state.MergeID
	To     mergequeue.Status
	Reason string
}

// Name implements Effect.
func (Begin) Name() string { return "begun" }

// Name implements Effect.
func (Advance) Name() string { return "stage" }

// Name implements Effect.
func (Conflicted) Name() string { return "conflicted" }

// Name implements Effect.
func (Requeued) Name() string { return "requeued" }

// Name implements Effect.
func (Held) Name() string { return "held" }

// Name implements Effect.
func (Allow) Name() string { return "allowed" }

// Name implements Effect.
func (Waits) Name() string { return "waits" }

// Name implements Effect.
func (Ended) Name() string { return "ended" }

// Request implements RequestChange.
func (e Begin) Request() state.MergeID { return e.MR }

// Request implements RequestChange.
func (e Advance) Request() state.MergeID { return e.MR }

// Request implements RequestChange.
func (e Conflicted) Request() state.MergeID { return e.MarkConflicted.Request }

// Request implements RequestChange.
func (e Requeued) Request() state.MergeID { return e.Requeue.Request }

// Request implements RequestChange.
func (e Held) Request() state.MergeID { return e.Hold.Request }

// Request implements RequestChange.
func (e Allow) Request() state.MergeID { return e.MR }

// Request implements RequestChange.
func (e Waits) Request() state.MergeID { return e.SetWaiting.Request }

// Request implements RequestChange.
func (e Ended) Request() state.MergeID { return e.MR }

// Change implements RequestChange.
func (e Begin) Change(q *mergequeue.Request, now state.Time) error {
	if q.Status != mergequeue.Merging {
		if err := q.Become(mergequeue.Merging, now); err != nil {
			return err
		}
		q.Attempts++
	}
	q.Stage, q.Waiting, q.Failure, q.Reason, q.UpdatedAt = mergequeue.StageCheckout, "", "", "", now
	q.InTheWay = false
	q.ResetCandidate()
	if e.Onto != "" {
		q.Stage, q.Onto = mergequeue.StageRebase, e.Onto
	}
	return nil
}

// Change implements RequestChange.
func (e Advance) Change(q *mergequeue.Request, now state.Time) error {
	if q.Status != mergequeue.Merging {
		return state.Conflictf("merge request "+string(q.ID), "is %s", q.Status)
	}
	q.Stage, q.Waiting, q.UpdatedAt, q.Onto = mergequeue.StageRebase, "", now, e.Onto
	if e.Test == nil {
		return nil
	}
	q.Stage, q.Candidate, q.Tested = mergequeue.StageTest, e.Test.Candidate, false
	if e.Test.Stack.Len() > 0 {
		q.Candidate = e.Test.Stack.Layers()[0].Candidate
	}
	RecordStack(q, e.Test.Stack)
	return nil
}

// Change implements RequestChange.
func (e Conflicted) Change(q *mergequeue.Request, now state.Time) error {
	if q.Status != mergequeue.Merging {
		return state.ErrUnchanged
	}
	q.Failure, q.Reason, q.Waiting = e.Failure, wording.Clip(e.Reason, MaxRequestText), ""
	q.NoticeName, q.Notified = string(mail.NameAt(now, e.By)), false
	return q.Become(mergequeue.Conflicted, now)
}

// Change implements RequestChange.
func (e Requeued) Change(q *mergequeue.Request, now state.Time) error {
	if q.Status != mergequeue.Merging {
		return state.ErrUnchanged
	}
	err := q.Become(mergequeue.Pending, now)
	q.Waiting, q.InTheWay = wording.Clip(e.Waiting, MaxRequestText), e.InTheWay
	return err
}

// Change implements RequestChange.
func (e Held) Change(q *mergequeue.Request, now state.Time) error {
	q.Held, q.UpdatedAt = e.Hold.Change, now
	switch q.Status {
	case mergequeue.Merging:
		return q.Become(mergequeue.Pending, now)
	case mergequeue.Pending:
		return nil
	case mergequeue.Conflicted, mergequeue.Merged, mergequeue.Superseded, mergequeue.Dropped:
	}
	return state.ErrUnchanged
}

// Change implements RequestChange.
func (e Allow) Change(q *mergequeue.Request, now state.Time) error {
	switch {
	case q.Held == nil || q.Held.Change != e.Held || !q.Status.Live():
		return state.Conflictf("merge request "+string(q.ID), "is not held for this change any more")
	case q.Allowed == e.Held:
		return state.ErrUnchanged
	}
	q.Allowed, q.UpdatedAt = e.Held, now
	return nil
}

// Change implements RequestChange.
func (e Waits) Change(q *mergequeue.Request, _ state.Time) error {
	waiting := wording.Clip(e.Waiting, MaxRequestText)
	if !q.Status.Live() || q.Waiting == waiting {
		return state.ErrUnchanged
	}
	q.Waiting = waiting
	return nil
}

// EndOf is how a request ends whose bead is gone or has gone another way; false for
// one whose bead is done under its assignment. b is nil when there is none.
func EndOf(q *mergequeue.Request, b *bead.Bead) (Ended, bool) {
	e := Ended{MR: q.ID, To: mergequeue.Superseded}
	switch {
	case b == nil:
		e.To, e.Reason = mergequeue.Dropped, "bead "+string(q.BeadID)+" does not exist"
		return e, true
	case b.CheckAssignment(q.AssignmentID, bead.Done) == nil:
		return e, false
	case b.Status == bead.Cancelled || b.Status == bead.Blocked:
		e.To = mergequeue.Dropped
	}
	e.Reason = "bead " + string(b.ID) + " is " + string(b.Status)
	return e, true
}

// Change implements RequestChange.
func (e Ended) Change(q *mergequeue.Request, now state.Time) error {
	if q.Status != mergequeue.Pending && q.Status != mergequeue.Merging {
		return state.ErrUnchanged
	}
	q.Reason, q.Waiting = e.Reason, ""
	return q.Become(e.To, now)
}
