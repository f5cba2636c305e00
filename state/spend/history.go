package spend

import (
	"fmt"
	"slices"

	"github.com/gastown-chipset/chipset/state/audit"
)

// History says how records move from one snapshot of the tree to the next.
func History() audit.Rule {
	return audit.Rule{Patterns: []string{"spend/*.json"}, CheckChange: audit.Typed(check, moved)}
}

// moved returns why a record can't have become what it is: nothing that was used comes back. A cost
// may fall, when a client says less than the rig's prices did.
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
			return fmt.Errorf("the time of %s on %s is gone", was.Session, was.Day)
		}
	}
	return nil
}
