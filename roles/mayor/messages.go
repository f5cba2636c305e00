package mayor

import (
	"fmt"
	"slices"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// mail handles the messages of agents. The files that they are about hold the truth, so
// reports are only marked as read; escalations and requests ask for something. It
// reports whether the mayor is asked to end.
func (d *decision) mail() (closing bool) {
	for _, l := range d.Mail {
		var effect roles.Action
		switch l.Type {
		case mail.ShutdownRequest:
			if l.RequestsShutdown(d.Policy.Mayor, d.Session) {
				closing = true
				d.do(roles.AnswerShutdown(d.Policy.Mayor, l.Entry, "No more work is dispatched; work in progress continues.\n")...)
				continue
			}
		case mail.HealthEscalation:
			effect = d.escalation(l)
		case mail.PlanRequest, mail.PermissionRequest:
			effect = d.forward(l)
		case mail.PlanResponse, mail.PermissionResponse:
			effect = d.relay(l)
		default: // reports and coordination: the files say the same
		}
		if effect != nil {
			d.do(effect, roles.MarkRead{Entry: l.Entry})
		} else {
			d.do(roles.MarkRead{Entry: l.Entry})
		}
	}
	return closing
}

// forward passes a question that only a person may answer on to the person. The
// thread names the question, and with it the asker, so that the answer can be relayed.
func (d *decision) forward(l Message) roles.Action {
	if l.From == state.Human {
		return nil
	}
	return roles.Send{Message: mail.Message{To: state.Human, Type: l.Type, Subject: string(l.From) + " asks: " + l.Subject, Body: l.Body,
		InReplyTo: string(l.Name), Thread: string(l.Name), ID: "forward:" + string(l.Name), Ref: l.Ref, Metadata: l.Metadata}}
}

// relay passes the person's answer to a forwarded question on to the agent that asked.
// Answers of anybody else are not relayed.
func (d *decision) relay(l Message) roles.Action {
	_, asker, err := state.ParseTimestampedName(l.Thread)
	if err != nil || l.From != state.Human || asker == d.Policy.Mayor || asker == state.Human {
		return nil
	}
	return roles.Send{Message: mail.Message{To: asker, Type: l.Type, Subject: l.Subject, Body: l.Body, InReplyTo: l.Thread, Thread: l.Thread,
		ID: "relay:" + string(l.Name), Ref: l.Ref, Metadata: l.Metadata}}
}

// escalation answers the witness: nudge, restart, reassign, or ask a person.
func (d *decision) escalation(l Message) roles.Action {
	if l.Escalation == nil || l.Ref == nil || l.From != d.Policy.Witness && l.From != state.Human {
		return nil
	}
	b := d.Backlog.Get(l.Ref.BeadID)
	if b == nil || l.Ref.AssignmentID == "" || b.CheckAssignment(l.Ref.AssignmentID, bead.Hooked, bead.InProgress) != nil || d.touched[b.ID] {
		return nil // it is about an assignment that is over
	}
	if rec, retiring := d.Retired[b.AssignmentID]; retiring { // past the point of no return
		if !rec.Stage.Final() && !d.live(b.Assignee) && d.otherLive(b.Assignee) {
			return d.finishFor(b.Assignee, b.ID)
		}
		return nil
	}
	switch l.Escalation.Recommend {
	case "reassign":
		return d.reassign(b)
	case "restart", "human":
		if !d.live(b.Assignee) { // a dead process is nothing that the work is to blame for
			return d.reassign(b)
		}
		return d.restart(b, l)
	default:
		return roles.Nudge{To: b.Assignee, Nudge: nudge.Nudge{Type: nudge.StallWarning, Message: "no progress on " + string(b.ID) + ": " + l.Subject,
			Ref: &nudge.Ref{BeadID: b.ID, AssignmentID: b.AssignmentID}}}
	}
}

// reassign takes a bead from an agent that can't go on with it. While no other
// polecat has a process, its own next start is the better hope.
func (d *decision) reassign(b *bead.Bead) roles.Action {
	if !d.otherLive(b.Assignee) {
		return nil
	}
	return d.reopen(b, "the process of "+string(b.Assignee)+" is gone", ChargeNothing, state.Time{}, "")
}

func (d *decision) otherLive(than state.AgentID) bool {
	return slices.ContainsFunc(d.Polecats, func(p Polecat) bool { return p.ID != than && p.Live && !p.Retired && !p.Session })
}

// finishFor lets the done pipeline of a dead agent run to its end. Its bead and
// its hook are that pipeline's until then.
func (d *decision) finishFor(id state.AgentID, b state.BeadID) roles.Action {
	d.touched[b] = true
	return FinishFor{Agent: id}
}

func (d *decision) live(id state.AgentID) bool {
	return slices.ContainsFunc(d.Polecats, func(p Polecat) bool { return p.ID == id && p.Live })
}

func (d *decision) restart(b *bead.Bead, l Message) roles.Action {
	if b.Restarts >= d.Policy.MaxRestarts {
		return d.block(b, ChargeNothing, fmt.Sprintf("stalled again after %d restarts", b.Restarts),
			"Likely causes: the worker waits for an answer nobody gives, the work is too large for one session, or its command hangs.")
	}
	note := fmt.Sprintf("restart %d of %d: the worker on %s made no progress (%s)", b.Restarts+1, d.Policy.MaxRestarts, b.Assignee, l.Subject)
	return d.reopen(b, note, ChargeRestart, state.At(d.Now.Add(d.Policy.RestartCooldown)), "")
}

// nudges are hints: this tick does the work anyway. A sender that requires a response
// gets the counts.
func (d *decision) nudges() {
	for _, n := range d.Nudges {
		if n.RequiresResponse && n.Type != nudge.Response {
			d.do(roles.Answer(&n, d.Backlog.String(), n.Ref), roles.MarkSeen{Nudge: n})
		} else {
			d.do(roles.MarkSeen{Nudge: n})
		}
	}
}
