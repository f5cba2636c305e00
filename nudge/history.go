package nudge

import (
	"fmt"

	"github.com/gastown-chipset/chipset/state/audit"
)

// History returns the audit rules of nudges: a nudge is only replaced by a newer one of
// the same sender, and a nudge that is seen stays seen.
func History() []audit.Rule {
	whole := func(_ string, n *Nudge) error { return n.check() }
	sent := func(name string, n *Nudge) error {
		if string(n.From) != name {
			return fmt.Errorf("from %q contradicts the file's name", n.From)
		}
		return n.check()
	}
	return []audit.Rule{
		{Patterns: []string{"nudge/*/seen.json"}, CheckChange: audit.Typed(func(string, *Seen) error { return nil }, seenMoved)},
		{Patterns: []string{"nudge/*/latest.json"}, CheckChange: audit.Typed(whole, moved)},
		{Patterns: []string{"nudge/*/from/*.json"}, CheckChange: audit.Typed(sent, moved)},
	}
}

func moved(before, after *Nudge) error {
	if before != nil && before.From == after.From && !after.Timestamp.After(before.Timestamp.Time) {
		return fmt.Errorf("the nudge of %s at %s replaced the one at %s, which is not older", after.From, after.Timestamp, before.Timestamp)
	}
	return nil
}

func seenMoved(before, after *Seen) error {
	if before == nil {
		return nil
	}
	for from, at := range before.Seen {
		if after.Seen[from].Before(at.Time) {
			return fmt.Errorf("the nudge of %s at %s is no longer marked as seen", from, at)
		}
	}
	return nil
}
