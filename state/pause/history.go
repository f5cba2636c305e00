package pause

import (
	"errors"

	"github.com/gastown-chipset/chipset/state/audit"
)

// History says how pauses move from one snapshot of the tree to the next.
func History() audit.Rule {
	return audit.Rule{Patterns: []string{"pauses/*.json"}, CheckChange: audit.Typed(check, CheckChange)}
}

// CheckChange returns why after can't have been reached from before by legal steps. A nil
// before is one that appears.
func CheckChange(before, after *Pause) error {
	if before == nil {
		return nil
	}
	if err := audit.Fixed("scope", before.Scope, after.Scope); err != nil {
		return err
	}
	if after.Since.Equal(before.Since.Time) && after.Tries < before.Tries {
		return errors.New("it counts fewer tries than before")
	}
	return nil
}
