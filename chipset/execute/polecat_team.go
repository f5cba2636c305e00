package execute

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/gastown-chipset/chipset/chipset/team"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/retire"
)

// planned makes a success of a worker that had to plan first, and whose plan
// nobody approved, a failure: what it did was not to be done yet.
func (p *Polecat) planned(rec retire.Record) (retire.Record, error) {
	if rec.Outcome != retire.Done {
		return rec, nil
	}
	err := team.CheckPlan(p.Rig, rec.AgentID, rec.AssignmentID)
	if errors.Is(err, team.ErrNoPlan) {
		rec.Outcome, rec.Reason = retire.Fail, "the worker ended without an approved plan: "+err.Error()
		return rec, nil
	}
	return rec, err
}

// tellIdle tells the mayor once for each attempt that its polecat has nothing
// in hand any more, and how the attempt went. It is news and no truth: a mayor
// that can't get it loses nothing.
func (p *Polecat) tellIdle(ctx context.Context, rec *retire.Record) error {
	reason, status := "available", "resolved"
	switch rec.Outcome {
	case retire.Fail:
		reason, status = "failed", "failed"
	case retire.Block:
		status = "blocked"
	case retire.Done:
	}
	summary := rec.Summary
	if rec.Reason != "" {
		summary = rec.Reason
	}
	summary = clipText(firstLine(summary), maxSubject)
	meta, err := json.Marshal(map[string]any{"idle_reason": reason, "completed_task_id": rec.BeadID, "completed_status": status, "summary": summary})
	if err != nil {
		return err
	}
	_, err = p.Rig.Send(ctx, mail.Message{From: p.ID, To: p.Rig.Mayor(), Type: mail.IdleNotification, Priority: mail.Low,
		Subject: string(p.ID) + " is idle: " + reason, Body: summary, Metadata: meta, ID: "idle:" + string(rec.AssignmentID),
		Ref: &mail.Ref{BeadID: rec.BeadID, AssignmentID: rec.AssignmentID, Session: rec.Session}})
	if errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrConflict) || errors.Is(err, state.ErrTooLarge) {
		p.story("mail.undeliverable", rec.AssignmentID, rec.BeadID, rec.Session, err.Error())
		return nil
	}
	return err
}
