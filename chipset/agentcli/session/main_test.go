package session

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

func TestMain(m *testing.M) { os.Exit(rigtest.Main(m)) }

// yard is a rig with a worker's session in it, on a clock of its own.
type yard struct {
	*rig.Rig
	t *testing.T

	mu  sync.Mutex
	now time.Time
}

// tick is the clock: no two readings are the same.
func (y *yard) tick() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.now = y.now.Add(time.Millisecond)
	return y.now
}

// newYard makes one; more is appended to its definition.
func newYard(t *testing.T, more string) *yard {
	t.Helper()
	y := &yard{t: t, now: time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC)}
	y.Rig = rigtest.NewAt(t, more, y.tick)
	return y
}

// hang puts a bead on an agent's hook and begins the work.
func (y *yard) hang(id state.AgentID, title string) (state.BeadID, Hooks) {
	y.t.Helper()
	b, rec := rigtest.Hang(y.t, y.Rig, id, title)
	return b.ID, Hooks{Rig: y.Rig, Agent: id, Assignment: rec.AssignmentID, Session: rigtest.Session, Prepend: prepend}
}

// prepend is that of a client whose input of a tool is plain text.
func prepend(in agentcli.Input, text string) string { return text + in.ToolInput }

func (y *yard) send(from, to state.AgentID, subject, body string) mail.Name {
	y.t.Helper()
	n, err := y.Rig.Sender.Send(y.t.Context(), mail.Message{From: from, To: to, Type: mail.Coordination, Subject: subject, Body: body})
	rigtest.Must(y.t, err)
	return n
}

func (y *yard) answer(h Hooks, e agentcli.Event, in agentcli.Input) agentcli.Answer {
	y.t.Helper()
	if in.Session == "" {
		in.Session = "0a1b"
	}
	a, err := h.Answer(y.t.Context(), e, in)
	rigtest.Must(y.t, err)
	return a
}
