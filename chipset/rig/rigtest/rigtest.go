// Package rigtest makes rigs for tests of what stands on one: actors, servers,
// hooks of clients, bridges.
package rigtest

import (
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
)

// Main runs a package's tests apart from the git configuration of this machine,
// and returns the exit code.
func Main(m *testing.M) int {
	restore := gittest.Isolate()
	defer restore()
	return m.Run()
}

// Must ends the test unless err is nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// New makes a rig with two polecats, whose beads begin with tt. more is appended
// to its definition.
func New(t testing.TB, more string) *rig.Rig { return NewAt(t, more, time.Now) }

// NewAt is New on a clock of the test's own.
func NewAt(t testing.TB, more string, clock state.Clock) *rig.Rig {
	t.Helper()
	dir := gittest.Repo(t)
	gittest.Write(t, dir, ".chipset/chipset.yaml", "agents:\n  agents:\n    - {name: mayor, role: mayor}\n    - {name: witness, role: witness}\n"+
		"    - {name: pool, role: polecat, count: 2}\nrig: {name: r, bead_prefix: tt}\n"+more)
	r, err := rig.Init(t.Context(), rig.InitOptions{Dir: dir, Clock: clock})
	Must(t, err)
	return r
}

// Session is the session of the workers that Hang starts.
const Session state.SessionID = "se-test"

// Hang puts a new bead on an agent's hook and begins the work.
func Hang(t testing.TB, r *rig.Rig, id state.AgentID, title string) (bead.Bead, dispatch.Record) {
	t.Helper()
	b, err := r.Beads.Add(bead.Bead{Title: title, CreatedBy: state.Human}, "tt", r.Clock.Now())
	Must(t, err)
	rec, err := carry.Sling(t.Context(), r, b.ID, id, state.Human)
	Must(t, err)
	_, err = r.Hooks.Activate(t.Context(), id, rec.AssignmentID, Session, r.Clock.Now())
	Must(t, err)
	return b, rec
}

// Unread is the unread mail of an agent.
func Unread(t testing.TB, r *rig.Rig, id state.AgentID) []mail.Entry {
	t.Helper()
	unread, _, err := r.Mailbox(id).Unread()
	Must(t, err)
	return unread
}
