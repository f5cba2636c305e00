package witness

import (
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/incident"
)

// The witness's own actions.
type (
	// SetStatus changes an agent's life-cycle status if it still stands at From.
	SetStatus struct {
		Agent    state.AgentID
		From, To agent.Status
	}
	// OpenIncident publishes a new incident. Its ID follows from what it is for
	// and from when it opened.
	OpenIncident struct{ Incident incident.Incident }
	// RaiseIncident lifts an open incident to a higher severity and fixes the
	// name of the mail that will report it.
	RaiseIncident struct {
		ID       state.IncidentID
		Severity incident.Severity
		MailName mail.Name
		Detail   string
	}
	// ResolveIncident closes an incident with the reason.
	ResolveIncident struct {
		ID         state.IncidentID
		Resolution string
	}
	// Ask sends a health check about an incident, and records it there as the
	// Count-th.
	Ask struct {
		Nudge    roles.Nudge
		Incident state.IncidentID
		Count    int
	}
	// RecordAnswer notes that a nudge of the incident was answered.
	RecordAnswer struct {
		ID state.IncidentID
		At state.Time
	}
	// Escalate sends the mail of an incident at its present severity, under the
	// name fixed in the incident, and records that it is sent.
	Escalate struct {
		ID       state.IncidentID
		To       state.AgentID
		Severity incident.Severity
		Subject  string
		Body     string
		Ref      *mail.Ref
		Metadata Metadata
	}
	// RememberOverdue remembers that both sides of a task were reminded, as long as
	// this process runs.
	RememberOverdue struct{ Request mail.Name }
)

func (SetStatus) IsAction()       {}
func (OpenIncident) IsAction()    {}
func (RaiseIncident) IsAction()   {}
func (ResolveIncident) IsAction() {}
func (Ask) IsAction()             {}
func (RecordAnswer) IsAction()    {}
func (RememberOverdue) IsAction() {}
func (Escalate) IsAction()        {}

// Metadata is the part of a health_escalation that a program reads.
type Metadata struct {
	IncidentID   state.IncidentID   `json:"incident_id"`
	Kind         incident.Kind      `json:"kind"`
	Severity     incident.Severity  `json:"severity"`
	AgentID      state.AgentID      `json:"agent_id"`
	BeadID       state.BeadID       `json:"bead_id"`
	AssignmentID state.AssignmentID `json:"assignment_id"`
	Recommend    Recommendation     `json:"recommend"`
	// Minutes is how long there was no progress, in whole minutes.
	Minutes int `json:"minutes"`
	// Nudges is how many health checks were sent.
	Nudges int `json:"nudges"`
}

// Recommendation is what the witness advises. The recipient decides.
type Recommendation string

const (
	// RecommendNudge: ask the agent, it may be busy.
	RecommendNudge Recommendation = "nudge"
	// RecommendRestart: a new session for the same bead.
	RecommendRestart Recommendation = "restart"
	// RecommendReassign: another polecat, this one has no process to restart.
	RecommendReassign Recommendation = "reassign"
	// RecommendHuman: a person must look.
	RecommendHuman Recommendation = "human"
)
