package carry

import (
	"context"
	"errors"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// Retry puts a request that could not land back to its place in the queue, and
// lets one that waits try again at once. A bead that was blocked under its
// assignment is done again. Nothing is charged. It is no error when the request
// is on its way already. Errors: ErrNotFound; ErrConflict when the request is
// over, or a rework has taken its place. Durable when it returns nil.
func Retry(ctx context.Context, r *rig.Rig, id state.MergeID, by state.AgentID) (mergequeue.Request, error) {
	q, err := r.Queue.Get(string(id))
	if err != nil {
		return q, err
	}
	switch q.Status {
	case mergequeue.Pending, mergequeue.Merging:
		return clearWaiting(ctx, r, id, by)
	case mergequeue.Conflicted:
	case mergequeue.Merged, mergequeue.Superseded, mergequeue.Dropped:
		return q, state.Conflictf("merge request "+string(id), "is %s: there is nothing to try again", q.Status)
	}
	var revived bool
	// The request comes first, and all of it under the bead's lock: a done bead
	// with a conflicted request is what the mayor reworks.
	b, err := r.Beads.UpdateThen(ctx, string(q.BeadID), func(b *bead.Bead) error {
		if err := b.CheckAssignment(q.AssignmentID, bead.Done, bead.Blocked); err != nil {
			return err
		}
		if revived = b.Status == bead.Blocked; revived {
			return b.Become(bead.Done, "", r.Clock.Now())
		}
		b.Touch(r.Clock.Now())
		return nil
	}, func() error {
		q, err = requeue(ctx, r, id)
		return err
	})
	if err != nil {
		return q, err
	}
	if revived {
		r.Emit(event.Event{Type: "bead.done", Agent: by, Bead: b.ID, Assignment: q.AssignmentID, Subject: string(id),
			From: string(bead.Blocked), To: string(bead.Done), Text: "its merge request is retried"})
	}
	r.Emit(event.Event{Type: "mr.retried", Agent: by, Bead: q.BeadID, Assignment: q.AssignmentID, Subject: string(id),
		From: string(mergequeue.Conflicted), To: string(mergequeue.Pending)})
	return q, nil
}

func requeue(ctx context.Context, r *rig.Rig, id state.MergeID) (mergequeue.Request, error) {
	return r.Queue.Update(ctx, string(id), func(m *mergequeue.Request) error {
		if m.Status == mergequeue.Pending {
			return state.ErrUnchanged
		}
		m.Reason, m.NoticeName, m.Notified = "", "", false
		return m.Become(mergequeue.Pending, r.Clock.Now())
	})
}

func clearWaiting(ctx context.Context, r *rig.Rig, id state.MergeID, by state.AgentID) (mergequeue.Request, error) {
	cleared := false
	q, err := r.Queue.Update(ctx, string(id), func(m *mergequeue.Request) error {
		if m.Waiting == "" {
			return state.ErrUnchanged
		}
		cleared = true
		m.Waiting = ""
		return nil
	})
	if err == nil && cleared {
		r.Emit(event.Event{Type: "mr.retried", Agent: by, Bead: q.BeadID, Assignment: q.AssignmentID, Subject: string(id),
			From: string(q.Status), To: string(q.Status), Text: "it waits no longer"})
	}
	return q, err
}

// Drop gives a request up: its bead is blocked first, so that nothing lands in
// between, then the request is dropped. A bead that is no longer done under the
// request's assignment stays as it is. Errors: ErrNotFound; ErrConflict when
// the request is merged or superseded. Durable when it returns nil.
func Drop(ctx context.Context, r *rig.Rig, id state.MergeID, reason string, by state.AgentID) (mergequeue.Request, error) {
	q, err := r.Queue.Get(string(id))
	if err != nil {
		return q, err
	}
	switch q.Status {
	case mergequeue.Dropped:
		return q, nil
	case mergequeue.Merged, mergequeue.Superseded:
		return q, state.Conflictf("merge request "+string(id), "is %s already", q.Status)
	case mergequeue.Pending, mergequeue.Merging, mergequeue.Conflicted:
	}
	why := "merge request " + string(id) + " was dropped"
	if reason != "" {
		why += ": " + reason
	}
	b, err := r.Beads.Move(ctx, q.BeadID, q.AssignmentID, []bead.Status{bead.Done}, bead.Blocked, why, r.Clock.Now())
	switch {
	case err == nil:
		r.Emit(event.Event{Type: "bead.blocked", Agent: by, Bead: b.ID, Assignment: q.AssignmentID, Subject: string(id),
			From: string(bead.Done), To: string(bead.Blocked), Text: why})
	case errors.Is(err, state.ErrConflict), errors.Is(err, state.ErrNotFound):
		// It is not done any more: nothing of it can land.
	default:
		return q, err
	}
	from := q.Status
	q, err = r.Queue.Update(ctx, string(id), func(m *mergequeue.Request) error {
		if m.Status == mergequeue.Dropped { // the refinery saw the blocked bead first
			return state.ErrUnchanged
		}
		from, m.Reason, m.Waiting = m.Status, reason, ""
		return m.Become(mergequeue.Dropped, r.Clock.Now())
	})
	if err == nil {
		r.Emit(event.Event{Type: "mr.dropped", Agent: by, Bead: q.BeadID, Assignment: q.AssignmentID, Subject: string(id),
			From: string(from), To: string(mergequeue.Dropped), Text: reason})
	}
	return q, err
}
