package execute

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/spend"
)

// TestBudgetOfPlan: what a worker uses before its plan is approved has a bound of its own. It is told in time, once, and
// told again when it may go on.
func TestBudgetOfPlan(t *testing.T) {
	h := newTownHall(t, "budget: {plan: {tokens: 1000}}\n")
	h.rig.Def.Worker.Presets = append(h.rig.Def.Worker.Presets, definition.WorkerPreset{Name: "strict", Plan: true})
	h.rig.Def.Worker.Default = "strict"
	id := h.add("think")
	h.tick()
	b := h.work(id)
	note := func(tokens int64) {
		h.must(h.rig.Spend.Note(t.Context(), spend.Record{AssignmentID: b.AssignmentID, BeadID: b.ID, AgentID: b.Assignee, UpdatedAt: h.rig.Clock.Now()},
			"ses-1", []spend.Model{{Usage: spend.Usage{In: tokens}}}, time.Second))
		h.tick()
	}
	told := func() string {
		all, _, err := h.rig.Slot(b.Assignee).All()
		h.must(err)
		text := ""
		for i := range all {
			if all[i].Type == nudge.PriorityChange {
				text += "told: " + all[i].Message
			}
		}
		return text
	}
	standing := func() pause.Status {
		all, _, err := h.rig.Pauses.All()
		h.must(err)
		for i := range all {
			if all[i].Scope == pause.Plan(b.ID) {
				return all[i].Status
			}
		}
		return ""
	}
	if note(700); told() != "" {
		t.Errorf("told too early: %s", told())
	}
	if note(800); !strings.Contains(told(), "is nearly used up: 800 tokens") || standing() != "" {
		t.Errorf("%s; %s", told(), standing())
	}
	if note(1000); !strings.Contains(told(), "is used up: 1.0k tokens") || !strings.Contains(told(), budgetUsedUp) || standing() != pause.Paused {
		t.Errorf("%s; %s", told(), standing())
	}
	h.must(h.rig.Pauses.Change(t.Context(), pause.Plan(b.ID), func(p *pause.Pause) error { return p.Resume(h.rig.Clock.Now()) }))
	if h.tick(); told() != "told: "+budgetRaised || standing() != pause.Over {
		t.Errorf("%s; %s", told(), standing())
	}
	if note(2000); standing() != pause.Paused {
		t.Errorf("used up again: %s", standing())
	}
	h.rig.Def.Worker.Default = "sh" // nothing is to be planned
	if h.tick(); standing() != pause.Over {
		t.Errorf("approved: %s", standing())
	}
}

// TestMayorKeepsBudgets: what would begin again beyond its budget is paused, what is over or on its way is not. The
// pause ends with the budget, and takes no other one along.
func TestMayorKeepsBudgets(t *testing.T) {
	t.Parallel()
	h := newTownHall(t, "budget: {bead: {attempts: 1}}\n")
	again, landed, working := h.add("again"), h.add("landed"), h.add("working")
	h.set(landed, func(b *bead.Bead) { b.Status = bead.Merged })
	h.set(working, func(b *bead.Bead) {
		b.Status, b.Assignee, b.AssignmentID = bead.InProgress, mayorBravo, "as-"+state.AssignmentID(working)
	})
	for _, id := range []state.BeadID{again, landed, working} {
		h.must(h.rig.Spend.Note(h.Context(), spend.Record{AssignmentID: "as-" + state.AssignmentID(id), BeadID: id, AgentID: mayorBravo, UpdatedAt: state.At(h.at)}, "ses-1", nil, 0))
	}
	key := fault.New(fault.ClientMissing, "no such program")
	h.must(h.rig.Pauses.Change(h.Context(), pause.Rig, func(p *pause.Pause) error {
		p.Find("preflight", "", key, state.At(h.at))
		return nil
	}))
	paused := func(want ...pause.Scope) {
		t.Helper()
		h.must(h.m.keepBudgets(h.Context()))
		all, err := h.rig.Pauses.InForce()
		h.must(err)
		var got []pause.Scope
		for i := range all {
			got = append(got, all[i].Scope)
		}
		if !slices.Equal(got, want) {
			t.Errorf("paused are %v, want %v", got, want)
		}
	}
	_, err := h.m.fetch(h.Context())
	h.must(err)
	paused(pause.Bead(again), pause.Rig)
	before := snapshotOf(t, h.rig.Tree.Root())
	paused(pause.Bead(again), pause.Rig)
	if after := snapshotOf(t, h.rig.Tree.Root()); after != before {
		t.Errorf("the same again has written:\n%s\n%s", before, after)
	}
	want := fmt.Sprintf("bead:%s: the budget is used up: 1 attempt, and 1 were allowed; chipset resume bead:%s allows as much again", again, again)
	if !slices.Equal(h.said, []string{want}) {
		t.Errorf("said %q, want %q", h.said, want)
	}
	h.rig.Def.Budget = definition.Budget{}
	paused(pause.Rig)
}
