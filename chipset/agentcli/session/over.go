package session

import (
	"context"
	"errors"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/state"
)

// sessionOver is how long nothing is noted of a person's own session until it
// counts as over: its client was killed, or has no event for the end.
const sessionOver = 7 * 24 * time.Hour

// tidy ends what is left of sessions of this agent that did not live to say that
// they end, so that their subagents come back as who they were. A worker is alone
// with its agent, so earlier ones are over. Of a person's sessions there may be many.
func (h *Hooks) tidy(ctx context.Context) error {
	sessions, err := h.Rig.Tree.List(clientsDir)
	for _, session := range sessions {
		earlier := *h
		earlier.in.Session = session.Name()
		if earlier.sessionDir() == h.sessionDir() {
			if h.in.Source != "compact" { // a new process, in which none of its subagents runs
				err = errors.Join(err, h.endSubagents(ctx))
			}
			continue
		}
		m := earlier.recall(h.Agent)
		if m.Agent == h.Agent && (h.Assignment != "" || h.over(&m)) {
			err = errors.Join(err, earlier.endSubagents(ctx), earlier.forget(ctx))
		}
	}
	return err
}

// over reports whether a person's own session does not run any more, as far as that is known.
func (h *Hooks) over(m *memory) bool {
	if m.Program.PID != 0 {
		return !m.Program.Runs()
	}
	return h.Rig.Clock.Now().Sub(m.Noted.Time) > sessionOver
}

// leave ends the identity of a person's own session with the last of them.
func (h *Hooks) leave(ctx context.Context) error {
	if !h.Beside {
		return nil
	}
	sessions, err := h.Rig.Tree.List(clientsDir)
	if err != nil {
		return err
	}
	for _, session := range sessions {
		other := *h
		other.in.Session = session.Name()
		if other.recall(h.Agent).Agent == h.Agent {
			return nil
		}
	}
	return actor.Rest(ctx, h.Rig, h.Agent)
}

// forget removes what lies in run/ for this session.
func (h *Hooks) forget(ctx context.Context) error {
	lock, err := h.Rig.Tree.Lock(ctx, state.LockRecord, "client-"+key(h.in.Session))
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return h.Rig.Tree.RemoveAll(h.sessionDir())
}
