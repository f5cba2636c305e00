package execute

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/retire"
)

// told are the types of events that begin with a text, each with its assignment.
func (k *kennel) told(kind string) string {
	k.t.Helper()
	all, _, _, err := k.rig.Events.Read(event.Position{}, time.Time{})
	k.fail(err)
	var found []string
	for _, e := range all {
		if strings.HasPrefix(e.Type, kind) {
			found = append(found, e.Type+" "+string(e.Assignment))
		}
	}
	return strings.Join(found, ", ")
}

// A start finishes the ends that an earlier process had begun, oldest first. One that can't be finished is told, and keeps no other.
func TestPolecatFinishesWhatWasBegun(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	now := k.rig.Clock.Now()
	var stuck state.BeadID
	for i, a := range []state.AssignmentID{"as-newer", "as-older", "as-stuck", "as-over"} {
		rec := k.sling("")
		if _, err := carry.Unsling(t.Context(), k.rig, rec.BeadID, "mayor"); err != nil {
			t.Fatal(err)
		}
		end := retire.Record{AssignmentID: a, AgentID: alpha, BeadID: rec.BeadID, Session: deadSession, Outcome: retire.Fail, Reason: "no", Stage: retire.Published,
			CreatedAt: state.At(now.Add(-time.Duration(i) * time.Minute))}
		switch a {
		case "as-over":
			end.Stage = retire.Released
		case "as-stuck":
			stuck = rec.BeadID
		}
		k.fail(k.rig.Retire.Create(string(a), end))
	}
	bad := k.rig.Tree.Abs(k.rig.Beads.Path(string(stuck)))
	k.fail(os.Remove(bad))
	k.fail(os.MkdirAll(filepath.Join(bad, "in-the-way"), 0o700))
	prompt := filepath.Join(k.dir, ".chipset", string(promptFile(deadSession)))
	k.write(".chipset/"+string(promptFile(deadSession)), "do it")
	k.start()
	if got, want := k.told("retire."), "retire.unfinished as-stuck, retire.stale as-older, retire.stale as-newer"; got != want {
		t.Errorf("the log tells %q, want %q", got, want)
	}
	if _, err := os.Stat(prompt); err == nil {
		t.Error("the prompt of a session that is over is left")
	}
	for a, want := range map[state.AssignmentID]retire.Stage{"as-newer": retire.Stale, "as-older": retire.Stale, "as-stuck": retire.Published, "as-over": retire.Released} {
		if rec := k.record(a); rec.Stage != want {
			t.Errorf("%s is %s, want %s", a, rec.Stage, want)
		}
	}
}

// The person is told once when a worker changed what git obeys here, and not when a first worker begins.
func TestPolecatTellsOfGitsSettings(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "sandbox: \"off\"\n")
	told := func(when string, want int) {
		t.Helper()
		letters, _, err := k.rig.Mailbox(state.Human).List()
		k.fail(err)
		n := 0
		for _, e := range letters {
			if e.Type == mail.Coordination && strings.HasPrefix(e.Subject, "What git obeys in this repository has changed") {
				n++
				k.fail(os.Remove(filepath.Join(k.rig.Tree.Abs(k.rig.Mailbox(state.Human).Dir()), string(e.Name)))) // so that it could be sent again
			}
		}
		if n != want {
			t.Errorf("%s: told %d times, want %d", when, n, want)
		}
	}
	rec := k.sling("touch mine; git add mine; git commit -qm mine; git config alias.x '!true'")
	k.until("it is retired", k.retired(rec.AssignmentID))
	told("after the worker", 1)
	k.free()
	rec = k.sling("touch two; git add two; git commit -qm two")
	k.until("it is retired", k.retired(rec.AssignmentID))
	told("after the next", 0)
}
