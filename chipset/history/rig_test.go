package history

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
)

func TestMain(m *testing.M) {
	restore := gittest.Isolate()
	code := m.Run()
	restore()
	os.Exit(code)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// yard is a rig in which nothing runs; the test is all of its agents.
type yard struct {
	*rig.Rig
	t   testing.TB
	rnd *rand.Rand
	now time.Time
}

func newYard(t testing.TB) *yard {
	t.Helper()
	n := uint64(1)
	if s := os.Getenv("CHIPSET_SEED"); s != "" {
		var err error
		n, err = strconv.ParseUint(s, 10, 64)
		must(t, err)
	}
	t.Logf("CHIPSET_SEED=%d", n)
	y := &yard{t: t, rnd: rand.New(rand.NewPCG(n, 0)), now: time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)}
	var err error
	y.Rig, err = rig.Init(t.Context(), rig.InitOptions{Dir: gittest.Repo(t), Clock: func() time.Time { return y.now },
		Template: definition.TemplateOptions{RigName: "yard", Prefix: "gt", Worker: "sh", Polecats: 2, Test: "true", Target: "main"}})
	must(t, err)
	return y
}

// agents take part in random histories.
func agents() []state.AgentID {
	return []state.AgentID{"mayor", "witness", "polecat-alpha", "polecat-bravo"}
}

func pick[T any](rnd *rand.Rand, list []T) T { return list[rnd.IntN(len(list))] }

// act does one random thing that the rules allow. What they refuse at the moment is
// refused, and changes nothing.
func (y *yard) act() {
	y.t.Helper()
	ctx := y.t.Context()
	y.now = y.now.Add(time.Duration(y.rnd.IntN(7200)-1800) * time.Second) // clocks jump
	id, at := pick(y.rnd, agents()), y.Clock.Now()
	var err error
	switch y.rnd.IntN(10) {
	case 0, 1:
		_, err = y.Sender.Send(ctx, mail.Message{From: pick(y.rnd, agents()), To: id, Type: mail.Coordination, Subject: "s", Body: state.Random(5)})
	case 2:
		var unread []mail.Entry
		if unread, _, err = y.Mailbox(id).Unread(); err == nil && len(unread) > 0 {
			err = y.Mailbox(id).MarkRead(ctx, pick(y.rnd, unread).Name)
		}
	case 3:
		_, err = y.Mailbox(id).ArchiveOld(ctx, "mayor", y.now.Add(time.Duration(y.rnd.IntN(4)-2)*time.Hour), y.rnd.IntN(4) == 0)
	case 4, 5:
		err = y.turnHook(id, at)
	case 6:
		if all, _, _ := y.Beads.All(); len(all) < 8 { // few, so that they come far
			_, err = y.Beads.Add(bead.Bead{Title: "Thing"}, "gt", at)
		}
	case 7, 8:
		err = y.moveBead(at)
	case 9:
		var n nudge.Nudge
		n, err = y.Slot(id).Send(ctx, nudge.Nudge{From: pick(y.rnd, agents()), Type: nudge.HealthCheck, Message: state.Random(3)}, at)
		if err == nil && y.rnd.IntN(2) == 0 {
			err = y.Slot(id).MarkSeen(ctx, n)
		}
		y.Events.Tell(event.Event{Type: "test.happened", Agent: id, Subject: string(id)})
	}
	if err != nil && !errors.Is(err, state.ErrConflict) {
		y.t.Fatal(err)
	}
}

func (y *yard) turnHook(id state.AgentID, at state.Time) error {
	ctx := y.t.Context()
	h, err := y.Hooks.Get(string(id))
	if err != nil {
		return err
	}
	switch y.rnd.IntN(6) {
	case 0:
		_, err = y.Hooks.Set(ctx, id, hook.WorkItem{AssignedAt: at, AssignmentID: state.NewAssignmentID(), BeadID: "gt-abc12", Title: "Thing"}, at)
	case 1:
		_, err = y.Hooks.Activate(ctx, id, h.Assignment(), state.NewSessionID(), at)
	case 2:
		_, err = y.Hooks.Touch(ctx, id, h.Assignment(), "", at, time.Second)
	case 3:
		_, err = y.Hooks.Resume(ctx, id, h.Assignment(), state.NewSessionID(), at)
	case 4:
		_, err = y.Hooks.Complete(ctx, id, h.Assignment(), "", at)
	default:
		_, err = y.Hooks.Clear(ctx, id, h.Assignment(), at)
	}
	return err
}

