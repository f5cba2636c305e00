package polecat

import (
	"encoding/json"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/wording"
)

// tellIdle tells the mayor once for each attempt that its polecat has nothing in
// hand any more, and how the attempt went. It is news and no truth: a mayor that
// can't get it loses nothing.
func (d *decision) tellIdle() {
	for i := range d.f.Ended {
		d.do(idleNotification(d.f.Self, d.f.Mayor, &d.f.Ended[i]), ForgetEnded{d.f.Ended[i].AssignmentID})
	}
}

// idleReport is the metadata of an idle_notification.
type idleReport struct {
	Reason  string       `json:"idle_reason"`
	Bead    state.BeadID `json:"completed_task_id"`
	Status  string       `json:"completed_status"`
	Summary string       `json:"summary"`
}

func idleNotification(self, mayor state.AgentID, rec *retire.Record) roles.Send {
	report := idleReport{Reason: "available", Bead: rec.BeadID, Status: "resolved", Summary: rec.Summary}
	switch rec.Outcome {
	case retire.Fail:
		report.Reason, report.Status = "failed", "failed"
	case retire.Block:
		report.Status = "blocked"
	case retire.Done:
	}
	if rec.Reason != "" {
		report.Summary = rec.Reason
	}
	report.Summary = wording.Reason(report.Summary)
	metadata, _ := json.Marshal(report) // strings always encode
	return roles.Send{Message: mail.Message{To: mayor, Type: mail.IdleNotification, Priority: mail.Low, Subject: string(self) + " is idle: " + report.Reason,
		Body: report.Summary, Metadata: metadata, ID: "idle:" + string(rec.AssignmentID),
		Ref: &mail.Ref{BeadID: rec.BeadID, AssignmentID: rec.AssignmentID, Session: rec.Session}}}
}
