package actor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/handoff"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/wording"
)

const (
	// MaxVerdict bounds what a worker reports at the end of its assignment, in bytes.
	MaxVerdict = 16 << 10
	// MaxHandoff bounds one text of a hand-off, in bytes.
	MaxHandoff = 256 << 10
)

// Touch records that the work on the actor's hook makes progress. The hook is
// written at most every 15 seconds; a note goes into the event log every time.
func (a *Actor) Touch(ctx context.Context, note string) (hook.Hook, error) {
	p, err := a.Present()
	if err != nil {
		return hook.Hook{}, err
	}
	before, err := HookOf(a.Rig, a.ID)
	if err != nil {
		return before, err
	}
	h, err := a.Hooks.By(a.ID, note).Touch(ctx, a.ID, p.Assignment, p.Session, a.Clock.Now(), hook.TouchInterval)
	if err == nil && h.Gen == before.Gen && note != "" {
		w := event.Work{Bead: p.Bead, Assignment: p.Assignment, Session: p.Session}
		a.Events.Tell(event.HookMoved(a.ID, w, event.HookMove{Step: event.HookTouched, Owner: a.ID, Note: note}))
	}
	return h, err
}

// failure returns the outcome of an attempt that its worker gives up. If the worker
// waited in vain for an answer, the attempt is not charged, and the bead waits for the
// person.
func (a *Actor) failure(reason string) (retire.Outcome, string, error) {
	h, err := HookOf(a.Rig, a.ID)
	if err != nil || h.Status != hook.Active || h.WorkItem == nil {
		return retire.Fail, reason, err
	}
	open, err := OpenQuestions(a.Rig, a.ID, h.WorkItem)
	for i := range open {
		if q := &open[i]; q.Awaited {
			return retire.Block, wording.Clip(fmt.Sprintf("it asked and had no answer: %s (%s)", q.What(), reason), MaxVerdict), nil
		}
	}
	return retire.Fail, reason, err
}

// Verdict ends the actor's own assignment. The first report counts; repeating it is
// no error. A failure after waiting in vain for an answer becomes a block. Errors:
// ErrInvalid; state.ErrConflict for an empty hook, and for an assignment that has
// already ended with another outcome.
func (a *Actor) Verdict(ctx context.Context, outcome retire.Outcome, summary, reason string) (retire.Record, error) {
	p, err := a.Present()
	if err != nil {
		return retire.Record{}, err
	}
	if p.Assignment == "" {
		err := state.Conflictf("hook "+string(a.ID), "is empty: there is no assignment to end")
		if a.ID == state.Human {
			err = WithHint(err, "you speak as human: only a worker reports on its assignment; --as AGENT acts for it")
		}
		return retire.Record{}, err
	}
	if outcome != retire.Done && strings.TrimSpace(reason) == "" {
		return retire.Record{}, Invalidf("%s: a reason is required", outcome)
	}
	for _, text := range []struct{ what, value string }{{"the reason", reason}, {"the summary", summary}} {
		if _, err := Text(text.what, text.value, MaxVerdict); err != nil {
			return retire.Record{}, err
		}
	}
	if outcome == retire.Done {
		if err := CheckPlan(a.Rig, a.ID, p.Assignment); errors.Is(err, ErrNoPlan) {
			return retire.Record{}, WithHint(state.Conflictf("assignment "+string(p.Assignment), "%v", ErrNoPlan),
				"chipset request plan --body-file - --wait 1h sends it; chipset fail --reason gives the assignment back")
		} else if err != nil {
			return retire.Record{}, err
		}
	}
	if outcome == retire.Fail {
		if outcome, reason, err = a.failure(reason); err != nil {
			return retire.Record{}, err
		}
	}
	rec, won, err := carry.Publish(ctx, a.Rig, retire.Record{AssignmentID: p.Assignment, AgentID: a.ID, Session: p.Session,
		Outcome: outcome, Reason: reason, Summary: summary})
	if err != nil {
		return rec, err
	}
	if !won && rec.Outcome != outcome {
		return rec, state.Conflictf("assignment "+string(p.Assignment), "already ended as %s, at %s", rec.Outcome, rec.CreatedAt)
	}
	return rec, nil
}

