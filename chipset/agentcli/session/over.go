package session

import (
	"context"
	"errors"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/state"
)

// sessionOver is how long a person's own session may be silent before it counts as over:
// its client was killed, or has no event for the end.
const sessionOver = 7 * 24 * time.Hour

// tidy ends sessions of this agent that were killed, so that their subagents can come back
// under their names. A worker's earlier sessions are over. A person may have many at once.
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

// over reports whether a person's own session is known to have ended.
func (h *Hooks) over(m *memory) bool {
	if m.Program.PID != 0 {
		return !m.Program.Runs()
	}
	return h.Rig.Clock.Now().Sub(m.Noted.Time) > sessionOver
}

// leave ends the agent of a person's own sessions with the last of them.
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

// forget removes the session's files in run/.
func (h *Hooks) forget(ctx context.Context) error {
	lock, err := h.Rig.Tree.Lock(ctx, state.LockRecord, "client-"+key(h.in.Session))
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return h.Rig.Tree.RemoveAll(h.sessionDir())
}
