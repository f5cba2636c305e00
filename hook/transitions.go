package hook

import (
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// The transitions themselves. Each checks status and assignment, changes the
// hook and increments gen, or returns an ErrConflict and leaves it as it is. The
// Store makes them durable.

func (h *Hook) illegal(step string) error {
	return state.Conflictf("hook "+string(h.AgentID), "is %s (assignment %q) and can't be %s", h.Status, h.Assignment(), step)
}

// stale refuses a step of an earlier incarnation; session "" is not compared.
func (h *Hook) stale(a state.AssignmentID, session state.SessionID) error {
	if h.Assignment() != a {
		return state.Conflictf("hook "+string(h.AgentID), "names assignment %q, not %q", h.Assignment(), a)
	}
	if session != "" && h.WorkItem.Session != "" && h.WorkItem.Session != session {
		return state.Conflictf("hook "+string(h.AgentID), "belongs to session %q, not %q", h.WorkItem.Session, session)
	}
	return nil
}

// move makes the transition. The work item is a new one where it changes: who
// has read the hook before keeps what was read.
func (h *Hook) move(to Status, w *WorkItem, now state.Time) error {
	h.Status, h.WorkItem, h.LastActivity = to, w, now
	h.Gen++
	return nil
}

// Set is empty → pending.
func (h *Hook) Set(w WorkItem, now state.Time) error {
	if h.Status != Empty {
		return h.illegal("set")
	}
	w.Session = ""
	return h.move(Pending, &w, now)
}

// Activate is pending → active.
func (h *Hook) Activate(a state.AssignmentID, session state.SessionID, now state.Time) error {
	if h.Status != Pending {
		return h.illegal("activated")
	}
	return h.begin(a, session, now)
}

// Resume leaves an active hook active, with a new session.
func (h *Hook) Resume(a state.AssignmentID, session state.SessionID, now state.Time) error {
	if h.Status != Active {
		return h.illegal("resumed")
	}
	return h.begin(a, session, now)
}

func (h *Hook) begin(a state.AssignmentID, session state.SessionID, now state.Time) error {
	if err := h.stale(a, ""); err != nil {
		return err
	}
	w := *h.WorkItem
	w.Session, w.Lease = session, nil
	return h.move(Active, &w, now)
}

// Touch records progress on an active hook, or returns state.ErrUnchanged when
// the last one is younger than the interval.
func (h *Hook) Touch(a state.AssignmentID, session state.SessionID, now state.Time, interval time.Duration) error {
	if h.Status != Active {
		return h.illegal("touched")
	}
	if err := h.stale(a, session); err != nil {
		return err
	}
	if since := now.Sub(h.LastActivity.Time); since >= 0 && since < interval {
		return state.ErrUnchanged
	}
	return h.move(Active, h.WorkItem, now)
}

// Lend leaves an active hook active, with its session in other hands. A lease that is there
// is of somebody who is gone.
func (h *Hook) Lend(a state.AssignmentID, session state.SessionID, l Lease) error {
	if h.Status != Active {
		return h.illegal("lent")
	}
	if err := h.stale(a, session); err != nil {
		return err
	}
	w := *h.WorkItem
	w.Lease = &l
	return h.move(Active, &w, l.Since)
}

// Return takes the lease away, or returns state.ErrUnchanged where there is none.
func (h *Hook) Return(now state.Time) error {
	if h.WorkItem == nil || h.WorkItem.Lease == nil {
		return state.ErrUnchanged
	}
	w := *h.WorkItem
	w.Lease = nil
	return h.move(h.Status, &w, now)
}

// Complete is active → completed.
func (h *Hook) Complete(a state.AssignmentID, session state.SessionID, now state.Time) error {
	if h.Status != Active {
		return h.illegal("completed")
	}
	if err := h.stale(a, session); err != nil {
		return err
	}
	w := *h.WorkItem
	w.Lease = nil
	return h.move(Completed, &w, now)
}

// TakeBare is pending → empty for a bare work item. Its writer knows no gen: the next
// one is above every one that anybody has seen, because no hook counts up to the clock.
func (h *Hook) TakeBare(b state.BeadID, now state.Time) error {
	if !h.Bare() || h.WorkItem.BeadID != b {
		return h.illegal("taken over")
	}
	h.Gen = max(h.Gen, now.UnixMilli())
	return h.move(Empty, nil, now)
}

// Clear is pending, active or completed → empty, of any assignment where a is "".
func (h *Hook) Clear(a state.AssignmentID, now state.Time) error {
	if h.Status == Empty {
		return h.illegal("cleared")
	}
	if a != "" {
		if err := h.stale(a, ""); err != nil {
			return err
		}
	}
	return h.move(Empty, nil, now)
}
