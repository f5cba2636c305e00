package flow

import (
	"time"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// Layer is one request of a stack that lands, with what it became when it was rebased.
type Layer struct {
	Request   mergequeue.Request
	Bead      bead.Bead
	Candidate string
}

// Landing is the sequence that lands a stack whole, or not at all. First every
// request says what is about to land: after a crash the next process finds out by it
// whether it did. Then the target moves under the locks of all beads: one that was
// taken away meanwhile never lands, and one that lands can't be taken away half-way.
//
// What has landed is finished by the same sequence, from the requests alone: Landed
// is true then, as git says. What has not is tested and landed again.
type Landing struct {
	By   state.AgentID
	Land refinery.Land
	// Layers are the requests of the stack, the oldest first.
	Layers []Layer
	Now    state.Time

	// Landed: the target holds the candidate. Durable: that is known to survive a
	// power cut.
	Landed, Durable bool
	// Lost is the request whose bead or place in the queue was taken away.
	Lost  state.MergeID
	asked map[state.BeadID]bool
}

// Layers are the requests that a decision lands, with their candidates.
func Layers(l refinery.Land) []refinery.Layer {
	if layers := l.Stack.Layers(); len(layers) > 0 {
		return layers
	}
	return []refinery.Layer{{Request: l.Request, Candidate: l.Candidate}}
}

// Answer takes note of how the last effect went.
func (l *Landing) Answer(e Effect, err error) {
	switch e := e.(type) {
	case AnnounceLanding:
		if err != nil {
			l.Lost = e.MR
		}
	case MoveTarget:
		l.Landed, l.Durable = err == nil, err == nil
	case SyncTarget:
		l.Durable = err == nil
	case MergeBead:
		if l.asked == nil {
			l.asked = map[state.BeadID]bool{}
		}
		l.asked[e.BeadID] = true
	}
}

// Next returns the next effect of a landing.
func (l *Landing) Next() Effect {
	switch {
	case l.Lost != "":
		return Done{}
	case !l.Landed:
		return l.announce()
	case !l.Durable:
		return SyncTarget{}
	}
	for i := range l.Layers {
		layer := &l.Layers[i]
		q := &layer.Request
		merged := layer.Bead.AssignmentID == q.AssignmentID && layer.Bead.Status == bead.Merged
		if !merged && !l.asked[q.BeadID] {
			return MergeBead{BeadID: q.BeadID, Assignment: q.AssignmentID, MR: q.ID, By: l.By}
		}
		if q.Status != mergequeue.Merged {
			return MarkMerged{MR: q.ID, By: l.By, Nth: i}
		}
	}
	return Done{}
}

func (l *Landing) announce() Effect {
	onto := l.Land.Onto
	move := MoveTarget{Land: l.Land}
	for i := range l.Layers {
		q := &l.Layers[i].Request
		e := AnnounceLanding{MR: q.ID, Onto: onto, Candidate: l.Layers[i].Candidate, Land: l.Land, By: l.By}
		if !e.done(q) {
			return e
		}
		onto = e.Candidate
		move.Last = *q
		move.Beads = append(move.Beads, MergeBead{BeadID: q.BeadID, Assignment: q.AssignmentID, MR: q.ID, By: l.By})
	}
	return move
}

// AnnounceLanding records in a request what is about to land. It relies on the
// commits of the stack being durable.
type AnnounceLanding struct {
	MR              state.MergeID
	Onto, Candidate string
	Land            refinery.Land
	By              state.AgentID
}

// MoveTarget advances the target, on the remote first where there is one. It relies
// on what the requests of the stack announce, and holds the locks of their beads:
// each must agree to become merged before, and is merged afterwards.
type MoveTarget struct {
	Land  refinery.Land
	Beads []MergeBead
	// Last is the youngest request of the stack.
	Last mergequeue.Request
}

// SyncTarget makes durable what an earlier process landed.
type SyncTarget struct{}

// MergeBead makes the bead of a request merged. It relies on the target, which
// durably holds its candidate. A bead that was taken away keeps what was decided for
// it.
type MergeBead struct {
	BeadID     state.BeadID
	Assignment state.AssignmentID
	MR         state.MergeID
	By         state.AgentID
}

// MarkMerged ends a request that has landed. It relies on the target and on the bead.
// The name of its notice is fixed in the same write; Nth tells those of a stack apart.
type MarkMerged struct {
	MR  state.MergeID
	By  state.AgentID
	Nth int
	// Held is asked for a request of which the rebase left nothing: the commit that
	// had brought its work to the target, or "" and Unknown, which says why that is
	// not known.
	Held, Unknown string
}

// Name implements Effect.
func (AnnounceLanding) Name() string { return "announced" }

// Name implements Effect.
func (MoveTarget) Name() string { return "target" }

// Name implements Effect.
func (SyncTarget) Name() string { return "synced" }

// Name implements Effect.
func (MergeBead) Name() string { return "bead" }

// Name implements Effect.
func (MarkMerged) Name() string { return "merged" }

// Request implements RequestChange.
func (e AnnounceLanding) Request() state.MergeID { return e.MR }

func (e AnnounceLanding) stage() mergequeue.Stage {
	if e.Land.Push {
		return mergequeue.StagePush
	}
	return mergequeue.StageMerge
}

// done reports whether a request announces this landing already.
func (e AnnounceLanding) done(q *mergequeue.Request) bool {
	return q.Status == mergequeue.Merging && q.Stage == e.stage() && q.Onto == e.Onto && q.Candidate == e.Candidate &&
		q.LandingCommit() == e.Land.Candidate && q.Tested == e.Land.Tested
}

// Change implements RequestChange.
func (e AnnounceLanding) Change(q *mergequeue.Request, now state.Time) error {
	if e.done(q) {
		return state.ErrUnchanged
	}
	if q.Status != mergequeue.Merging {
		if err := q.Become(mergequeue.Merging, now); err != nil {
			return err
		}
		q.Attempts++
	}
	q.Stage, q.Waiting, q.Failure, q.Reason, q.UpdatedAt = e.stage(), "", "", "", now
	q.Onto, q.Candidate, q.Tested = e.Onto, e.Candidate, e.Land.Tested
	RecordStack(q, e.Land.Stack)
	return nil
}

// RecordStack records what a request is tested and lands together with.
func RecordStack(q *mergequeue.Request, s *refinery.Stack) {
	q.Stack, q.StackTip = nil, ""
	if s.Len() > 1 {
		q.Stack, q.StackTip = s.Requests(), s.Top()
	}
}

// Bead implements BeadChange.
func (e MergeBead) Bead() state.BeadID { return e.BeadID }

// Change implements BeadChange.
func (e MergeBead) Change(b *bead.Bead, now state.Time) error {
	if b.AssignmentID == e.Assignment && b.Status == bead.Merged {
		return state.ErrUnchanged
	}
	if err := b.CheckAssignment(e.Assignment, bead.Done); err != nil {
		return err
	}
	return b.Become(bead.Merged, "", now)
}

// Request implements RequestChange.
func (e MarkMerged) Request() state.MergeID { return e.MR }

// Change implements RequestChange.
func (e MarkMerged) Change(q *mergequeue.Request, now state.Time) error {
	if q.Status == mergequeue.Merged {
		return state.ErrUnchanged
	}
	q.MergedSHA, q.Waiting, q.Reason = q.Candidate, "", ""
	if q.HeldBefore() {
		q.MergedSHA, q.Reason = e.Held, e.Unknown
	}
	q.NoticeName, q.Notified = string(mail.NameAt(state.At(now.Add(time.Duration(e.Nth))), e.By)), false
	return q.Become(mergequeue.Merged, now)
}
