package carry

import (
	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

func dispatchEvent(kind string, rec *dispatch.Record, text string) event.Event {
	return event.Event{Type: kind, Agent: rec.By, Bead: rec.BeadID, Assignment: rec.AssignmentID, Subject: string(rec.AgentID), Text: text}
}

func (c *carrier) tellDispatch(rec *dispatch.Record) {
	if rec.Stage != dispatch.Launched {
		c.Emit(dispatchEvent("dispatch."+string(rec.Stage), rec, ""))
	}
}

func (c *carrier) tellUndone(e flow.RemoveDispatch) {
	c.Emit(dispatchEvent("dispatch.undone", &e.Record, e.Refusal.Error()))
}

func (c *carrier) tellUndeliverable(e flow.Send, err error) {
	ev := event.Event{Type: "mail.undeliverable", Agent: e.Message.From, Subject: string(e.Message.From), Text: err.Error()}
	if ref := e.Message.Ref; ref != nil {
		ev.Bead, ev.Assignment, ev.Session = ref.BeadID, ref.AssignmentID, ref.Session
	}
	c.Emit(ev)
}

func (c *carrier) tellBead(e flow.BeadChange, before, after *bead.Bead) {
	ev := event.Event{Type: "bead." + string(after.Status), Bead: after.ID, Assignment: before.AssignmentID,
		From: string(before.Status), To: string(after.Status)}
	switch e := e.(type) {
	case flow.HookBead:
		ev.Agent, ev.Assignment, ev.Subject, ev.Text = e.Record.By, e.Record.AssignmentID, string(e.Record.AgentID), after.Title
	case flow.Step:
		ev.Agent, ev.Text = e.By, e.Reason
	case flow.BeadDone:
		ev.Agent, ev.Session, ev.From, ev.Text = e.Record.AgentID, e.Record.Session, string(bead.InProgress), e.Reason()
		c.say("%s: %s is %s%s", e.Record.AgentID, after.ID, after.Status, orNothing(": ", flow.Clip(head(ev.Text), 160)))
	case flow.Revive:
		if before.Status == after.Status {
			return
		}
		ev.Agent, ev.Subject, ev.Text = e.By, string(e.MR.ID), "its merge request is retried"
	default: // told by what follows from it
		return
	}
	c.Emit(ev)
}

func (c *carrier) tellHook(e flow.HookChange, before, after *hook.Hook) {
	ev := event.Event{Subject: string(after.AgentID), From: string(before.Status), To: string(after.Status)}
	switch e := e.(type) {
	case flow.SetHook:
		ev.Type, ev.Agent, ev.Bead, ev.Assignment = "hook.set", e.Record.By, e.Record.BeadID, e.Record.AssignmentID
	case flow.ClearHook:
		ev.Type, ev.Agent, ev.Bead, ev.Assignment = "hook.cleared", e.By, e.BeadID, e.Assignment
	case flow.CompleteHook:
		ev = retireEvent("hook.completed", &e.Record, "")
		ev.From, ev.To = string(before.Status), string(after.Status)
	default:
		return
	}
	c.Emit(ev)
}

func (c *carrier) tellRequest(e flow.RequestChange, before, after *mergequeue.Request) {
	ev := event.Event{Bead: after.BeadID, Assignment: after.AssignmentID, Subject: string(after.ID), From: string(before.Status), To: string(after.Status)}
	switch e := e.(type) {
	case flow.Supersede:
		ev.Type, ev.Agent = "mr.superseded", e.By
	case flow.DropRequest:
		ev.Type, ev.Agent, ev.Text = "mr.dropped", e.By, e.Reason
	case flow.PutBack:
		ev.Type, ev.Agent = "mr.retried", e.By
	case flow.StopWaiting:
		ev.Type, ev.Agent, ev.Text = "mr.retried", e.By, "it waits no longer"
	default:
		return
	}
	c.Emit(ev)
}
