package execute

import (
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/nudge"
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
				text += all[i].Message
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
	if h.tick(); told() != budgetRaised || standing() != pause.Over {
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
