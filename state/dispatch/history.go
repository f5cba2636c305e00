package dispatch

import (
	"fmt"

	"github.com/gastown-chipset/chipset/state/audit"
)

// History returns the audit rule of dispatch records. A record may be removed when its
// dispatch is finished or undone.
func History() audit.Rule {
	return audit.Rule{Patterns: []string{"dispatch/*.json"}, CheckChange: audit.Typed(check, moved), CheckRemoval: audit.AllowRemoval}
}

func (s Stage) rank() int {
	switch s {
	case Stored:
		return 0
	case Launched:
		return 1
	case Confirmed:
	}
	return 2
}

func moved(before, after *Record) error {
	if before == nil || before.AssignmentID != after.AssignmentID {
		return nil // a later dispatch of the same bead
	}
	if after.Stage.rank() < before.Stage.rank() {
		return fmt.Errorf("stage went back from %s to %s", before.Stage, after.Stage)
	}
	if err := audit.Fixed("agent_id", before.AgentID, after.AgentID, "by", before.By, after.By, "branch", before.Branch, after.Branch,
		"created_at", before.CreatedAt.String(), after.CreatedAt.String()); err != nil {
		return err
	}
	if before.Stage != Confirmed {
		return nil
	}
	return audit.Fixed("mail_name", before.MailName, after.MailName)
}
