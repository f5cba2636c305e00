// Package hook keeps the work that each agent is assigned, its hook:
// state/hooks/{agent}.json. The fields are described in docs/state.md.
//
//	empty → pending → active → completed → empty
//
// The mayor (or human) sets and clears; the agent itself activates, touches
// and completes. Every transition is a compare-and-swap across processes that
// checks status, owner and assignment, increments gen, and is durable when it
// returns nil. A loser gets a conflict and the file is untouched.
package hook

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// Status is where a hook stands.
type Status string

const (
	// Empty: nothing on it; ends when work is slung.
	Empty Status = "empty"
	// Pending: work is assigned; ends when the agent activates it, which it does at once.
	Pending Status = "pending"
	// Active: the agent works; ends when the attempt is retired or taken back.
	Active Status = "active"
	// Completed: the attempt is retired; ends when the mayor has verified it and clears the hook.
	Completed Status = "completed"
)

// WorkItem is the work on a hook.
type WorkItem struct {
	AssignedAt   state.Time         `json:"assigned_at"`
	AssignmentID state.AssignmentID `json:"assignment_id"`
	BeadID       state.BeadID       `json:"bead_id"`
	Title        string             `json:"title"`
	// Session is the worker's incarnation, set once active.
	Session state.SessionID `json:"session,omitempty"`
	// Lease is who has taken the session over, nil while it is the agent's.
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

// Lease names who has taken a session over, with the process that holds it. It is in
// force while that process holds the agent's state.LockLease; the agent ends one that is not.
type Lease struct {
	By    state.AgentID `json:"by"`
	Since state.Time    `json:"since"`
	PID   int           `json:"pid"`
	// BootID and StartTime tell PID from a later process of the same number.
	BootID    string `json:"boot_id,omitempty"`
	StartTime uint64 `json:"start_time,omitempty"`
}

// Hook is one agent's hook.
type Hook struct {
	AgentID state.AgentID `json:"agent_id"`
	// Gen counts the writes.
	Gen int64 `json:"gen"`
	// LastActivity is the last progress of the work, not of the process.
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

// Bare reports whether another program has hung work here that names a bead and no
// assignment. The mayor takes it off and slings that bead to the agent.
func (h *Hook) Bare() bool { return h.Status == Pending && h.Assignment() == "" }

// Dir is the folder of the hooks.
const Dir = state.StateDir + "/hooks"

// Store is state/hooks/.
type Store struct{ event.Recorder[Hook] }

// NewStore opens the hooks of a tree. Every step of a hook is told to the log,
// which may be nil.
func NewStore(t *state.Tree, log *event.Log) Store {
	return Store{event.Record(state.NewStore(t, Dir, "hook", state.LockHook, check), log, tell)}
}

// By returns the store as an agent uses it. why, where it is not "", is what the
// log says of its changes.
func (s Store) By(agent state.AgentID, why string) Store {
	return Store{s.Recorder.By(agent, why)}
}

// tell is what a change of a hook is told as. A new hook is its agent's, and not told.
func tell(before, after *Hook) (event.Event, bool) {
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
		return fmt.Errorf("%s without a whole work_item", h.Status)
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

// Activate is the agent's answer to a pending hook: pending → active.
func (s Store) Activate(ctx context.Context, id state.AgentID, a state.AssignmentID, session state.SessionID, now state.Time) (Hook, error) {
	return s.Update(ctx, string(id), func(h *Hook) error { return h.Activate(a, session, now) })
}

// Resume gives an active hook a new session after a crash of its agent's
// process: the assignment stays, what the old session still says is stale.
func (s Store) Resume(ctx context.Context, id state.AgentID, a state.AssignmentID, session state.SessionID, now state.Time) (Hook, error) {
	return s.Update(ctx, string(id), func(h *Hook) error { return h.Resume(a, session, now) })
}

// TouchInterval is the shortest time between two records of progress.
const TouchInterval = 15 * time.Second

// Touch records progress of the work. It writes at most once per interval;
// until then it returns the hook as it is. A last_activity in the future (the
// clock was set back) is put right.
func (s Store) Touch(ctx context.Context, id state.AgentID, a state.AssignmentID, session state.SessionID, now state.Time, interval time.Duration) (Hook, error) {
	return s.Update(ctx, string(id), func(h *Hook) error { return h.Touch(a, session, now, interval) })
}

// Lend notes on an active hook who has taken its session over.
func (s Store) Lend(ctx context.Context, id state.AgentID, a state.AssignmentID, session state.SessionID, l Lease) (Hook, error) {
	return s.Update(ctx, string(id), func(h *Hook) error { return h.Lend(a, session, l) })
}

// Return takes the lease off a hook. A hook without one stays as it is.
func (s Store) Return(ctx context.Context, id state.AgentID, now state.Time) (Hook, error) {
	return s.Update(ctx, string(id), func(h *Hook) error { return h.Return(now) })
}

// Complete ends an attempt: active → completed.
func (s Store) Complete(ctx context.Context, id state.AgentID, a state.AssignmentID, session state.SessionID, now state.Time) (Hook, error) {
	return s.Update(ctx, string(id), func(h *Hook) error { return h.Complete(a, session, now) })
}

// TakeBare takes a bare work item off: pending → empty.
func (s Store) TakeBare(ctx context.Context, id state.AgentID, b state.BeadID, now state.Time) (Hook, error) {
	return s.Update(ctx, string(id), func(h *Hook) error { return h.TakeBare(b, now) })
}

// Clear takes the work off: pending, active or completed → empty. With an
// assignment it clears that one only.
func (s Store) Clear(ctx context.Context, id state.AgentID, a state.AssignmentID, now state.Time) (Hook, error) {
	return s.Update(ctx, string(id), func(h *Hook) error { return h.Clear(a, now) })
}
