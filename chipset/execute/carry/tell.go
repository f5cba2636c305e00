package carry

import (
	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// author returns who causes an effect and why, for the log. The stores add the
// rest.
func author(e flow.Effect) (by state.AgentID, why string) {
	switch e := e.(type) {
	case flow.HookBead:
		return e.Record.By, ""
	case flow.GiveBack:
		return e.Record.By, ""
	case flow.SetHook:
		return e.Record.By, ""
	case flow.ClearHook:
		return e.By, ""
	case flow.Step:
		return e.By, e.Reason
	case flow.BeadDone:
		return e.Record.AgentID, e.Reason()
	case flow.CompleteHook:
		return e.Record.AgentID, ""
	case flow.Revive:
		return e.By, "merge request " + string(e.MR.ID) + " is retried"
	case flow.Supersede:
		return e.By, ""
	case flow.DropRequest:
		return e.By, ""
	case flow.PutBack:
		return e.By, ""
	case flow.StopWaiting:
		return e.By, ""
	case flow.Allow:
		return state.Human, ""
	}
	return "", ""
}

func undeliverable(e flow.Send, err error) event.Event {
	var w event.Work
	if ref := e.Message.Ref; ref != nil {
		w = event.Work{Bead: ref.BeadID, Assignment: ref.AssignmentID, Session: ref.Session}
	}
	return event.MailUndeliverable(e.Message.From, e.Message.To, w, err.Error())
}