// SendNudge nudges an agent, named by id or role. The nudge names the assignment on
// the agent's hook, so that a late nudge can't affect the next one. Errors:
// ErrInvalid; state.ErrConflict for a retired agent, and for an abort by anybody but
// the mayor and the person.
func (a *Actor) SendNudge(ctx context.Context, to string, kind nudge.Type, message string, respond bool) (nudge.Nudge, state.AgentID, error) {
	if !slices.Contains(nudge.Types(), kind) {
		return nudge.Nudge{}, "", WithHint(Invalidf("%q is not a type of nudge", kind), fmt.Sprintf("one of %v", nudge.Types()))
	}
	if _, err := Text("the message", message, nudge.MaxMessage); err != nil {
		return nudge.Nudge{}, "", err
	}
	if kind == nudge.Abort {
		if err := a.Authority("nudge abort"); err != nil {
			return nudge.Nudge{}, "", err
		}
	}
	id, err := Lookup(a.Rig, to)
	if err != nil {
		return nudge.Nudge{}, "", err
	}
	if who, err := a.Agents.Get(string(id)); err == nil && who.Status == agent.Retired {
		return nudge.Nudge{}, id, state.Conflictf("agent "+string(id), "is retired and gets no more nudges")
	}
	n, err := a.post(ctx, id, nudge.Nudge{From: a.ID, Type: kind, Message: message, RequiresResponse: respond, Ref: a.hookRef(id)})
	return n, id, err
}

// hookRef returns the assignment on an agent's hook, or nil if the hook can't be
// read: a nudge is sent without it.
func (a *Actor) hookRef(id state.AgentID) *nudge.Ref {
	h, err := a.Hooks.Get(string(id))
	if err != nil || h.WorkItem == nil {
		return nil
	}
	return &nudge.Ref{BeadID: h.WorkItem.BeadID, AssignmentID: h.WorkItem.AssignmentID, Session: h.WorkItem.Session}
}

func (a *Actor) post(ctx context.Context, to state.AgentID, n nudge.Nudge) (nudge.Nudge, error) {
	return a.Slot(to).Send(ctx, n, a.Clock.Now())
}

// Answered is one nudge and the response to it.
type Answered struct {
	To       state.AgentID
	Response nudge.Nudge
}

// Respond answers every unprocessed nudge that asks the actor for a response, and
// marks it as seen. If there is none, it answers again the latest one that asked.
// Errors: state.ErrNotFound if none ever asked.
func (a *Actor) Respond(ctx context.Context, message string) ([]Answered, error) {
	if _, err := Text("the message", message, nudge.MaxMessage); err != nil {
		return nil, err
	}
	asked, again, err := a.unanswered()
	if err != nil {
		return nil, err
	}
	var sent []Answered
	for i := range asked {
		n := &asked[i]
		answer, err := a.post(ctx, n.From, nudge.Nudge{From: a.ID, Type: nudge.Response, Message: message, Ref: n.Ref, InReplyTo: &n.Timestamp})
		if err != nil {
			return sent, err
		}
		sent = append(sent, Answered{n.From, answer})
		if again {
			continue
		}
		if err := a.Seen(ctx, n); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// Seen marks a nudge to the actor as processed.
func (a *Actor) Seen(ctx context.Context, n *nudge.Nudge) error {
	return a.Slot(a.ID).MarkSeen(ctx, *n)
}

// unanswered returns the unprocessed nudges that ask for a response, else the latest
// that ever asked, with again true.
func (a *Actor) unanswered() (asked []nudge.Nudge, again bool, _ error) {
	wanted := func(list []nudge.Nudge) []nudge.Nudge {
		return slices.DeleteFunc(list, func(n nudge.Nudge) bool { return !n.RequiresResponse || n.Type == nudge.Response })
	}
	fresh, _, err := a.Slot(a.ID).Unseen()
	if err != nil {
		return nil, false, err
	}
	if fresh = wanted(fresh); len(fresh) > 0 {
		return fresh, false, nil
	}
	all, _, err := a.Slot(a.ID).All()
	if err != nil {
		return nil, false, err
	}
	if all = wanted(all); len(all) == 0 {
		return nil, false, state.Absent(fmt.Sprintf("nudge respond: no nudge to %s wants a response", a.ID))
	}
	return all[len(all)-1:], true, nil
}

// WriteHandoff leaves a note about the work on the actor's hook for its next
// session. Durable when it returns nil. Errors: ErrInvalid.
func (a *Actor) WriteHandoff(summary string, remaining []string) (handoff.Handoff, error) {
	if strings.TrimSpace(summary) == "" {
		return handoff.Handoff{}, Invalidf("hand-off: a summary is required")
	}
	for _, text := range append([]string{summary}, remaining...) {
		if _, err := Text("hand-off", text, MaxHandoff); err != nil {
			return handoff.Handoff{}, err
		}
	}
	p, err := a.Present()
	if err != nil {
		return handoff.Handoff{}, err
	}
	return a.Handoffs.Write(handoff.Handoff{AgentID: a.ID, BeadID: p.Bead, AssignmentID: p.Assignment, Session: p.Session,
		Summary: summary, Remaining: Words(remaining), Timestamp: a.Clock.Now()})
}
