package witness

import (
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/incident"
)

// Action is something the witness decided to do. Actions are carried out in
// their order; each can be carried out twice without harm.
type Action interface{ action() }

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
	// name of the mail that will tell of it.
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
	// SendNudge puts a nudge into an agent's slot and, for an incident, records
	// it there as the Count-th.
	SendNudge struct {
		To               state.AgentID
		Type             nudge.Type
		Message          string
		RequiresResponse bool
		Ref              *nudge.Ref
		InReplyTo        *state.Time
		Incident         state.IncidentID
		Count            int
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
	// Reply answers a message of a person with the health of the rig.
	Reply struct {
		To      mail.Entry
		Subject string
		Body    string
	}
	// MarkRead retires a message of the witness's own mailbox.
	MarkRead struct{ Entry mail.Entry }
	// MarkSeen retires a nudge to the witness.
	MarkSeen struct{ Nudge nudge.Nudge }
	// Finish answers a shutdown_request, retires it and ends the witness.
	Finish struct{ Request mail.Entry }
)

func (SetStatus) action()       {}
func (OpenIncident) action()    {}
func (RaiseIncident) action()   {}
func (ResolveIncident) action() {}
func (SendNudge) action()       {}
func (RecordAnswer) action()    {}
func (Escalate) action()        {}
func (Reply) action()           {}
func (MarkRead) action()        {}
func (MarkSeen) action()        {}
func (Finish) action()          {}

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
