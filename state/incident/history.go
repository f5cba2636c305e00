package incident

import (
	"errors"
	"fmt"

	"github.com/gastown-chipset/chipset/state/audit"
)

// History returns the audit rule of incidents.
func History() audit.Rule {
	return audit.Rule{Patterns: []string{"incidents/*.json"}, CheckChange: audit.Typed(check, CheckChange)}
}

// CheckChange returns an error unless after can be reached from before by legal steps. A
// nil before means that the incident is new.
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
		return errors.New("it is open again after it was resolved")
	case before.ResolvedAt != nil && before.Severity != after.Severity:
		return errors.New("its severity changed after it was resolved")
	case after.Nudges < before.Nudges || after.Answers < before.Answers:
		return errors.New("its number of nudges or answers fell")
	}
	return nil
}
