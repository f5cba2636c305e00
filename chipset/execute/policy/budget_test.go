package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/spend"
)

// TestBudgets: a budget is used up when all that counts for it reaches a bound, less what the person has granted.
func TestBudgets(t *testing.T) {
	now := state.At(time.Date(2026, 3, 5, 12, 0, 0, 0, time.Local))
	row := func(b, c, day string, cents int) spend.Row {
		return spend.Row{Bead: state.BeadID(b), Convoy: state.ConvoyID(c), Day: day, Attempts: 1, Time: time.Hour, Usage: spend.Usage{In: 900, Out: 100, CostUSD: spend.USD(cents * 10_000)}}
	}
	rows := []spend.Row{row("gt-1", "", "2026-03-04", 100), row("gt-1", "", "2026-03-05", 150), row("gt-2", "cv-1", "2026-03-05", 50), row("gt-3", "cv-1", "2026-03-04", 60)}
	bounds := func(money float64, tokens int64, attempts int, d time.Duration) definition.Bounds {
		return definition.Bounds{Money: money, Tokens: tokens, Attempts: attempts, Time: d}
	}
	for _, c := range []struct {
		name    string
		budget  definition.Budget
		granted pause.Pause
		over    string
		reason  string
	}{
		{name: "no bound"},
		{"money of a bead", definition.Budget{Bead: bounds(2.5, 0, 0, 0)}, pause.Pause{}, "bead:gt-1", "$2.50, and $2.50 was allowed"},
		{"not yet", definition.Budget{Bead: bounds(2.51, 0, 0, 0)}, pause.Pause{}, "", ""},
		{"tokens of a convoy", definition.Budget{Convoy: bounds(0, 2000, 0, 0)}, pause.Pause{}, "convoy:cv-1", "2.0k tokens"},
		{"attempts of a day", definition.Budget{Day: bounds(0, 0, 2, 0)}, pause.Pause{}, "day", "2 attempts, and 2 were allowed"},
		{"yesterday does not count", definition.Budget{Day: bounds(0, 0, 3, 0)}, pause.Pause{}, "", ""},
		{"time of a day", definition.Budget{Day: bounds(0, 0, 0, 2*time.Hour)}, pause.Pause{}, "day", "workers ran for 2h0m0s"},
		{"granted", definition.Budget{Day: bounds(0, 0, 2, 0)}, pause.Pause{Scope: pause.Day, UpdatedAt: now, Granted: &pause.Used{Attempts: 1}}, "", ""},
		{"money granted", definition.Budget{Bead: bounds(1, 0, 0, 0)}, pause.Pause{Scope: "bead:gt-1", Granted: &pause.Used{CostUSD: 2_000_000}}, "", ""},
		{"granted yesterday", definition.Budget{Day: bounds(0, 0, 2, 0)}, pause.Pause{Scope: pause.Day, UpdatedAt: state.At(now.Add(-24 * time.Hour)), Granted: &pause.Used{Attempts: 1}}, "day", "2 were allowed"},
		{"granted, and used up again", definition.Budget{Bead: bounds(1, 0, 0, 0)}, pause.Pause{Scope: "bead:gt-1", Granted: &pause.Used{CostUSD: 1_500_000}}, "bead:gt-1", "$2.50, and $2.50 was allowed"},
	} {
		over := Budgets(&definition.Definition{Budget: c.budget}, rows, []pause.Pause{c.granted}, now)
		if c.over == "" {
			if len(over) > 0 {
				t.Errorf("%s: %+v", c.name, over)
			}
			continue
		}
		got, found := over[pause.Scope(c.over)]
		if !found || len(over) != 1 || !strings.Contains(got.Reason, c.reason) {
			t.Errorf("%s: %+v", c.name, over)
		}
		if want := now.AddDate(0, 0, 1).Add(-12 * time.Hour); c.over == "day" && !got.Until.Equal(want) {
			t.Errorf("%s: it ends at %s, not at midnight", c.name, got.Until)
		}
	}
}
