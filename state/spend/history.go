package spend

import (
	"fmt"
	"slices"

	"github.com/gastown-chipset/chipset/state/audit"
)

// History returns the audit rule of spend records.
func History() audit.Rule {
	return audit.Rule{Patterns: []string{"spend/*.json"}, CheckChange: audit.Typed(check, moved)}
}

// moved returns an error unless after can follow before: recorded time never falls. A cost
// may fall, when a client reports less than the rig's prices gave.
func moved(before, after *Record) error {
	if before == nil {
		return nil
	}
	if err := audit.Fixed("assignment_id", before.AssignmentID, after.AssignmentID, "bead_id", before.BeadID, after.BeadID,
		"agent_id", before.AgentID, after.AgentID); err != nil {
		return err
	}
	for _, was := range before.Parts {
		kept := slices.ContainsFunc(after.Parts, func(p Part) bool {
			return p.Session == was.Session && p.Day == was.Day && p.Time >= was.Time
		})
		if !kept {
			return fmt.Errorf("the time of %s on %s was removed or fell", was.Session, was.Day)
		}
	}
	return nil
}
