package polecat

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/rolestest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/retire"
)

// drawFacts makes any world, also those that can't be: a polecat must do no
// harm in any of them.
func drawFacts(t *rapid.T) Facts {
	w := newWorld()
	f := w.f
	f.Fresh = "ses-new"
	as := rapid.SampledFrom([]state.AssignmentID{"as-1", "as-2"})
	ses := rapid.SampledFrom([]state.SessionID{"ses-1", "ses-2"})
	switch status := rapid.SampledFrom([]hook.Status{"", hook.Empty, hook.Pending, hook.Active, hook.Completed}).Draw(t, "hook"); status {
	case "":
		f.Hook, f.HookProblem = nil, "broken"
	case hook.Empty:
	default:
		f.Hook = &hook.Hook{AgentID: f.Self, Status: status, WorkItem: &hook.WorkItem{AssignmentID: as.Draw(t, "hook as"), BeadID: "gt-a",
			Session: ses.Draw(t, "hook session"), AssignedAt: f.Now}}
	}
	if status := rapid.SampledFrom([]bead.Status{"", bead.Open, bead.Hooked, bead.InProgress, bead.Done}).Draw(t, "bead"); status != "" {
		f.Bead = &bead.Bead{ID: "gt-a", Status: status, AssignmentID: as.Draw(t, "bead as")}
	}
	if stage := rapid.SampledFrom([]retire.Stage{"", retire.Published, retire.Recorded, retire.Released, retire.Stale}).Draw(t, "stage"); stage != "" {
		f.Record = &retire.Record{AssignmentID: as.Draw(t, "record as"), Outcome: retire.Done, Stage: stage}
	}
	if status := rapid.SampledFrom([]WorkerStatus{WorkerNone, WorkerRunning, WorkerExited}).Draw(t, "worker"); status != WorkerNone {
		f.Worker = Worker{Status: status, Assignment: as.Draw(t, "worker as"), Session: ses.Draw(t, "worker session"), Bead: "gt-a",
			Exit: Exit{Code: rapid.IntRange(0, 2).Draw(t, "code"), Lost: rapid.Bool().Draw(t, "lost")}}
	}
	f.Progress = rapid.Bool().Draw(t, "progress")
	if rapid.Bool().Draw(t, "next") {
		f.Next = "gt-z"
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "nudges") {
		w.f.Nudges = nil
		kind, from := rapid.SampledFrom(nudge.Types()).Draw(t, "type"), rapid.SampledFrom([]string{"mayor", "human", "witness"}).Draw(t, "from")
		happen(t, w, fmt.Sprintf("nudge %s %s as=%s", from, kind, as.Draw(t, "ref")))
		n := w.f.Nudges[0]
		n.Timestamp = state.At(n.Timestamp.Add(time.Duration(i)))
		f.Nudges = append(f.Nudges, n)
	}
	for range rapid.IntRange(0, 3).Draw(t, "mails") {
		w.f.Mail = nil
		kind := rapid.SampledFrom(mail.Types()).Draw(t, "mail type")
		happen(t, w, fmt.Sprintf("mail mayor %s session=%s", kind, rapid.SampledFrom([]string{"ses-me", "ses-0"}).Draw(t, "to")))
		f.Mail = append(f.Mail, w.f.Mail[0])
	}
	return f
}

func happen(t *rapid.T, w *world, line string) {
	if err := w.Happen(rolestest.Parse(line)); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
}

func drawState(t *rapid.T) State {
	return State{Session: rapid.SampledFrom([]state.SessionID{"", "ses-1", "ses-2"}).Draw(t, "own session"),
		Stopping: rapid.Bool().Draw(t, "stopping"), Lost: rapid.IntRange(0, 2).Draw(t, "lost so far"), ShuttingDown: rapid.Bool().Draw(t, "shutting down")}
}

// TestDecideHarmsNobody holds in every world.
func TestDecideHarmsNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, f := drawState(t), drawFacts(t)
		d := Decide(s, f)
		if diff := cmp.Diff(d, Decide(s, f)); diff != "" {
			t.Fatalf("the same facts, another decision:\n%s", diff)
		}
		next, actions := d.Next, d.Actions()
		big := 0
		handled := map[string]int{}
		for _, a := range actions {
			if begins(a) && next.ShuttingDown {
				t.Errorf("%s while shutting down", describe(a))
			}
			if isBig(a) {
				big++
			}
			if err := harmless(&f, a); err != nil {
				t.Errorf("%s: %v", describe(a), err)
			}
			switch a := a.(type) {
			case roles.MarkSeen:
				handled[a.Nudge.Timestamp.String()+string(a.Nudge.From)]++
			case roles.MarkRead:
				handled[string(a.Entry.Name)]++
			case roles.Finish:
				if f.Worker.Status == WorkerRunning {
					t.Error("finished with a worker at work")
				}
			}
		}
		if big > 1 {
			t.Errorf("%d great steps at once: %v", big, actions)
		}
		for what, n := range handled {
			if n > 1 {
				t.Errorf("%s is retired %d times", what, n)
			}
		}
	})
}

func begins(a roles.Action) bool {
	switch a.(type) {
	case Activate, Resume, Start, Claim:
		return true
	}
	return false
}

func isBig(a roles.Action) bool {
	switch a.(type) {
	case Publish, Retire, Abandon:
		return true
	}
	return begins(a)
}

// harmless holds an action against the facts it was decided on.
func harmless(f *Facts, a roles.Action) error {
	unfinished := f.Record != nil && !f.Record.Stage.Final()
	switch a := a.(type) {
	case Start, Activate, Resume:
		if f.Hook == nil || f.Bead == nil && f.Worker.Status == WorkerNone || unfinished || f.Worker.Status == WorkerRunning {
			return fmt.Errorf("begun in the wrong moment")
		}
	case Retire:
		if f.Worker.Status == WorkerRunning || !unfinished {
			return fmt.Errorf("finished with a worker at work, or twice")
		}
	case Abandon:
		if f.Worker.Status != WorkerExited || unfinished {
			return fmt.Errorf("abandoned what runs, or is retired")
		}
	case Publish:
		if f.Hook == nil || f.Hook.Status != hook.Active || a.Record.AssignmentID != f.Hook.Assignment() || unfinished {
			return fmt.Errorf("the end of somebody else's attempt")
		}
	case Touch:
		if !f.Progress || f.Worker.Status != WorkerRunning || f.Hook == nil || f.Hook.Assignment() != a.Assignment {
			return fmt.Errorf("touched without progress")
		}
	case Claim:
		if f.Hook == nil || f.Hook.Status != hook.Empty {
			return fmt.Errorf("claimed over a hook that is taken")
		}
	}
	return nil
}

func TestTouchInterval(t *testing.T) {
	for stall, want := range map[time.Duration]time.Duration{300 * time.Second: 15 * time.Second, 400 * time.Millisecond: 100 * time.Millisecond} {
		if got := TouchInterval(stall); got != want {
			t.Errorf("TouchInterval(%s) = %s, not %s", stall, got, want)
		}
	}
}
