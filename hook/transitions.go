package hook

import (
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// The transitions. Each checks status and assignment, then changes the hook and
// increments gen, or returns an ErrConflict without a change. The Store makes them durable.

func (h *Hook) illegal(step string) error {
	return state.Conflictf("hook "+string(h.AgentID), "can't be %s: it is %s (assignment %q)", step, h.Status, h.Assignment())
}

// stale returns an ErrConflict for a step of another assignment or session; session "" is
// not compared.
func (h *Hook) stale(a state.AssignmentID, session state.SessionID) error {
	if h.Assignment() != a {
		return state.Conflictf("hook "+string(h.AgentID), "has assignment %q, not %q", h.Assignment(), a)
	}
	if session != "" && h.WorkItem.Session != "" && h.WorkItem.Session != session {
		return state.Conflictf("hook "+string(h.AgentID), "belongs to session %q, not %q", h.WorkItem.Session, session)
	}
	return nil
}

// move makes the transition. A changed work item is a new value, because copies of the
// hook share the old one.
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

// Touch records progress on an active hook, or returns state.ErrUnchanged if the last
// record is younger than the interval.
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

// Lend leaves an active hook active, and records who has taken over its session. It
// replaces an existing lease, whose holder has ended.
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

// Return removes the lease, or returns state.ErrUnchanged if there is none.
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

// TakeBare is pending → empty for a bare work item. The program that wrote it may have
// reset gen, so the next gen is taken from the clock, which is above every earlier one.
func (h *Hook) TakeBare(b state.BeadID, now state.Time) error {
	if !h.Bare() || h.WorkItem.BeadID != b {
		return h.illegal("taken over")
	}
	h.Gen = max(h.Gen, now.UnixMilli())
	return h.move(Empty, nil, now)
}

// Clear is pending, active or completed → empty. If a is "", any assignment is cleared.
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
