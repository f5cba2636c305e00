package session

import (
	"context"
	"errors"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
)

// woken is what an idle agent is told. What it is woken for is shown to it with that.
const woken = "There is news for you."

// wait answers as soon as the session's own agent has mail or a nudge that it does not know of, and with silence when
// the session is over or ctx is. A worker is continued by its rig, and never waits here.
func (h *Hooks) wait(ctx context.Context) (agentcli.Answer, error) {
	if h.Assignment != "" {
		return agentcli.Answer{}, nil
	}
	var a agentcli.Answer
	err := actor.Wait(ctx, h.Rig, "client-hook", 0, func() (bool, error) {
		m := h.recall(h.Agent)
		if m.Agent == "" || h.over(&m) {
			return true, nil
		}
		all, err := h.unreadSince(h.Agent, m.Looked)
		if err != nil {
			return false, err
		}
		fresh := m.unshown(all)
		// What was listed waits for the agent's own next step: it would be woken for it for ever.
		fresh.letters = slices.DeleteFunc(fresh.letters, func(e mail.Entry) bool { return slices.Contains(m.Listed, e.Name) })
		if !fresh.empty() {
			a.GoOn = woken
		}
		return a.GoOn != "", nil
	}, h.Rig.Mailbox(h.Agent).Dir(), nudge.Dir.Join(string(h.Agent)))
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return a, err
}
