package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
)

// woken is what an idle agent is told. What it is woken for is shown to it with that.
const woken = "There is news for you."

// wait answers as soon as the session's own agent has new mail or a new nudge. It returns silence when the session
// ends, a prompt comes, a later hook waits, or ctx ends. A worker never waits here, because its rig resumes it; neither
// does a session whose end could not be seen.
func (h *Hooks) wait(ctx context.Context) (agentcli.Answer, error) {
	var a agentcli.Answer
	first := h.recall(h.Agent)
	if h.Assignment != "" || first.Agent == "" || first.Program.PID == 0 && !h.HoldsInput {
		return a, nil
	}
	mine, told := h.Rig.Clock.Now(), first.Woken
	if h.in.Source != "" { // it begins with what is there
		var err error
		if told, err = h.unknown(&first); err != nil {
			return a, err
		}
	}
	if err := h.change(ctx, h.Agent, func(m *memory) bool { m.Waits, m.Woken = mine, told; return true }); err != nil {
		return a, err
	}
	err := actor.Wait(ctx, h.Rig, "client-hook", 0, func() (bool, error) {
		m := h.recall(h.Agent)
		if m.Agent == "" || h.over(&m) || !m.Waits.Equal(mine.Time) {
			return true, nil
		}
		fresh, err := h.unknown(&m)
		if err != nil || !slices.ContainsFunc(fresh, func(key string) bool { return !slices.Contains(m.Woken, key) }) {
			return false, err
		}
		a.GoOn = woken
		return true, h.change(ctx, h.Agent, func(m *memory) bool { m.Waits, m.Woken = state.Time{}, fresh; return true })
	}, h.Rig.Mailbox(h.Agent).Dir(), nudge.Dir.Join(string(h.Agent)), h.sessionDir())
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return a, err
}

// unknown names the mail and nudges that are new to the session. Listed mail is not: it waits for the next step.
func (h *Hooks) unknown(m *memory) ([]string, error) {
	all, err := h.unreadSince(h.Agent, m.Looked)
	if err != nil {
		return nil, err
	}
	fresh := m.unshown(all)
	var keys []string
	for i := range fresh.letters {
		if n := fresh.letters[i].Name; !slices.Contains(m.Listed, n) {
			keys = append(keys, string(n))
		}
	}
	for i := range fresh.nudges {
		keys = append(keys, string(fresh.nudges[i].From)+" "+fresh.nudges[i].Timestamp.Format(time.RFC3339Nano))
	}
	return keys, nil
}

// prompted ends the wait of the session: a turn begins.
func (h *Hooks) prompted(ctx context.Context) error {
	if m := h.recall(h.Agent); m.Waits.IsZero() {
		return nil
	}
	return h.change(ctx, h.Agent, func(m *memory) bool { m.Waits = state.Time{}; return true })
}
