package mayor

import (
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles/backlog"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
)

// Policy is what the definition says.
type Policy struct {
	Mayor state.AgentID
	// Witness is the one whose escalations count, beside the person's.
	Witness        state.AgentID
	MaxParallel    int
	BatchThreshold int
	// AutoClaim is pull mode: idle polecats claim work themselves.
	AutoClaim       bool
	MaxAttempts     int
	MaxConflicts    int
	MaxRestarts     int
	RestartCooldown time.Duration
	// ReworkConflicts is on_conflict: rework; otherwise a person decides.
	ReworkConflicts bool
	// Client returns the scope of the client that a bead's worker means.
	Client func(worker string) pause.Scope
}

// Polecat is one worker agent as the mayor sees it.
type Polecat struct {
	ID   state.AgentID
	Hook hook.Hook
	// Corrupt is true when the hook can't be read: nothing is slung there.
	Corrupt bool
	// Live is true when a process speaks for it; Retired when the definition no
	// longer names it; Stalled while the witness holds an incident open for it.
	Live, Retired, Stalled bool
	// Session is true for a session of a person's own. The mayor slings nothing to it, and what it holds
	// takes no place of max_parallel.
	Session bool
}

func (p *Polecat) free() bool {
	return !p.Corrupt && !p.Retired && !p.Session && p.Hook.Status == hook.Empty
}

// Escalation is what a health_escalation of the witness says.
type Escalation struct {
	Kind      string `json:"kind"`
	Severity  string `json:"severity"`
	Recommend string `json:"recommend"`
}

// Message is one unread message to the mayor.
type Message struct {
	mail.Entry
	// Escalation is set for a health_escalation.
	Escalation *Escalation
}

// Facts is what one tick fetched.
type Facts struct {
	Now     state.Time
	Policy  Policy
	Session state.SessionID
	// Starting is true for the first moments of the mayor's process: polecats
	// that are started together with it may not speak for themselves yet.
	Starting bool
	// Backlog is all beads and convoys. A decision only reads it.
	Backlog  *backlog.Backlog
	Polecats []Polecat
	// Unconfirmed are dispatches that somebody began and did not finish.
	Unconfirmed []dispatch.Record
	// Queue are the conflicted merge requests, in FIFO order; of others nothing is
	// asked.
	Queue []mergequeue.Request
	// Retired are the ends of the assignments that Matters lists.
	Retired map[state.AssignmentID]retire.Record
	// Pauses are those in force. Mended are those of them whose cause was seen, and is
	// not seen any more.
	Pauses []pause.Pause
	Mended map[pause.Scope]bool
	// Mail is unread, in processing order. Nudges are unseen, oldest first.
	Mail   []Message
	Nudges []nudge.Nudge
}

// AnyLive reports whether some polecat that gets work has a process.
func (f *Facts) AnyLive() bool {
	return slices.ContainsFunc(f.Polecats, func(p Polecat) bool { return p.Live && !p.Retired && !p.Session })
}

// NextProbe is when the next probe of a pause is due that is not due yet, or zero.
func (f *Facts) NextProbe() (next state.Time) {
	for i := range f.Pauses {
		if p := &f.Pauses[i]; p.Waits(f.Now) && (next.IsZero() || p.Until.Before(next.Time)) {
			next = p.Until
		}
	}
	return next
}

// Matters lists the assignments whose ends a decision asks for: those of hooks,
// of beads that are out or failed, and of conflicted requests.
func (f *Facts) Matters() map[state.AssignmentID]bool {
	want := map[state.AssignmentID]bool{}
	for i := range f.Polecats {
		want[f.Polecats[i].Hook.Assignment()] = true
	}
	for b := range f.Backlog.Out() {
		want[b.AssignmentID] = true
	}
	for b := range f.Backlog.Failed() {
		want[b.AssignmentID] = true
	}
	for i := range f.Queue {
		if f.Queue[i].Status == mergequeue.Conflicted {
			want[f.Queue[i].AssignmentID] = true
		}
	}
	delete(want, "")
	return want
}
