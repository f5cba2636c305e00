package agent

import "github.com/gastown-chipset/chipset/state/audit"

// History says how identities move from one snapshot of the tree to the next: an
// agent that was registered stays so; what it is for and how it stands may change.
func History() audit.Rule {
	return audit.Rule{Patterns: []string{"agents/*.json"}, CheckChange: audit.Typed(check, func(before, after *Agent) error {
		if before == nil {
			return nil
		}
		return audit.Fixed("id", before.ID, after.ID, "created_at", before.CreatedAt.String(), after.CreatedAt.String())
	})}
}
