package view

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/spend"
)

// TestSpendAddsUp: by whatever it is told, the lines of a report add up to what was used, and every total is the same.
func TestSpendAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []spend.Row
		want := SpendLine{Key: "total"}
		since := "2026-03-0" + fmt.Sprint(rapid.IntRange(1, 9).Draw(t, "since"))
		for range rapid.IntRange(0, 20).Draw(t, "rows") {
			name := func(what string) string { return rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, what) }
			row := spend.Row{Bead: state.BeadID(name("bead")), Convoy: state.ConvoyID(name("convoy")), Agent: state.AgentID(name("agent")),
				Client: name("client"), Model: name("model"), Day: "2026-03-0" + fmt.Sprint(rapid.IntRange(1, 9).Draw(t, "day")),
				Attempts: rapid.IntRange(0, 1).Draw(t, "attempts"), Time: time.Duration(rapid.IntRange(0, 99).Draw(t, "time")),
				Usage: spend.Usage{In: rapid.Int64Range(0, 99).Draw(t, "in"), Cached: 1, Written: 2, Out: 3, CostUSD: spend.USD(rapid.IntRange(0, 99).Draw(t, "cost"))}}
			rows = append(rows, row)
			if row.Day >= since {
				want.add(row, 1)
			}
		}
		for _, by := range SpendKeys() {
			report := ReportSpend(rows, by, since)
			if report.Total != want {
				t.Fatalf("by %s: %+v, not %+v", by, report.Total, want)
			}
			sum := SpendLine{Key: "total"}
			for _, l := range report.Lines {
				sum.add(spend.Row{Attempts: l.Attempts, Time: l.Time, Usage: l.Usage}, 1)
			}
			if sum != want {
				t.Fatalf("the lines by %s are %+v in all, not %+v", by, sum, want)
			}
		}
	})
}
