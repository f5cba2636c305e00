// Package hook stores the work that is assigned to each agent, its hook:
// state/hooks/{agent}.json. The fields are described in docs/state.md.
//
//	empty → pending → active → completed → empty
//
// The mayor (or human) sets and clears a hook; the agent itself activates, touches
// and completes it. Every transition is a compare-and-swap across processes: it checks
// status and assignment, increments gen, and is durable when it returns nil. If it is not
// legal any more, it returns a conflict, and the file is untouched.
package hook

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// Status is the status of a hook.
type Status string

const (
	// Empty: no work is assigned; ends when work is slung.
	Empty Status = "empty"
	// Pending: work is assigned; ends when the agent activates it, at once.
	Pending Status = "pending"
	// Active: the agent works; ends when the attempt is retired or taken back.
	Active Status = "active"
	// Completed: the attempt is retired; ends when the mayor has verified that and clears the hook.
	Completed Status = "completed"
)

// WorkItem is the work on a hook.
type WorkItem struct {
	AssignedAt   state.Time         `json:"assigned_at"`
	AssignmentID state.AssignmentID `json:"assignment_id"`
	BeadID       state.BeadID       `json:"bead_id"`
	Title        string             `json:"title"`
	// Session is that of the worker, set when the hook is activated.
	Session state.SessionID `json:"session,omitempty"`
	// Lease is set while somebody else has taken over the agent's session.
	Lease *Lease `json:"lease,omitempty"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (w *WorkItem) UnmarshalJSON(b []byte) error {
	type plain WorkItem
	return state.UnmarshalWithExtra(b, (*plain)(w), &w.Extra)
}

// MarshalJSON writes unknown fields back.
func (w WorkItem) MarshalJSON() ([]byte, error) {
	type plain WorkItem
	return state.MarshalWithExtra(plain(w), w.Extra)
}

// Lease records who has taken over a session, and in which process. It is in force while
// that process holds the agent's state.LockLease; the agent removes one that is not.
type Lease struct {
	By    state.AgentID `json:"by"`
	Since state.Time    `json:"since"`
	PID   int           `json:"pid"`
	// BootID and StartTime distinguish the process from a later one with the same PID.
	BootID    string `json:"boot_id,omitempty"`
	StartTime uint64 `json:"start_time,omitempty"`
}

// Hook is one agent's hook.
type Hook struct {
	AgentID state.AgentID `json:"agent_id"`
	// Gen counts the writes.
	Gen int64 `json:"gen"`
	// LastActivity is the time of the last progress of the work. A live process alone is
	// not progress.
	LastActivity state.Time `json:"last_activity"`
	Status       Status     `json:"status"`
	// WorkItem is nil when the hook is empty.
	WorkItem *WorkItem `json:"work_item"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (h *Hook) UnmarshalJSON(b []byte) error {
	type plain Hook
	return state.UnmarshalWithExtra(b, (*plain)(h), &h.Extra)
}

// MarshalJSON writes unknown fields back.
func (h Hook) MarshalJSON() ([]byte, error) {
	type plain Hook
	return state.MarshalWithExtra(plain(h), h.Extra)
}

// Assignment returns the assignment on the hook, or "".
func (h *Hook) Assignment() state.AssignmentID {
	if h.WorkItem == nil {
		return ""
	}
	return h.WorkItem.AssignmentID
}

// Bare reports whether another program has put work on the hook that names a bead but no
// assignment. The mayor takes it off and slings the bead to the agent.
func (h *Hook) Bare() bool { return h.Status == Pending && h.Assignment() == "" }

// Dir is the folder of the hooks.
const Dir = state.StateDir + "/hooks"

// Store is state/hooks/.
type Store struct{ event.Recorder[Hook] }

// NewStore opens the hooks of a tree. It logs every step of a hook; log may be nil.
func NewStore(t *state.Tree, log *event.Log) Store {
	return Store{event.Record(state.NewStore(t, Dir, "hook", state.LockHook, check), log, eventOf)}
}

// By returns the store with agent as the author of its events, and with why as their
// text, unless why is "".
func (s Store) By(agent state.AgentID, why string) Store {
	return Store{s.Recorder.By(agent, why)}
}

// eventOf returns the event of a change of a hook. A new hook has none.
func eventOf(before, after *Hook) (event.Event, bool) {
	if before == nil {
		return event.Event{}, false
	}
	m := event.HookMove{Owner: after.AgentID, From: string(before.Status), To: string(after.Status)}
	item := after.WorkItem
	switch {
	case after.Status == Pending:
		m.Step = event.HookSet
	case after.Status == Completed:
		m.Step = event.HookCompleted
	case after.Status == Empty:
		m.Step, item = event.HookCleared, before.WorkItem
	case before.Status != Active:
		m.Step = event.HookActivated
	case before.WorkItem.Session != after.WorkItem.Session:
		m.Step = event.HookResumed
	case before.WorkItem.Lease == nil && after.WorkItem.Lease != nil:
		m.Step = event.HookLent
	case before.WorkItem.Lease != nil && after.WorkItem.Lease == nil:
		m.Step = event.HookReturned
	default:
		m.Step = event.HookTouched
	}
	if item == nil {
		return event.Event{}, false
	}
	return event.HookMoved(after.AgentID, item.work(), m), true
}

func (w *WorkItem) work() event.Work {
	return event.Work{Bead: w.BeadID, Assignment: w.AssignmentID, Session: w.Session}
}

func check(name string, h *Hook) error {
	switch {
	case string(h.AgentID) != name:
		return fmt.Errorf("agent_id %q contradicts the file's name", h.AgentID)
	case !slices.Contains([]Status{Empty, Pending, Active, Completed}, h.Status):
		return fmt.Errorf("unknown status %q", h.Status)
	case h.Status == Empty && h.WorkItem != nil:
		return fmt.Errorf("empty, but with a work_item")
	case h.Status != Empty && (h.WorkItem == nil || h.WorkItem.BeadID == "" || h.WorkItem.AssignmentID == "" && !h.Bare()):
		return fmt.Errorf("%s without a complete work_item", h.Status)
	case h.Gen < 0:
		return fmt.Errorf("gen %d is negative", h.Gen)
	case h.Gen > state.MaxCounter:
		return fmt.Errorf("gen %d is above the maximum of %d", h.Gen, int64(state.MaxCounter))
	}
	return nil
}

// Ensure creates an empty hook for an agent that has none. Durable when it returns nil.
func (s Store) Ensure(ctx context.Context, id state.AgentID, now state.Time) error {
	_, err := s.Upsert(ctx, string(id), func(h *Hook, found bool) error {
		if found {
			return state.ErrUnchanged
		}
		*h = Hook{AgentID: id, Status: Empty, LastActivity: now}
		return nil
	})
	return err
}

// Set puts work on an empty hook: empty → pending.
func (s Store) Set(ctx context.Context, id state.AgentID, w WorkItem, now state.Time) (Hook, error) {
	return s.Update(ctx, string(id), func(h *Hook) error { return h.Set(w, now) })
}

// Activate begins the work of a pending hook: pending → active.
func (s Store) Activate(ctx context.Context, id state.AgentID, a state.AssignmentID, session state.SessionID, now state.Time) (Hook, error) {
	return s.Update(ctx, string(id), func(h *Hook) error { return h.Activate(a, session, now) })
}

// Resume gives an active hook a new session after a crash of its agent's process. The
// assignment stays, and later steps of the old session are refused.
func (s Store) Resume(ctx context.Context, id state.AgentID, a state.AssignmentID, session state.SessionID, now state.Time) (Hook, error) {
	return s.Update(ctx, string(id), func(h *Hook) error { return h.Resume(a, session, now) })
}

// TouchInterval is the default for the shortest time between two records of progress.
const TouchInterval = 15 * time.Second

// Touch records progress of the work. It writes at most once per interval, and otherwise
// returns the hook unchanged. A last_activity in the future (the clock was set back) is
// corrected.
func (s Store) Touch(ctx context.Context, id state.AgentID, a state.AssignmentID, session state.SessionID, now state.Time, interval time.Duration) (Hook, error) {
	return s.Update(ctx, string(id), func(h *Hook) error { return h.Touch(a, session, now, interval) })
}

// Lend records on an active hook who has taken over its session.
func (s Store) Lend(ctx context.Context, id state.AgentID, a state.AssignmentID, session state.SessionID, l Lease) (Hook, error) {
	return s.Update(ctx, string(id), func(h *Hook) error { return h.Lend(a, session, l) })
}

// Return removes the lease of a hook. A hook without a lease stays unchanged.
func (s Store) Return(ctx context.Context, id state.AgentID, now state.Time) (Hook, error) {
	return s.Update(ctx, string(id), func(h *Hook) error { return h.Return(now) })
}

// Complete ends an attempt: active → completed.
func (s Store) Complete(ctx context.Context, id state.AgentID, a state.AssignmentID, session state.SessionID, now state.Time) (Hook, error) {
	return s.Update(ctx, string(id), func(h *Hook) error { return h.Complete(a, session, now) })
}

// TakeBare removes a bare work item: pending → empty.
func (s Store) TakeBare(ctx context.Context, id state.AgentID, b state.BeadID, now state.Time) (Hook, error) {
	return s.Update(ctx, string(id), func(h *Hook) error { return h.TakeBare(b, now) })
}

// Clear removes the work: pending, active or completed → empty. Unless a is "", only work
// of that assignment is removed.
func (s Store) Clear(ctx context.Context, id state.AgentID, a state.AssignmentID, now state.Time) (Hook, error) {
	return s.Update(ctx, string(id), func(h *Hook) error { return h.Clear(a, now) })
}
