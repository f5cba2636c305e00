package session

import (
	"context"
	"errors"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/handoff"
)

// maxKeptGoing is how often in a row an agent is kept from stopping. Clients override a hook that
// blocks again and again without a tool call between (the first of them the ninth time) and exit with code 0.
// Below that limit the polecat sees what happened.
const maxKeptGoing = 6

// maxLast bounds what is kept of an agent's last word, in bytes.
const maxLast = 4 << 10

// stop keeps an agent going while its work is on its hook, unless it waits for
// a person. A person's own session ends its turns when it likes.
func (h *Hooks) stop(ctx context.Context, who state.AgentID) (agentcli.Answer, error) {
	item, active := h.work(who)
	if !active || who == state.Human || h.Resumed && h.Assignment != "" {
		return agentcli.Answer{}, nil
	}
	if a, err := h.Rig.Agents.Get(string(who)); err != nil || a.IsSession() {
		return agentcli.Answer{}, err
	}
	open, err := actor.OpenQuestions(h.Rig, who, &item)
	if err != nil || len(open) > 0 {
		return agentcli.Answer{}, err
	}
	var a agentcli.Answer
	goesOn := false
	err = h.change(ctx, who, func(m *memory) bool {
		if h.in.LastMessage != "" {
			m.Last = quote.Cut(h.in.LastMessage, maxLast)
		}
		if goesOn = m.KeptGoing < maxKeptGoing; goesOn {
			m.KeptGoing++
		}
		return true
	})
	if err != nil {
		return agentcli.Answer{}, err
	}
	told := event.ClientStoppedEarly
	if goesOn {
		told, a.GoOn = event.ClientKeptGoing, propulsion(&item)
		h.used = len(a.GoOn)
		fresh, err := h.give(ctx, who, false)
		if err != nil {
			return agentcli.Answer{}, err
		}
		a.GoOn += fresh
	}
	h.Rig.Events.Tell(told(who, event.Work{Bead: item.BeadID, Assignment: item.AssignmentID, Session: item.Session}))
	return a, nil
}

func propulsion(item *hook.WorkItem) quote.Text {
	return quote.Sprintf("Bead %s (%s) is still on your hook, so this session is not over. Go on with it, and end it yourself: "+
		"`chipset done --summary TEXT` when it is finished and committed, `chipset fail --reason TEXT` when it can't be done, "+
		"`chipset block --reason TEXT` when a person must decide.\n", item.BeadID, quote.Line(item.Title, bead.MaxTitle))
}

// end writes a hand-off if work is unfinished, and removes what the session has in run/.
func (h *Hooks) end(ctx context.Context) error {
	item, active := h.work(h.Agent)
	var err error
	if active && h.Agent != state.Human && item.Session == h.Session {
		last := h.recall(h.Agent).Last
		if last == "" {
			last = "The session ended before its work was finished, and left no last word."
		}
		_, err = h.Rig.Handoffs.Write(handoff.Handoff{AgentID: h.Agent, BeadID: item.BeadID, AssignmentID: item.AssignmentID,
			Session: item.Session, Summary: last, Timestamp: h.Rig.Clock.Now()})
	}
	return errors.Join(err, h.endSubagents(ctx), h.forget(ctx), h.leave(ctx))
}
