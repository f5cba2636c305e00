package history

import (
	"slices"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/audit"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/handoff"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/spend"
)

// NewChecker returns the checker of a whole state tree. Files that match no rule
// are kept in snapshots and not checked.
func NewChecker() *audit.Checker {
	rules := slices.Concat(
		mail.History(),
		nudge.History(),
		[]audit.Rule{
			hook.History(),
			bead.History(),
			mergequeue.History(),
			retire.History(),
			convoy.History(),
			dispatch.History(),
			incident.History(),
			pause.History(),
			spend.History(),
			handoff.History(),
			agent.History(),
			// The rig ID never changes.
			{Patterns: []string{"rig.json"}, CheckChange: audit.WriteOnce},
			{Patterns: []string{"events/*.jsonl"}, CheckChange: audit.AppendOnly},
		})
	return audit.NewChecker(rules...)
}
