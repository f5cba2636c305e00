package pause

import (
	"errors"

	"github.com/gastown-chipset/chipset/state/audit"
)

// History returns the audit rule of pauses.
func History() audit.Rule {
	return audit.Rule{Patterns: []string{"pauses/*.json"}, CheckChange: audit.Typed(check, CheckChange)}
}

// CheckChange returns an error unless after can be reached from before by legal steps. A
// nil before means that the pause is new.
func CheckChange(before, after *Pause) error {
	if before == nil {
		return nil
	}
	if err := audit.Fixed("scope", before.Scope, after.Scope); err != nil {
		return err
	}
	if after.Since.Equal(before.Since.Time) && after.Tries < before.Tries {
		return errors.New("its number of tries fell")
	}
	return nil
}
