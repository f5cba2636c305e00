package retire

import (
	"fmt"

	"github.com/gastown-chipset/chipset/state/audit"
)

// History returns the audit rule of retire records.
func History() audit.Rule {
	return audit.Rule{Patterns: []string{"retire/*.json"}, CheckChange: audit.Typed(check, moved)}
}

// moved returns an error unless after can follow before: a record is published once, and
// its stage only advances.
func moved(before, after *Record) error {
	if before == nil {
		return nil
	}
	if err := audit.Fixed("assignment_id", before.AssignmentID, after.AssignmentID, "agent_id", before.AgentID, after.AgentID,
		"bead_id", before.BeadID, after.BeadID, "session", before.Session, after.Session, "summary", before.Summary, after.Summary,
		"branch", before.Branch, after.Branch, "created_at", before.CreatedAt.String(), after.CreatedAt.String()); err != nil {
		return err
	}
	switch {
	case before.Stage.Final():
		return fmt.Errorf("changed after it was %s", before.Stage)
	case after.Stage.Rank() < before.Stage.Rank():
		return fmt.Errorf("stage went back from %s to %s", before.Stage, after.Stage)
	case after.Stage == Stale && before.Stage.Rank() >= Recorded.Rank():
		return fmt.Errorf("stale after it was %s", before.Stage)
	case before.Stage == Published && before.Outcome == Done && after.Outcome == Fail:
		return nil // the finished work could not land
	}
	if err := audit.Fixed("outcome", before.Outcome, after.Outcome, "reason", before.Reason, after.Reason,
		"fault", before.Fault, after.Fault); err != nil {
		return err
	}
	if before.Stage == Published {
		return nil
	}
	return audit.Fixed("head", before.Head, after.Head, "base", before.Base, after.Base, "empty", before.Empty, after.Empty)
}
