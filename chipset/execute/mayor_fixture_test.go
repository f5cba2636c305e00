package execute

import (
	"fmt"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/retire"
)

const mayorRig = `agents:
  topology: mayor-witness-polecat
  agents:
    - {name: mayor, role: mayor}
    - {name: witness, role: witness}
    - {name: polecat-pool, role: polecat, count: 2}
dispatch: {batch_threshold: 3}
gupp: {limits: {max_attempts_per_bead: 2}}
rig: {name: test-rig, bead_prefix: tt}
worker: {default: sh}
merge: {target: main, test: "true"}
`

const mayorBravo state.AgentID = "polecat-bravo"

// townHall is a rig whose mayor is ticked by hand; nobody else runs.
type townHall struct {
	*testing.T
	rig  *rig.Rig
	m    *Mayor
	at   time.Time
	said []string
}

func newTownHall(t *testing.T, more string) *townHall {
	t.Helper()
	dir := gittest.Repo(t)
	gittest.Write(t, dir, ".chipset/chipset.yaml", mayorRig+more)
	h := &townHall{T: t, at: time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)}
	var err error
	h.rig, err = rig.Init(t.Context(), rig.InitOptions{Dir: dir, Clock: h.clock})
	h.must(err)
	h.restart()
	return h
}

// clock goes on by a millisecond with each look at it.
func (h *townHall) clock() time.Time { h.at = h.at.Add(time.Millisecond); return h.at }

func (h *townHall) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// restart is a new process of the mayor.
func (h *townHall) restart() {
	h.Helper()
	h.m = NewMayor(Agent{Rig: h.rig, ID: "mayor", Session: state.NewSessionID(), Say: func(format string, args ...any) {
		h.said = append(h.said, fmt.Sprintf(format, args...))
	}})
	h.at = h.at.Add(policy.StartGrace)
	h.must(h.m.Recover(h.Context()))
}

func (h *townHall) tick() Next {
	h.Helper()
	n, err := h.m.Tick(h.Context())
	h.must(err)
	return n
}

func (h *townHall) add(title string) state.BeadID {
	h.Helper()
	b, err := h.rig.Beads.Add(bead.Bead{Title: title}, "tt", h.m.Now())
	h.must(err)
	return b.ID
}

func (h *townHall) bead(id state.BeadID) bead.Bead {
	h.Helper()
	b, err := h.rig.Beads.Get(string(id))
	h.must(err)
	return b
}

func (h *townHall) hook(id state.AgentID) *hook.Hook {
	h.Helper()
	k, err := h.rig.Hooks.Get(string(id))
	h.must(err)
	return &k
}

func (h *townHall) set(id state.BeadID, change func(b *bead.Bead)) {
	h.Helper()
	_, err := h.rig.Beads.Update(h.Context(), string(id), func(b *bead.Bead) error { change(b); return nil })
	h.must(err)
}

// work takes a slung bead to in_progress, as its polecat would.
func (h *townHall) work(id state.BeadID) bead.Bead {
	h.Helper()
	b := h.bead(id)
	_, err := h.rig.Hooks.Activate(h.Context(), b.Assignee, b.AssignmentID, "ses-1", h.m.Now())
	h.must(err)
	b, err = h.rig.Beads.Update(h.Context(), string(id), func(b *bead.Bead) error { return b.Become(bead.InProgress, "", h.m.Now()) })
	h.must(err)
	return b
}

// end retires an attempt as its polecat would: record, bead, hook.
func (h *townHall) end(id state.BeadID, o retire.Outcome, to bead.Status, reason string) bead.Bead {
	h.Helper()
	b := h.work(id)
	h.must(h.rig.Retire.Create(string(b.AssignmentID), retire.Record{AssignmentID: b.AssignmentID, AgentID: b.Assignee, BeadID: id,
		Outcome: o, Reason: reason, Stage: retire.Released}))
	_, err := h.rig.Beads.Update(h.Context(), string(id), func(b *bead.Bead) error { return b.Become(to, reason, h.m.Now()) })
	h.must(err)
	_, err = h.rig.Hooks.Complete(h.Context(), b.Assignee, b.AssignmentID, "", h.m.Now())
	h.must(err)
	return b
}

// mail is what lies in a mailbox of one type.
func (h *townHall) mail(to state.AgentID, kind mail.Type) []mail.Entry {
	h.Helper()
	all, _, err := h.rig.Mailbox(to).List()
	h.must(err)
	var found []mail.Entry
	for _, e := range all {
		if e.Type == kind {
			found = append(found, e)
		}
	}
	return found
}

func (h *townHall) unread() int {
	h.Helper()
	unread, bad, err := h.rig.Mailbox("mayor").Unread()
	h.must(err)
	return len(unread) + len(bad)
}
