// Package incident stores the incidents that the witness reports:
// state/incidents/{incident}.json.
package incident

import (
	"cmp"
	"fmt"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// Severity is the severity of an incident. It grows with time.
type Severity string

// Severities. None means that there is no incident.
const (
	None     Severity = ""
	Warning  Severity = "warning"
	Alert    Severity = "alert"
	Critical Severity = "critical"
)

// Rank orders severities.
func (s Severity) Rank() int {
	switch s {
	case Warning:
		return 1
	case Alert:
		return 2
	case Critical:
		return 3
	case None:
	}
	return 0
}

// Kind is what is wrong.
type Kind string

// Kinds of incidents.
const (
	Stalled      Kind = "stalled"          // active without progress
	NotPickedUp  Kind = "not_picked_up"    // pending and not activated
	ProcessGone  Kind = "process_gone"     // active and its process is dead
	Restarts     Kind = "restart_limit"    // the same bead was restarted too often
	CorruptHook  Kind = "corrupt_hook"     // the hook can't be read
	HeldLong     Kind = "held_long"        // a session of the person has held a bead for a day
	MergeStuck   Kind = "merge_stuck"      // a request has been merging for too long
	QueueBlocked Kind = "queue_blocked"    // nothing lands
	QueueDeep    Kind = "queue_deep"       // too many requests wait
	MayorSilent  Kind = "mayor_silent"     // work is not dispatched, or urgent mail not read
	MayorMissing Kind = "mayor_missing"    // no process runs the mayor
	RefineryGone Kind = "refinery_missing" // requests wait and no process runs the refinery
	DiskLow      Kind = "disk_low"
)

// Incident is one problem. It is open until ResolvedAt is set.
type Incident struct {
	ID           state.IncidentID   `json:"id"`
	AgentID      state.AgentID      `json:"agent_id"`
	AssignmentID state.AssignmentID `json:"assignment_id,omitempty"`
	BeadID       state.BeadID       `json:"bead_id,omitempty"`
	Kind         Kind               `json:"kind"`
	Severity     Severity           `json:"severity"`
	// Nudges counts health checks sent; LastNudge is the newest of them.
	Nudges    int         `json:"nudges"`
	LastNudge *state.Time `json:"last_nudge,omitempty"`
	// Answers counts the nudges that were answered, at most Nudges; AnsweredAt
	// is the time of the newest answer.
	Answers    int         `json:"answers,omitempty"`
	AnsweredAt *state.Time `json:"answered_at,omitempty"`
	// Activity is the hook's last_activity when the incident opened. A different one means
	// progress, even if the clock was changed.
	Activity    *state.Time `json:"activity,omitempty"`
	OpenedAt    state.Time  `json:"opened_at"`
	EscalatedAt *state.Time `json:"escalated_at,omitempty"`
	ResolvedAt  *state.Time `json:"resolved_at,omitempty"`
	Resolution  string      `json:"resolution,omitempty"`
	Detail      string      `json:"detail,omitempty"`
	// MailName fixes the name of the escalation at the current severity.
	MailName string `json:"mail_name,omitempty"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (i *Incident) UnmarshalJSON(b []byte) error {
	type plain Incident
	return state.UnmarshalWithExtra(b, (*plain)(i), &i.Extra)
}

// MarshalJSON writes unknown fields back.
func (i Incident) MarshalJSON() ([]byte, error) {
	type plain Incident
	return state.MarshalWithExtra(plain(i), i.Extra)
}

// Open reports whether the incident is not resolved.
func (i *Incident) Open() bool { return i.ResolvedAt == nil }

// Raise raises the severity of the incident; mailName is the name of the escalation. It
// returns state.ErrUnchanged if the incident is resolved or has that severity already.
func (i *Incident) Raise(to Severity, mailName, detail string) error {
	if !i.Open() || i.Severity.Rank() >= to.Rank() {
		return state.ErrUnchanged
	}
	i.Severity, i.MailName, i.EscalatedAt, i.Detail = to, mailName, nil, cmp.Or(detail, i.Detail)
	return nil
}

// Resolve closes the incident, or returns state.ErrUnchanged if it is closed.
func (i *Incident) Resolve(why string, now state.Time) error {
	if !i.Open() {
		return state.ErrUnchanged
	}
	i.ResolvedAt, i.Resolution = &now, why
	return nil
}

// Ask records that the count-th nudge was sent.
func (i *Incident) Ask(count int, at state.Time) { i.Nudges, i.LastNudge = max(i.Nudges, count), &at }

// Answer counts an answer to a nudge, or returns state.ErrUnchanged if it is not newer than the last one.
func (i *Incident) Answer(at state.Time) error {
	if i.AnsweredAt != nil && !at.After(i.AnsweredAt.Time) {
		return state.ErrUnchanged
	}
	i.Answers, i.AnsweredAt = min(i.Answers+1, i.Nudges), &at
	return nil
}

// Key identifies an open incident: there is at most one for each key.
type Key struct {
	Agent      state.AgentID
	Assignment state.AssignmentID
	Kind       Kind
}

// Key returns the incident's key.
func (i *Incident) Key() Key { return Key{i.AgentID, i.AssignmentID, i.Kind} }

// Dir is the folder of the incidents.
const Dir = state.StateDir + "/incidents"

// Store is state/incidents/.
type Store struct{ event.Recorder[Incident] }

// NewStore opens the incidents of a tree. It logs incidents that are opened, raised and
// resolved; log may be nil.
func NewStore(t *state.Tree, log *event.Log) Store {
	return Store{event.Record(state.NewStore(t, Dir, "incident", state.LockRecord, check), log, eventOf)}
}

func eventOf(before, after *Incident) (event.Event, bool) {
	about := event.Incident{ID: after.ID, Agent: after.AgentID, Kind: string(after.Kind), Detail: after.Detail,
		Work: event.Work{Bead: after.BeadID, Assignment: after.AssignmentID}}
	switch {
	case before == nil:
		return event.IncidentOpened(about, string(after.Severity)), true
	case before.Open() && !after.Open():
		return event.IncidentResolved(about, string(after.Severity), after.Resolution), true
	case before.Severity.Rank() < after.Severity.Rank():
		return event.IncidentRaised(about, string(before.Severity), string(after.Severity)), true
	}
	return event.Event{}, false
}

func check(name string, i *Incident) error {
	switch {
	case string(i.ID) != name:
		return fmt.Errorf("id %q contradicts the file's name", i.ID)
	case i.Severity.Rank() == 0:
		return fmt.Errorf("unknown severity %q", i.Severity)
	}
	return nil
}
