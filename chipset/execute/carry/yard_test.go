package carry

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
)

const (
	bravo state.AgentID = "polecat-bravo"

	slingRig = `agents:
  topology: mayor-witness-polecat
  agents:
    - {name: mayor, role: mayor}
    - {name: witness, role: witness}
    - {name: polecat-pool, role: polecat, count: 2}
    - {name: helper, role: crew}
rig: {name: test-rig, bead_prefix: tt}
worker: {default: sh}
merge: {target: main, test: "true"}
`
)

// yard is a rig in which beads are slung by hand; nothing runs in it.
type yard struct {
	*testing.T
	*rig.Rig
}

func newYard(t *testing.T, more string) *yard {
	t.Helper()
	dir := gittest.Repo(t)
	gittest.Write(t, dir, ".chipset/chipset.yaml", slingRig+more)
	r, err := rig.Init(t.Context(), rig.InitOptions{Dir: dir, Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return &yard{t, r}
}

// another is the same rig as another process has it open.
func (y *yard) another() *rig.Rig {
	y.Helper()
	r, err := rig.Open(y.Context(), y.Dir, time.Now)
	y.must(err)
	return r
}

func (y *yard) must(err error) {
	y.Helper()
	if err != nil {
		y.Fatal(err)
	}
}

func (y *yard) now() state.Time { return y.Clock.Now() }

func (y *yard) add(needs ...state.BeadID) state.BeadID {
	y.Helper()
	b, err := y.Beads.Add(bead.Bead{Title: "a task", Description: "do it", Acceptance: "it is done", BlockedBy: needs}, "tt", y.now())
	y.must(err)
	return b.ID
}

func (y *yard) bead(id state.BeadID) bead.Bead {
	y.Helper()
	b, err := y.Beads.Get(string(id))
	y.must(err)
	return b
}

func (y *yard) hook(id state.AgentID) *hook.Hook {
	y.Helper()
	h, err := y.Hooks.Get(string(id))
	y.must(err)
	return &h
}

func (y *yard) set(id state.BeadID, change func(b *bead.Bead)) {
	y.Helper()
	_, err := y.Beads.Update(y.Context(), string(id), func(b *bead.Bead) error { change(b); return nil })
	y.must(err)
}

// become walks a bead to a status by legal moves.
func (y *yard) become(id state.BeadID, way ...bead.Status) {
	y.Helper()
	y.set(id, func(b *bead.Bead) {
		for _, s := range way {
			if s == bead.Hooked {
				b.AssignmentID, b.Assignee = state.NewAssignmentID(), alpha
			}
			y.must(b.Become(s, "", y.now()))
		}
	})
}

// letters are the assignments in a mailbox for one bead.
func (y *yard) letters(to state.AgentID, id state.BeadID) []mail.Entry {
	y.Helper()
	all, bad, err := y.Mailbox(to).List()
	y.must(err)
	if len(bad) > 0 {
		y.Fatal(bad[0])
	}
	return slices.DeleteFunc(all, func(e mail.Entry) bool { return e.Type != mail.WorkAssignment || e.Ref == nil || e.Ref.BeadID != id })
}

// whole asserts that a bead is either fully slung to an agent, or not at all;
// it returns which.
func (y *yard) whole(id state.BeadID, to state.AgentID) bool {
	y.Helper()
	b, h := y.bead(id), y.hook(to)
	letters := y.letters(to, id)
	rec, err := y.Dispatch.Get(string(id))
	switch b.Status {
	case bead.Hooked:
		y.must(err)
		if h.Status != hook.Pending || h.Assignment() != b.AssignmentID || rec.Stage != dispatch.Confirmed || rec.AssignmentID != b.AssignmentID ||
			b.Assignee != to || len(letters) != 1 || letters[0].Ref.AssignmentID != b.AssignmentID || string(letters[0].Name) != rec.MailName {
			y.Fatalf("half slung: bead %+v\nhook %+v\nrecord %+v\nmail %+v", b, h, rec, letters)
		}
		return true
	case bead.Open:
		if !errors.Is(err, state.ErrNotFound) || b.AssignmentID != "" || b.Assignee != "" || h.WorkItem != nil && h.WorkItem.BeadID == id || len(letters) > 0 {
			y.Fatalf("half undone: bead %+v\nhook %+v\nrecord %+v, %v\nmail %+v", b, h, rec, err, letters)
		}
		return false
	}
	y.Fatalf("the bead is %s", b.Status)
	return false
}