func (y *yard) moveBead(at state.Time) error {
	all, _, err := y.Beads.All()
	if err != nil || len(all) == 0 {
		return err
	}
	_, err = y.Beads.Update(y.t.Context(), string(pick(y.rnd, all).ID), func(b *bead.Bead) error {
		to := pick(y.rnd, slices.DeleteFunc([]bead.Status{bead.Open, bead.Hooked, bead.InProgress, bead.Done, bead.Merged, bead.Failed,
			bead.Blocked, bead.Cancelled, bead.Closed}, func(to bead.Status) bool { return b.Status != bead.Merged && !b.Status.CanBecome(to) }))
		if to == bead.Done && b.AssignmentID == "" {
			return state.Conflictf("bead "+string(b.ID), "was never slung")
		}
		if err := b.Become(to, "", at); err != nil {
			return err
		}
		if to == bead.Hooked {
			b.Assignments++
			b.AssignmentID, b.Assignee = state.NewAssignmentID(), pick(y.rnd, agents())
			b.Branch = bead.BranchFor(b.ID, b.Assignments)
		}
		return nil
	})
	return err
}

// land takes a bead its whole way, and leaves a hook completed.
func (y *yard) land() {
	y.t.Helper()
	at := y.Clock.Now()
	b, err := y.Beads.Add(bead.Bead{Title: "Landed"}, "gt", at)
	must(y.t, err)
	for _, to := range []bead.Status{bead.Hooked, bead.InProgress, bead.Done, bead.Merged} {
		_, err := y.Beads.Update(y.t.Context(), string(b.ID), func(b *bead.Bead) error {
			if to == bead.Hooked {
				b.Assignments, b.AssignmentID, b.Assignee = 1, state.NewAssignmentID(), agents()[0]
				b.Branch = bead.BranchFor(b.ID, 1)
			}
			return b.Become(to, "", at)
		})
		must(y.t, err)
	}
	ctx, id, as := y.t.Context(), agents()[0], state.NewAssignmentID()
	_, err = y.Hooks.Set(ctx, id, hook.WorkItem{AssignedAt: at, AssignmentID: as, BeadID: b.ID, Title: b.Title}, at)
	must(y.t, err)
	_, err = y.Hooks.Activate(ctx, id, as, "", at)
	must(y.t, err)
	_, err = y.Hooks.Complete(ctx, id, as, "", at)
	must(y.t, err)
}

// tree is the state tree as it lies on the disk.
func (y *yard) tree() tree {
	y.t.Helper()
	found := tree{}
	root := y.Tree.Abs(state.StateDir)
	must(y.t, filepath.WalkDir(root, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(at)
		found[strings.TrimPrefix(at, root+"/")] = string(data)
		return err
	}))
	return found
}

// plant changes a file the way another program would.
func (y *yard) plant(p, content string) {
	y.t.Helper()
	at := y.Tree.Abs(state.StateDir.Join(p))
	must(y.t, os.MkdirAll(filepath.Dir(at), 0o755))
	must(y.t, os.WriteFile(at, []byte(content), 0o644))
}

// commit takes a snapshot with a recorder that has read nothing yet.
func (y *yard) commit() Outcome {
	y.t.Helper()
	c, err := NewRecorder(y.Rig)
	must(y.t, err)
	out, err := c.Commit(y.t.Context(), "")
	must(y.t, err)
	return out
}

func (y *yard) git(args ...string) string {
	y.t.Helper()
	return gittest.Run(y.t, y.Dir, append([]string{"-c", "user.name=t", "-c", "user.email=t@example.invalid"}, args...)...)
}

// verify proves a history and wants the violations at these paths, in any order.
func (y *yard) verify(ref string, paths ...string) *Report {
	y.t.Helper()
	report, err := Verify(y.t.Context(), y.Rig, ref)
	must(y.t, err)
	var got []string
	for _, v := range report.Violations {
		got = append(got, strings.TrimPrefix(v.Path, ".chipset/state/"))
	}
	if fmt.Sprint(got) != fmt.Sprint(paths) {
		y.t.Errorf("verify %s: %v, expected %v", ref, report.Violations, paths)
	}
	return report
}
