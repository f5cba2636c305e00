package policy

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/spend"
)

// used is the record of an attempt that ran for an hour.
func used(b, c, day string, cents int) spend.Record {
	return spend.Record{AssignmentID: state.AssignmentID(b + " " + day), BeadID: state.BeadID(b), ConvoyID: state.ConvoyID(c), Parts: []spend.Part{{Day: day, Time: time.Hour,
		Models: []spend.Model{{Usage: spend.Usage{In: 900, Out: 100, CostUSD: spend.USD(cents * 10_000)}}}}}}
}

// TestBudgets: a budget is used up when all that counts for it reaches a bound, less what the person has granted.
func TestBudgets(t *testing.T) {
	now := state.At(time.Date(2026, 3, 5, 12, 0, 0, 0, time.Local))
	records := []spend.Record{used("gt-1", "", "2026-03-04", 100), used("gt-1", "", "2026-03-05", 150), used("gt-2", "cv-1", "2026-03-05", 50), used("gt-3", "cv-1", "2026-03-04", 60)}
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
		{"money of a plan", definition.Budget{Plan: bounds(1.5, 0, 0, 0)}, pause.Pause{}, "plan:gt-1", "$1.50, and $1.50 was allowed"},
		{"not yet that of a plan", definition.Budget{Plan: bounds(2.5, 0, 0, 0)}, pause.Pause{}, "", ""},
		{"granted, and used up again", definition.Budget{Bead: bounds(1, 0, 0, 0)}, pause.Pause{Scope: "bead:gt-1", Granted: &pause.Used{CostUSD: 1_500_000}}, "bead:gt-1", "$2.50, and $2.50 was allowed"},
	} {
		tally := NewTally(c.budget)
		tally.Follow(state.Changes[spend.Record]{All: true, Values: records})
		over := tally.Stands([]pause.Pause{c.granted}, []state.AssignmentID{"gt-1 2026-03-05"}, now)
		maps.DeleteFunc(over, func(_ pause.Scope, s Standing) bool { return !s.UsedUp })
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

// TestNear: at four fifths of a bound a worker is told; it has to end where money, tokens or time are used up, and may
// finish the last attempt that is allowed.
func TestNear(t *testing.T) {
	for _, c := range []struct {
		name   string
		bounds definition.Bounds
		want   Standing
	}{
		{"money, nearly", definition.Bounds{Money: 1.25}, Standing{Reason: "the budget is nearly used up: $1.00, and $1.25 was allowed"}},
		{"money", definition.Bounds{Money: 1}, Standing{Reason: "the budget is used up: $1.00, and $1.00 was allowed", UsedUp: true, Ends: true}},
		{"time", definition.Bounds{Time: time.Hour}, Standing{Reason: "the budget is used up: workers ran for 1h0m0s, and 1h0m0s was allowed", UsedUp: true, Ends: true}},
		{"time, and nearly tokens", definition.Bounds{Tokens: 1100, Time: time.Hour}, Standing{Reason: "the budget is used up: workers ran for 1h0m0s, and 1h0m0s was allowed", UsedUp: true, Ends: true}},
		{"attempts", definition.Bounds{Attempts: 1}, Standing{Reason: "the budget is used up: 1 attempt, and 1 were allowed", UsedUp: true}},
		{"half of it", definition.Bounds{Money: 2, Tokens: 2000, Time: 2 * time.Hour, Attempts: 2}, Standing{}},
	} {
		tally := NewTally(definition.Budget{Bead: c.bounds})
		tally.Follow(state.Changes[spend.Record]{Values: []spend.Record{used("gt-1", "", "2026-03-05", 100)}})
		got := tally.Stands(nil, nil, state.At(time.Date(2026, 3, 5, 12, 0, 0, 0, time.Local)))[pause.Bead("gt-1")]
		if got.Reason != c.want.Reason || got.UsedUp != c.want.UsedUp || got.Ends != c.want.Ends {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestFollow: whatever changes come one by one, the tally is that of all records.
func TestFollow(t *testing.T) {
	budget := definition.Budget{Bead: definition.Bounds{Money: 3}, Convoy: definition.Bounds{Attempts: 3}, Day: definition.Bounds{Tokens: 4000}}
	at := state.At(time.Date(2026, 3, 5, 12, 0, 0, 0, time.Local))
	rapid.Check(t, func(t *rapid.T) {
		tally, all := NewTally(budget), map[string]spend.Record{}
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			b := fmt.Sprint("gt-", rapid.IntRange(1, 3).Draw(t, "bead"))
			r := used(b, rapid.SampledFrom([]string{"", "cv-1"}).Draw(t, "convoy"), fmt.Sprint("2026-03-0", rapid.IntRange(4, 5).Draw(t, "day")),
				rapid.IntRange(0, 200).Draw(t, "cents"))
			if name := string(r.AssignmentID); rapid.Bool().Draw(t, "gone") {
				delete(all, name)
				tally.Follow(state.Changes[spend.Record]{Removed: []string{name}})
			} else {
				all[name] = r
				tally.Follow(state.Changes[spend.Record]{Values: []spend.Record{r}})
			}
		}
		anew := NewTally(budget)
		for _, r := range all {
			anew.Follow(state.Changes[spend.Record]{Values: []spend.Record{r}})
		}
		if got, want := tally.Stands(nil, nil, at), anew.Stands(nil, nil, at); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\nnot\n%+v", got, want)
		}
	})
}

// BenchmarkTick is a tick of the mayor with ten thousand records, of which one has changed.
func BenchmarkTick(b *testing.B) {
	tally := NewTally(definition.Budget{Bead: definition.Bounds{Money: 3}, Day: definition.Bounds{Money: 1e6}})
	all := make([]spend.Record, 10_000)
	for i := range all {
		all[i] = used(fmt.Sprint("gt-", i), "", "2026-03-05", 100)
	}
	tally.Follow(state.Changes[spend.Record]{All: true, Values: all})
	at := state.At(time.Date(2026, 3, 5, 12, 0, 0, 0, time.Local))
	for b.Loop() {
		tally.Follow(state.Changes[spend.Record]{Values: all[:1]})
		tally.Stands(nil, nil, at)
	}
}
