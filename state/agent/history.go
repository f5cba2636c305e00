package agent

import "github.com/gastown-chipset/chipset/state/audit"

// History returns the audit rule of agents: a registered agent is never removed; its role
// and status may change.
func History() audit.Rule {
	return audit.Rule{Patterns: []string{"agents/*.json"}, CheckChange: audit.Typed(check, func(before, after *Agent) error {
		if before == nil {
			return nil
		}
		return audit.Fixed("id", before.ID, after.ID, "created_at", before.CreatedAt.String(), after.CreatedAt.String())
	})}
}
