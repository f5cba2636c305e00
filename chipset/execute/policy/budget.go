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

// Overspent is a budget that is used up.
type Overspent struct {
	Used   pause.Used
	Reason string
	// Until is when it ends by itself: midnight for the budget of a day, else at.
	Until state.Time
}

// Budgets returns the scopes whose budgets are used up at an instant, by all that attempts have used. What the
// person has granted beyond a budget does not count; for a day, on that day.
func Budgets(d *definition.Definition, rows []spend.Row, pauses []pause.Pause, at state.Time) map[pause.Scope]Overspent {
	today := spend.Day(at.Time)
	used := map[pause.Scope]pause.Used{}
	for i := range rows {
		r := &rows[i]
		count(used, pause.Bead(r.Bead), r)
		if r.Convoy != "" {
			count(used, pause.Convoy(r.Convoy), r)
		}
		if r.Day == today {
			count(used, pause.Day, r)
		}
	}
	granted := map[pause.Scope]pause.Used{}
	for i := range pauses {
		p := &pauses[i]
		if p.Granted != nil && (p.Scope != pause.Day || spend.Day(p.UpdatedAt.Time) == today) {
			granted[p.Scope] = *p.Granted
		}
	}
	year, month, day := at.Local().Date()
	midnight := state.At(time.Date(year, month, day+1, 0, 0, 0, 0, time.Local))
	over := map[pause.Scope]Overspent{}
	for scope, u := range used {
		bounds, until := d.Budget.Bead, at
		switch {
		case scope == pause.Day:
			bounds, until = d.Budget.Day, midnight
		case scope.IsConvoy():
			bounds = d.Budget.Convoy
		}
		if reason := exceeded(u, granted[scope], bounds); reason != "" {
			over[scope] = Overspent{Used: u, Reason: reason, Until: until}
		}
	}
	return over
}

func count(used map[pause.Scope]pause.Used, scope pause.Scope, r *spend.Row) {
	u := used[scope]
	u.CostUSD, u.Tokens, u.Attempts, u.Time = u.CostUSD+r.CostUSD, u.Tokens+r.Tokens(), u.Attempts+r.Attempts, u.Time+r.Time
	used[scope] = u
}

// exceeded says which bound is reached first in the order of the definition, or "".
func exceeded(used, granted pause.Used, b definition.Bounds) string {
	money := spend.Dollars(b.Money)
	switch {
	case money > 0 && used.CostUSD-granted.CostUSD >= money:
		return fmt.Sprintf("the budget is used up: %s, and %s was allowed", used.CostUSD, granted.CostUSD+money)
	case b.Tokens > 0 && used.Tokens-granted.Tokens >= b.Tokens:
		return fmt.Sprintf("the budget is used up: %s tokens, and %s were allowed", wording.Thousands(used.Tokens), wording.Thousands(granted.Tokens+b.Tokens))
	case b.Attempts > 0 && used.Attempts-granted.Attempts >= b.Attempts:
		return fmt.Sprintf("the budget is used up: %s, and %d were allowed", wording.Count(used.Attempts, "attempt"), granted.Attempts+b.Attempts)
	case b.Time > 0 && used.Time-granted.Time >= b.Time:
		return fmt.Sprintf("the budget is used up: workers ran for %s, and %s was allowed", used.Time.Round(time.Second), (granted.Time + b.Time).Round(time.Second))
	}
	return ""
}
