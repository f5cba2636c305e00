package execute

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
)

// causes has the mayor look at the cause of a pause.
func (h *townHall) cause(p pause.Pause, there, known bool) {
	h.Helper()
	if isThere, isKnown := h.m.cause(h.Context(), &p); isThere != there || isKnown != known {
		h.Errorf("%s of %v: there %t, known %t", p.Kind, p.Tried, isThere, isKnown)
	}
}

// What can be seen of a pause's cause is seen: whether it is there still, and of the client whether the worker of the bead that was tried
// last has it.
func TestCauseOfAPause(t *testing.T) {
	t.Parallel()
	h := newTownHall(t, "")
	h.rig.Def.Worker.Presets = append(h.rig.Def.Worker.Presets, definition.WorkerPreset{Name: "none", Command: definition.Command{Argv: []string{"/none/claude"}}, Prompt: "stdin"})
	b, err := h.rig.Beads.Add(bead.Bead{Title: "x", Worker: "none"}, "tt", state.At(h.at))
	h.must(err)
	other := h.add("of the default")
	_, err = h.m.fetch(h.Context())
	h.must(err)
	tried := func(beads ...state.BeadID) (all []pause.Try) {
		for _, id := range beads {
			all = append(all, pause.Try{BeadID: id})
		}
		return all
	}
	h.cause(pause.Pause{Kind: fault.Overloaded}, false, false)
	h.cause(pause.Pause{Kind: fault.TargetGone}, false, true)
	h.cause(pause.Pause{Kind: fault.DiskFull}, false, true)
	h.cause(pause.Pause{Kind: fault.ClientMissing}, false, true)
	h.cause(pause.Pause{Kind: fault.ClientMissing, Tried: tried(other, b.ID)}, true, true)
	h.cause(pause.Pause{Kind: fault.ClientRefused, Tried: tried(b.ID, other)}, false, true)
	h.cause(pause.Pause{Kind: fault.ClientMissing, Tried: tried("tt-none1")}, false, true)
	h.rig.Def.Worker.Default = "unknown"
	h.cause(pause.Pause{Kind: fault.ClientMissing}, true, true)
	h.cause(pause.Pause{Kind: fault.WorktreeFailed}, false, true)
	git := filepath.Join(h.rig.Dir, ".git")
	h.must(os.Rename(git, git+".away"))
	h.cause(pause.Pause{Kind: fault.NoPermission}, true, true)
	h.cause(pause.Pause{Kind: fault.TargetGone}, true, true)
}

// A pause ends early once its cause was seen and is gone, or when somebody starts the rig, who may have mended it. It waits for nothing that
// can only be tried.
func TestPauseIsMended(t *testing.T) {
	t.Parallel()
	h := newTownHall(t, "")
	h.rig.Def.Worker.Default = "none"
	missing := fault.New(fault.ClientMissing, "none")
	h.must(h.rig.Pauses.Change(h.Context(), pause.Client("none"), func(p *pause.Pause) error {
		return p.Fail(pause.Try{At: h.m.Now(), BeadID: "tt-abc12"}, missing, policy.Pauses(h.rig.Def))
	}))
	mended := func(want bool) {
		t.Helper()
		f, err := h.m.fetch(h.Context())
		h.must(err)
		if len(f.Pauses) != 1 || f.Mended[pause.Client("none")] != want {
			t.Errorf("%+v, mended %v", f.Pauses, f.Mended)
		}
	}
	mended(false) // it is there
	h.rig.Def.Worker.Default = "sh"
	mended(true)
	h.rig.Def.Worker.Default = "none"
	h.m.started = state.At(h.at.Add(time.Hour)) // the rig was started since
	mended(false)
	h.m.causes = map[pause.Scope]int{}
	h.rig.Def.Worker.Default = "sh"
	mended(true)
	h.must(h.rig.Pauses.Change(h.Context(), pause.Client("none"), func(p *pause.Pause) error { p.Class, p.Kind = fault.Capacity, fault.Overloaded; return nil }))
	mended(false)
}

