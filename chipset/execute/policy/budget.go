package policy

import (
	"fmt"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/spend"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Standing is a budget that is used up, or nearly.
type Standing struct {
	Used   pause.Used
	Reason string
	// Until is when it ends by itself: midnight for the budget of a day, else now.
	Until state.Time
	// UsedUp: nothing may begin any more. Ends: nor may what runs go on; false for attempts, which count what begins.
	UsedUp, Ends bool
}

// near is the share of a budget at which a worker is told.
const near = 0.8

// Tally adds up what attempts have used. It is kept up to date by what changes, and only what comes near to its budget
// is looked at again.
type Tally struct {
	budget  definition.Budget
	records map[string]*spend.Record
	used    map[pause.Scope]pause.Used
	days    map[string]pause.Used
	// close are the scopes that have used much of their budgets, whatever was granted.
	close map[pause.Scope]bool
}

// NewTally returns an empty one.
func NewTally(b definition.Budget) *Tally {
	t := &Tally{budget: b}
	t.clear()
	return t
}

func (t *Tally) clear() {
	t.records, t.used = map[string]*spend.Record{}, map[pause.Scope]pause.Used{}
	t.days, t.close = map[string]pause.Used{}, map[pause.Scope]bool{}
}

// Follow takes over what has changed.
func (t *Tally) Follow(c state.Changes[spend.Record]) {
	if c.All {
		t.clear()
	}
	for i := range c.Values {
		t.put(string(c.Values[i].AssignmentID), &c.Values[i])
	}
	for _, name := range c.Removed {
		t.put(name, nil)
	}
}

func (t *Tally) put(name string, now *spend.Record) {
	if was := t.records[name]; was != nil {
		t.count(was, -1)
	}
	delete(t.records, name)
	if now != nil {
		t.records[name] = now
		t.count(now, 1)
	}
}

func (t *Tally) count(r *spend.Record, sign int) {
	scopes := []pause.Scope{pause.Bead(r.BeadID)}
	if r.ConvoyID != "" {
		scopes = append(scopes, pause.Convoy(r.ConvoyID))
	}
	for _, row := range r.Rows() {
		t.days[row.Day] = plus(t.days[row.Day], &row, sign)
		for _, s := range scopes {
			t.used[s] = plus(t.used[s], &row, sign)
		}
	}
	for _, s := range scopes {
		if _, close := stands(t.used[s], pause.Used{}, t.bounds(s)); close {
			t.close[s] = true
		} else {
			delete(t.close, s)
		}
	}
}

func plus(u pause.Used, r *spend.Row, sign int) pause.Used {
	return pause.Used{CostUSD: u.CostUSD + spend.USD(sign)*r.CostUSD, Tokens: u.Tokens + int64(sign)*r.Tokens(),
		Attempts: u.Attempts + sign*r.Attempts, Time: u.Time + time.Duration(sign)*r.Time}
}

func (t *Tally) bounds(s pause.Scope) definition.Bounds {
	_, convoy := s.Convoy()
	switch {
	case s == pause.Day:
		return t.budget.Day
	case convoy:
		return t.budget.Convoy
	case s.IsPlan():
		return t.budget.Plan
	}
	return t.budget.Bead
}

// Stands returns the scopes whose budgets are used up at an instant, or nearly. What the person has granted beyond a
// budget does not count; for a day, on that day. planning are the assignments whose plans are not approved yet: each
// has the budget of a plan, too.
func (t *Tally) Stands(pauses []pause.Pause, planning []state.AssignmentID, at state.Time) map[pause.Scope]Standing {
	today := spend.Day(at.Time)
	granted := map[pause.Scope]pause.Used{}
	for i := range pauses {
		p := &pauses[i]
		if p.Granted != nil && (p.Scope != pause.Day || spend.Day(p.UpdatedAt.Time) == today) {
			granted[p.Scope] = *p.Granted
		}
	}
	all := map[pause.Scope]Standing{}
	look := func(s pause.Scope, u pause.Used) {
		if standing, close := stands(u, granted[s], t.bounds(s)); close {
			if standing.Until = at; s == pause.Day {
				year, month, day := at.Local().Date()
				standing.Until = state.At(time.Date(year, month, day+1, 0, 0, 0, 0, time.Local))
			}
			all[s] = standing
		}
	}
	look(pause.Day, t.days[today])
	for s := range t.close {
		look(s, t.used[s])
	}
	for _, a := range planning {
		if r := t.records[string(a)]; r != nil {
			var u pause.Used
			for _, row := range r.Rows() {
				u = plus(u, &row, 1)
			}
			look(pause.Plan(r.BeadID), u)
		}
	}
	return all
}

// measure is one of the bounds of a budget that is set.
type measure struct {
	// share is how much of it is used, what the person has granted apart.
	share         float64
	used, allowed string
	ends          bool
}

func measures(used, granted pause.Used, b definition.Bounds) []measure {
	var all []measure
	if money := spend.Dollars(b.Money); money > 0 {
		all = append(all, measure{float64(used.CostUSD-granted.CostUSD) / float64(money), used.CostUSD.String(),
			fmt.Sprintf("%s was allowed", granted.CostUSD+money), true})
	}
	if b.Tokens > 0 {
		all = append(all, measure{float64(used.Tokens-granted.Tokens) / float64(b.Tokens), wording.Thousands(used.Tokens) + " tokens",
			wording.Thousands(granted.Tokens+b.Tokens) + " were allowed", true})
	}
	if b.Time > 0 {
		all = append(all, measure{float64(used.Time-granted.Time) / float64(b.Time), fmt.Sprintf("workers ran for %s", used.Time.Round(time.Second)),
			fmt.Sprintf("%s was allowed", (granted.Time + b.Time).Round(time.Second)), true})
	}
	if b.Attempts > 0 {
		all = append(all, measure{float64(used.Attempts-granted.Attempts) / float64(b.Attempts), wording.Count(used.Attempts, "attempt"),
			fmt.Sprintf("%d were allowed", granted.Attempts+b.Attempts), false})
	}
	return all
}

// stands says how a budget stands, by the bound that is used most. close is false where none is nearly used up.
func stands(used, granted pause.Used, b definition.Bounds) (s Standing, close bool) {
	all := measures(used, granted, b)
	for _, limit := range []float64{1, near} {
		for _, m := range all {
			if m.share >= limit {
				s = Standing{Used: used, Reason: "the budget is used up: ", UsedUp: true, Ends: m.ends}
				if limit < 1 {
					s = Standing{Used: used, Reason: "the budget is nearly used up: "}
				}
				s.Reason += m.used + ", and " + m.allowed
				return s, true
			}
		}
	}
	return s, false
}
