package execute

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/spend"
)

// ledger is what of a worker's use is recorded.
type ledger struct {
	// upTo is until when its time is recorded, zero while nothing is.
	upTo state.Time
	// told is true once it was said that the record can't be written.
	told bool
}

// accountInterval is the least time between two records of what a running worker uses. After a crash the
// transcript tells the rest, but for the time.
const accountInterval = 15 * time.Second

// budgetInterval is that time where a budget depends on it.
const budgetInterval = 3 * time.Second

// account records what a worker has used so far, at once or when it is time. What can't be recorded now is
// recorded the next time.
func (p *Polecat) account(ctx context.Context, w *worker, now state.Time, atOnce bool) {
	longer := time.Duration(0)
	if !w.spent.upTo.IsZero() {
		longer = max(0, now.Sub(w.spent.upTo.Time))
	}
	interval := accountInterval
	if !p.Rig.Def.Budget.IsZero() {
		interval = min(budgetInterval, p.Rig.Def.Rig.Tick)
	}
	if !atOnce && longer < interval {
		return
	}
	attempt := spend.Record{AssignmentID: w.assignment, BeadID: w.bead, ConvoyID: w.convoy, AgentID: p.ID, Client: w.talk.name, UpdatedAt: now}
	if err := p.Rig.Spend.Note(ctx, attempt, w.session, p.used(w), longer); err != nil {
		if !w.spent.told {
			w.spent.told = true
			p.tell(event.Warning(p.ID, w.work(), string(p.ID), fmt.Sprintf("what the worker uses can't be recorded: %v", err)))
		}
		return
	}
	w.spent.upTo = now
}

// used is what a worker's session has used so far, each model once. What its client said it cost wins; for the rest
// the rig's prices count.
func (p *Polecat) used(w *worker) []spend.Model {
	var all []spend.Model
	for _, m := range w.talk.reader.Used() {
		if m.Model == "" {
			m.Model = agentcli.ModelOf(w.preset.Command)
		}
		if price, known := p.Rig.Def.Price(m.Model, w.talk.name); known && m.CostUSD == 0 {
			m.CostUSD = spend.Dollars(price.Cost(definition.Tokens{In: m.In, Cached: m.Cached, CacheWritten: m.Written, Out: m.Out}))
		}
		at := slices.IndexFunc(all, func(o spend.Model) bool { return o.Model == m.Model })
		if at < 0 {
			all = append(all, m)
		} else {
			all[at].Add(m.Usage)
		}
	}
	return all
}
