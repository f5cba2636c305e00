package execute

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/pause"
)

// budgets is what the mayor knows of those of its rig.
type budgets struct {
	tally *policy.Tally
	// seen is how far the tally follows the records.
	seen state.Cursor
	// told is what the worker of each assignment was told last.
	told map[state.AssignmentID]string
}

// keepBudgets pauses what has used up its budget, and lifts the pauses of budgets that are not used up any more. Workers
// whose budgets are used up, or nearly, are told.
func (m *Mayor) keepBudgets(ctx context.Context) error {
	known, _, err := m.Rig.Pauses.All()
	if err != nil {
		return err
	}
	standings, err := m.standings(known)
	if err != nil {
		return err
	}
	for i := range known {
		p := &known[i]
		if p.Status == pause.Paused && p.Check == pause.CheckBudget && !standings[p.Scope].UsedUp {
			if err := m.lift(ctx, p.Scope); err != nil {
				return err
			}
		}
	}
	for scope, s := range standings {
		if err := m.exceed(ctx, scope, s); err != nil {
			return err
		}
	}
	return m.tellWorkers(ctx, standings)
}

// exceed pauses a scope whose budget is used up.
func (m *Mayor) exceed(ctx context.Context, scope pause.Scope, s policy.Standing) error {
	if !s.UsedUp {
		return nil
	}
	var out []state.BeadID
	if !s.Ends {
		out = m.outOf(scope)
		if _, one := scope.Bead(); one && len(out) > 0 {
			return nil // its last attempt goes on to its end
		}
	}
	began := false
	err := m.Rig.Pauses.Change(ctx, scope, func(p *pause.Pause) (err error) {
		began, err = p.Exceed(s.Used, s.Reason, out, s.Until, m.Now())
		return err
	})
	if err == nil && began {
		m.Say("%s: %s; chipset resume %s allows as much again", scope, s.Reason, scope)
	}
	return err
}

// standings are those of budgets that matter: of what would begin or go on otherwise.
func (m *Mayor) standings(known []pause.Pause) (map[pause.Scope]policy.Standing, error) {
	if m.Rig.Def.Budget.IsZero() {
		return nil, nil
	}
	if m.budgets.tally == nil {
		m.budgets.tally = policy.NewTally(m.Rig.Def.Budget)
	}
	records, err := m.Rig.Spend.Since(m.budgets.seen)
	if err != nil {
		return nil, err
	}
	m.budgets.tally.Follow(records)
	m.budgets.seen = records.Next
	standings := m.budgets.tally.Stands(known, m.planning(), m.Now())
	maps.DeleteFunc(standings, func(scope pause.Scope, _ policy.Standing) bool { return !m.matters(scope) })
	return standings, nil
}

// planning are the assignments whose workers must plan first, and have no plan that is approved.
func (m *Mayor) planning() (planning []state.AssignmentID) {
	if m.Rig.Def.Budget.Plan.IsZero() {
		return nil
	}
	for b := range m.backlog.Out() {
		if errors.Is(actor.CheckPlan(m.Rig, b.Assignee, b.AssignmentID), actor.ErrNoPlan) {
			planning = append(planning, b.AssignmentID)
		}
	}
	return planning
}

// matters reports whether something of a scope may begin, or goes on.
func (m *Mayor) matters(scope pause.Scope) bool {
	if id, ok := scope.Convoy(); ok {
		c, err := m.Rig.Convoys.GetCached(string(id))
		return err == nil && c.CompletedAt == nil
	}
	id, ok := scope.Bead()
	if !ok {
		return m.backlog.Unfinished() > 0
	}
	b := m.backlog.Get(id)
	return b != nil && slices.Contains([]bead.Status{bead.Open, bead.Failed, bead.Hooked, bead.InProgress}, b.Status)
}

// outOf are the beads of a scope that are worked on.
func (m *Mayor) outOf(scope pause.Scope) (out []state.BeadID) {
	for b := range m.backlog.Out() {
		if slices.Contains(pause.Needs("", b), scope) {
			out = append(out, b.ID)
		}
	}
	return out
}

const (
	budgetNear   = "Come to an end soon: commit what is whole, and leave out what is not asked for."
	budgetUsedUp = "Commit what you have and end your turn now; if everything is done, say so with chipset done. This session is ended " +
		"after your next turn at the latest. It goes on from there when the person allows more, and nothing is charged."
	budgetRaised = "The person has allowed more: go on."
)

// tellWorkers nudges each worker once when its budget is nearly used up, used up, or raised after that.
func (m *Mayor) tellWorkers(ctx context.Context, standings map[pause.Scope]policy.Standing) error {
	told := map[state.AssignmentID]string{}
	for b := range m.backlog.Out() {
		before := m.budgets.told[b.AssignmentID]
		text, tell := "", ""
		for _, scope := range pause.Needs("", b) {
			if s, stands := standings[scope]; stands && text != budgetUsedUp {
				if text = budgetNear; s.Ends {
					text = budgetUsedUp
				}
				tell = string(scope) + ": " + s.Reason + ". " + text
			}
		}
		if text == "" && before == budgetUsedUp {
			text, tell = budgetRaised, budgetRaised
		}
		if text != "" && text != before && b.Assignee != "" {
			err := m.do(ctx, roles.Nudge{To: b.Assignee, Nudge: nudge.Nudge{Type: nudge.PriorityChange, Message: tell,
				Ref: &nudge.Ref{BeadID: b.ID, AssignmentID: b.AssignmentID}}})
			if err != nil {
				return err
			}
		}
		if text != "" {
			told[b.AssignmentID] = text
		}
	}
	m.budgets.told = told
	return nil
}
