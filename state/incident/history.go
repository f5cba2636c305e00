package incident

import (
	"errors"
	"fmt"

	"github.com/gastown-chipset/chipset/state/audit"
)

// History says how incidents move from one snapshot of the tree to the next.
func History() audit.Rule {
	return audit.Rule{Patterns: []string{"incidents/*.json"}, CheckChange: audit.Typed(check, CheckChange)}
}

// CheckChange returns why after can't have been reached from before by legal steps. A nil
// before is one that appears.
func CheckChange(before, after *Incident) error {
	if before == nil {
		return nil
	}
	if err := audit.Fixed("id", before.ID, after.ID, "agent_id", before.AgentID, after.AgentID, "kind", before.Kind, after.Kind,
		"assignment_id", before.AssignmentID, after.AssignmentID, "bead_id", before.BeadID, after.BeadID,
		"opened_at", before.OpenedAt.String(), after.OpenedAt.String()); err != nil {
		return err
	}
	switch {
	case after.Severity.Rank() < before.Severity.Rank():
		return fmt.Errorf("severity fell from %s to %s", before.Severity, after.Severity)
	case before.ResolvedAt != nil && after.ResolvedAt == nil:
		return errors.New("it was resolved, and is open again")
	case before.ResolvedAt != nil && before.Severity != after.Severity:
		return errors.New("its severity changed after it was resolved")
	case after.Nudges < before.Nudges || after.Answers < before.Answers:
		return errors.New("it counts fewer nudges or answers than before")
	}
	return nil
}
