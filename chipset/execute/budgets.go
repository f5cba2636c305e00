package execute

import (
	"context"
	"maps"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/spend"
)

// keepBudgets pauses what has used up its budget, and lifts the pauses of budgets that are not used up any more.
func (m *Mayor) keepBudgets(ctx context.Context) error {
	known, _, err := m.Rig.Pauses.All()
	if err != nil {
		return err
	}
	var over map[pause.Scope]policy.Overspent
	if !m.Rig.Def.Budget.IsZero() {
		if over, err = m.budgets(known); err != nil {
			return err
		}
	}
	for i := range known {
		p := &known[i]
		if _, still := over[p.Scope]; !still && p.Status == pause.Paused && p.Check == pause.CheckBudget {
			if err := m.lift(ctx, p.Scope); err != nil {
				return err
			}
		}
		if p.Status == pause.Paused {
			delete(over, p.Scope)
		}
	}
	for scope, o := range over {
		err := m.Rig.Pauses.Change(ctx, scope, func(p *pause.Pause) error {
			return p.Exceed(o.Used, o.Reason, m.outOf(scope), o.Until, m.Now())
		})
		if err != nil {
			return err
		}
		m.Say("%s: %s; chipset resume %s allows as much again", scope, o.Reason, scope)
	}
	return nil
}

// budgets are those that are used up, of what would begin again otherwise.
func (m *Mayor) budgets(known []pause.Pause) (map[pause.Scope]policy.Overspent, error) {
	records, _, err := m.Rig.Spend.All()
	if err != nil {
		return nil, err
	}
	var rows []spend.Row
	for i := range records {
		rows = append(rows, records[i].Rows()...)
	}
	begins := map[pause.Scope]bool{pause.Day: m.backlog.Unfinished() > 0}
	for i := range records {
		b := m.backlog.Get(records[i].BeadID)
		begins[pause.Bead(records[i].BeadID)] = b != nil && (b.Status == bead.Open || b.Status == bead.Failed)
	}
	convoys, _, err := m.Rig.Convoys.All()
	for i := range convoys {
		begins[pause.Convoy(convoys[i].ID)] = convoys[i].CompletedAt == nil
	}
	over := policy.Budgets(m.Rig.Def, rows, known, m.Now())
	maps.DeleteFunc(over, func(s pause.Scope, _ policy.Overspent) bool { return !begins[s] })
	return over, err
}

// outOf are the beads of a scope that are worked on: their attempts go on to their end.
func (m *Mayor) outOf(scope pause.Scope) (out []state.BeadID) {
	for b := range m.backlog.Out() {
		if slices.Contains(pause.Needs("", b), scope) {
			out = append(out, b.ID)
		}
	}
	return out
}