// A bead that waits is known to what it waits for, and told. A fault pauses its client first.
func TestBeadWaits(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	k.dead()
	item := *k.hook().WorkItem
	k.fail(k.p.hold(t.Context(), polecat.Hold{Item: item}))
	if all := inForce(t, k.rig); len(all) > 0 {
		t.Errorf("without a fault %v", all)
	}
	said := len(k.said)
	k.fail(k.p.hold(t.Context(), polecat.Hold{Item: item, Fault: fault.New(fault.Overloaded, "busy")}))
	if all := inForce(t, k.rig); len(all) != 1 || !strings.Contains(all[0], "["+string(item.BeadID)+"] wait") {
		t.Errorf("%v", all)
	}
	if text := strings.Join(k.said[said:], "\n"); !strings.Contains(text, "client:sh has been paused since ") || !strings.HasSuffix(text, string(alpha)+": "+string(item.BeadID)+" is waiting") {
		t.Errorf("said %q", text)
	}
	// It is held, and by a budget, if one of both is in force.
	look := func() polecat.Facts {
		t.Helper()
		b := k.bead(item.BeadID)
		f := polecat.Facts{Bead: &b}
		k.fail(k.p.fetchPauses(&f))
		return f
	}
	if f := look(); !f.Held || f.OutOfBudget || f.Granted != "" {
		t.Errorf("%+v", f)
	}
	k.fail(k.p.fetchPauses(&polecat.Facts{})) // there is no bead
	now := k.p.Now()
	k.fail(k.rig.Pauses.Change(t.Context(), pause.Bead(item.BeadID), func(p *pause.Pause) error {
		_, err := p.Exceed(pause.Used{}, "used up", nil, now, now)
		return err
	}))
	k.fail(k.rig.Pauses.Change(t.Context(), pause.Bead("tt-other"), func(p *pause.Pause) error {
		_, err := p.Exceed(pause.Used{}, "of another", nil, now, now)
		return err
	}))
	if f := look(); !f.OutOfBudget {
		t.Errorf("%+v", f)
	}
	// Who allows more while the worker has ended for the budget has granted it.
	k.fail(k.rig.Pauses.Change(t.Context(), pause.Client("sh"), func(p *pause.Pause) error { return p.Lift(k.p.Now()) }))
	later := state.At(now.Add(2 * time.Second))
	k.fail(k.rig.Pauses.Change(t.Context(), pause.Bead(item.BeadID), func(p *pause.Pause) error { return p.Resume(later) }))
	for name, c := range map[string]struct {
		worker  *worker
		granted string
	}{
		"no worker":        {nil, ""},
		"it runs":          {&worker{}, ""},
		"ended before":     {&worker{exit: &polecat.Exit{}, endedAt: now}, ""},
		"ended meanwhile":  {&worker{exit: &polecat.Exit{}, endedAt: state.At(now.Add(time.Second))}, "used up"},
		"ended since then": {&worker{exit: &polecat.Exit{}, endedAt: later}, ""},
	} {
		k.p.worker = c.worker
		if f := look(); f.Held || f.OutOfBudget || f.Granted != c.granted {
			t.Errorf("%s: %+v", name, f)
		}
	}
	k.p.worker = nil
}

// The end of an attempt pauses what its fault concerns before the bead is open again, once. Where the target is gone, the whole rig waits for it.
func TestEndPausesFirst(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	a := k.dead()
	broken := fault.New(fault.ClientBroken, "broken")
	rec, won, err := carry.Publish(t.Context(), k.rig, retire.Record{AssignmentID: a, AgentID: alpha, Session: deadSession, Outcome: retire.Fail, Reason: "broken", Fault: broken})
	if err != nil || !won {
		t.Fatal(won, err)
	}
	rec, err = k.p.finish(t.Context(), rec)
	k.fail(err)
	if all := inForce(t, k.rig); len(all) != 1 || !rec.Stage.Final() {
		t.Errorf("%s: %v", rec.Stage, all)
	}
	k.fail(k.rig.Pauses.Change(t.Context(), pause.Client("sh"), func(p *pause.Pause) error { return p.Lift(k.p.Now()) }))
	if _, err := k.p.finish(t.Context(), rec); err != nil || len(inForce(t, k.rig)) > 0 {
		t.Errorf("finished again: %v, %v", err, inForce(t, k.rig))
	}

	k = newKennel(t, "")
	a = k.dead()
	rec, _, err = carry.Publish(t.Context(), k.rig, retire.Record{AssignmentID: a, AgentID: alpha, Session: deadSession, Outcome: retire.Done})
	k.fail(err)
	k.write(".git/refs/heads/main", "")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.p.finish(over, rec); !errors.Is(err, context.Canceled) || len(inForce(t, k.rig)) > 0 {
		t.Errorf("told to end: %v, %v", err, inForce(t, k.rig))
	}
	if _, err := k.p.finish(t.Context(), rec); err == nil {
		t.Error("it has landed nowhere")
	}
	if all := inForce(t, k.rig); len(all) != 1 || !strings.HasPrefix(all[0], "rig is paused") {
		t.Errorf("%v", all)
	}
}
