package execute

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/retire"
)

// trying is a reader of a client that tries again what fails.
type trying struct {
	saying
	what fault.Fault
}

func (r *trying) Trying() fault.Fault { return r.what }

// What a worker that has ended has left is told as it is, and since when its client tried again what fails.
func TestPolecatLooksAtAWorker(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	now := k.p.Now()
	if facts, progress := k.p.lookAtWorker(t.Context(), now); facts.Status != polecat.WorkerNone || progress {
		t.Errorf("without one: %+v", facts)
	}
	most := 3
	r := &trying{saying: saying{figures: agentcli.Figures{Turns: 4}}, what: fault.New(fault.Overloaded, "busy")}
	w := &worker{assignment: "as-1", bead: "tt-abc12", session: deadSession, startedAt: now, preset: agentcli.Preset{Name: "actor", Command: []string{"claude"}, Resumes: most},
		talk: &talk{name: "claude", reader: r, resumed: 1}, quiet: time.Minute, cpu: time.Second, lastProgress: now, exit: &polecat.Exit{Code: 3}, endedAt: now}
	k.p.worker = w
	want := polecat.Worker{Status: polecat.WorkerExited, Assignment: "as-1", Bead: "tt-abc12", Session: deadSession, StartedAt: now, Resumes: 2, Inherited: true,
		Exit: polecat.Exit{Code: 3}, Trying: r.what, Turns: 4, Quiet: time.Minute, LastProgress: now, CPU: time.Second, TryingSince: now}
	look := func(at state.Time) {
		t.Helper()
		got, progress := k.p.lookAtWorker(t.Context(), at)
		if want.Loadable = got.Loadable; !reflect.DeepEqual(got, want) || progress {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	look(now)
	later := state.At(now.Add(time.Second))
	look(later) // it tries since then
	r.what, want.Trying, want.TryingSince = fault.Fault{}, fault.Fault{}, state.Time{}
	look(later)
	r.what = fault.New(fault.Network, "no route")
	want.Trying, want.TryingSince = r.what, later
	look(later)
	k.p.worker = nil
	k.p.given.AssignmentID, k.p.given.BeadID, k.p.given.Session = "as-2", "tt-abc12", deadSession
	want = polecat.Worker{Status: polecat.WorkerBeside, Assignment: "as-2", Bead: "tt-abc12", Session: deadSession}
	look(later)
}

// What an earlier process left running is what its records say that are not over, of the session on the hook and of the one whose worktree it is.
// Only the session of an active hook, with a record of its own, goes on.
func TestPolecatFindsWhatWasLeft(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	record := func(s state.SessionID, x process.Exit) {
		t.Helper()
		text, err := json.Marshal(x)
		k.fail(err)
		k.write(".chipset/"+string(rig.ExitRecord(s)), string(text))
	}
	left := func(want ...string) {
		t.Helper()
		var got []string
		for _, x := range k.p.leftRunning() {
			got = append(got, x.ID)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("left are %v, want %v", got, want)
		}
	}
	if item, _ := k.p.leftSession(); item != nil {
		t.Errorf("left is %+v", item)
	}
	left()
	a := k.dead()
	left()
	if item, _ := k.p.leftSession(); item != nil {
		t.Errorf("without a record %+v is left", item)
	}
	record(deadSession, process.Exit{ID: string(deadSession), PID: 1, StartedAt: k.p.Now()})
	left(string(deadSession))
	if item, x := k.p.leftSession(); item == nil || item.Session != deadSession || x.PID != 1 {
		t.Errorf("left is %+v, %+v", item, x)
	}
	use, _ := carry.ReadWorktree(k.rig, alpha)
	use.Session = "ses-other"
	k.fail(carry.WriteWorktree(k.rig, use))
	record("ses-other", process.Exit{ID: "ses-other", PID: 2, StartedAt: k.p.Now()})
	left(string(deadSession), "ses-other")
	record("ses-other", process.Exit{ID: "ses-other", PID: 2, Done: true, StartedAt: k.p.Now(), EndedAt: k.p.Now()})
	left(string(deadSession))
	k.fail(os.WriteFile(k.rig.Tree.Abs(rig.ExitRecord(deadSession)), []byte("{"), 0o600))
	left()
	if item, _ := k.p.leftSession(); item != nil {
		t.Errorf("with a torn record %+v is left", item)
	}
	record(deadSession, process.Exit{ID: "ses-x", Done: true, StartedAt: k.p.Now(), EndedAt: k.p.Now()})
	if item, _ := k.p.leftSession(); item != nil {
		t.Errorf("with the record of another session %+v is left", item)
	}
	record(deadSession, process.Exit{ID: string(deadSession), Done: true, StartedAt: k.p.Now(), EndedAt: k.p.Now()})
	_, err := k.rig.Hooks.Complete(t.Context(), alpha, a, deadSession, k.p.Now())
	k.fail(err)
	if item, _ := k.p.leftSession(); item != nil {
		t.Errorf("of a hook that is completed %+v is left", item)
	}
}

// A session is taken over only while its attempt is not over, with a bead and a worker that are known, and what it left is durable.
func TestPolecatTakesOverWhatIsWhole(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(k *kennel, x *process.Exit)
		taken   bool
		fails   bool
	}{
		"as it was left": {func(*kennel, *process.Exit) {}, true, false},
		"not settled":    {func(_ *kennel, x *process.Exit) { x.Settled = false }, false, false},
		"not settled, its supervisor killed, another boot": {func(_ *kennel, x *process.Exit) { x.Settled, x.Code, x.BootID = false, -1, "x" }, false, false},
		"no bead": {func(k *kennel, _ *process.Exit) {
			k.fail(os.Remove(k.rig.Tree.Abs(k.rig.Beads.Path(string(k.hook().WorkItem.BeadID)))))
		}, false, false},
		"no such worker": {func(k *kennel, _ *process.Exit) { k.change(func(b *bead.Bead) { b.Worker = "\"" }) }, false, false},
		"no record":      {func(_ *kennel, x *process.Exit) { x.ID = "" }, false, false},
		"over": {func(k *kennel, _ *process.Exit) {
			item := k.hook().WorkItem
			k.fail(k.p.publish(k.t.Context(), polecatDone(item.AssignmentID, deadSession, item.BeadID)))
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKennel(t, "")
			k.dead()
			now := k.p.Now()
			exit := process.Exit{ID: string(deadSession), Done: true, Code: 1, Settled: true, StartedAt: now, EndedAt: state.At(now.Add(time.Minute))}
			c.prepare(k, &exit)
			if exit.ID != "" {
				text, err := json.Marshal(exit)
				k.fail(err)
				k.write(".chipset/"+string(rig.ExitRecord(deadSession)), string(text))
			}
			item := *k.hook().WorkItem
			if name == "as it was left" {
				k.change(func(b *bead.Bead) { b.ConvoyID = "co-1" })
			}
			if err := k.p.takeOver(t.Context(), item, exit); (err != nil) != c.fails {
				t.Fatal(err)
			}
			if w := k.p.worker; (w != nil) != c.taken {
				t.Fatalf("taken over is %+v", w)
			} else if w != nil && (w.convoy != "co-1" || w.startedAt != exit.StartedAt || w.endedAt != exit.EndedAt || w.exit.Code != 1 || w.exit.Lost || !w.ended()) {
				t.Errorf("%+v", w)
			}
			// What was running when this process began was ended, whatever its record says now.
			if exit.Done = false; c.taken {
				k.fail(k.p.takeOver(t.Context(), item, exit))
				if !k.p.worker.exit.Lost {
					t.Errorf("%+v", k.p.worker.exit)
				}
			}
		})
	}
	k := newKennel(t, "")
	k.dead()
	w := &worker{session: deadSession, preset: agentcli.Preset{Command: []string{"codex"}}, talk: &talk{name: "claude"}}
	if whole, err := k.p.resumable(t.Context(), w); whole || err != nil {
		t.Errorf("with another client: %t, %v", whole, err)
	}
	w.preset.Command = []string{"claude"}
	if whole, err := k.p.resumable(t.Context(), w); !whole || err != nil {
		t.Errorf("with its own: %t, %v", whole, err)
	}
	use, _ := carry.ReadWorktree(k.rig, alpha)
	use.Torn = true
	k.fail(carry.WriteWorktree(k.rig, use))
	if whole, err := k.p.resumable(t.Context(), w); whole || err != nil {
		t.Errorf("with a torn worktree: %t, %v", whole, err)
	}
	k.spoilt(retire.Dir, func() {
		if err := k.p.takeOver(t.Context(), *k.hook().WorkItem, process.Exit{}); err == nil {
			t.Error("taken over although nobody knows whether it is over")
		}
	})
	if !errors.Is(k.p.taken(), state.ErrConflict) {
		t.Error("it is not said that somebody has it")
	}
}
