package client

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/pipeline"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

func TestMain(m *testing.M) {
	restore := gittest.Isolate()
	code := m.Run()
	restore()
	os.Exit(code)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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

func newYard(t *testing.T) *yard {
	t.Helper()
	y := &yard{t: t, now: time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC)}
	r, err := rig.Init(t.Context(), rig.InitOptions{Dir: gittest.Repo(t), Clock: y.tick})
	must(t, err)
	y.Rig = r
	return y
}

// hang puts a bead on an agent's hook and begins the work.
func (y *yard) hang(id state.AgentID, title string) (state.BeadID, Hooks) {
	y.t.Helper()
	b, err := y.Beads.Add(bead.Bead{Title: title, CreatedBy: state.Human}, "tt", y.Clock.Now())
	must(y.t, err)
	rec, err := pipeline.Sling(y.t.Context(), y.Rig, b.ID, id, state.Human)
	must(y.t, err)
	const session = "se-test"
	_, err = y.Hooks.Activate(y.t.Context(), id, rec.AssignmentID, session, y.Clock.Now())
	must(y.t, err)
	return b.ID, Hooks{Rig: y.Rig, Agent: id, Assignment: rec.AssignmentID, Session: session}
}

func (y *yard) send(from, to state.AgentID, subject, body string) mail.Name {
	y.t.Helper()
	n, err := y.Rig.Send(y.t.Context(), mail.Message{From: from, To: to, Type: mail.Coordination, Subject: subject, Body: body})
	must(y.t, err)
	return n
}

func (y *yard) answer(h Hooks, e Event, in Input) Answer {
	y.t.Helper()
	if in.SessionID == "" {
		in.SessionID = "0a1b"
	}
	a, err := h.Answer(y.t.Context(), e, in)
	must(y.t, err)
	return a
}
