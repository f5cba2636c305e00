package convoy

import (
	"errors"
	"slices"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/audit"
	"github.com/gastown-chipset/chipset/state/bead"
)

// History returns the audit rule of convoys. A convoy may be removed while no bead names
// it, because its creation may fail.
func History() audit.Rule {
	return audit.Rule{Patterns: []string{"convoys/*.json"}, CheckChange: audit.Typed(check, moved), CheckRemoval: takenBack}
}

func moved(before, after *Convoy) error {
	if before == nil {
		return nil
	}
	if err := audit.Fixed("id", before.ID, after.ID, "name", before.Name, after.Name,
		"created_at", before.CreatedAt.String(), after.CreatedAt.String()); err != nil {
		return err
	}
	for _, id := range before.BeadIDs {
		if !slices.Contains(after.BeadIDs, id) {
			return errors.New("bead " + string(id) + " is no longer in it")
		}
	}
	if before.CompletedAt != nil && after.CompletedAt == nil {
		return errors.New("it is no longer complete")
	}
	return nil
}

func takenBack(p string, before []byte, later audit.Snapshot) error {
	var c Convoy
	if err := state.Decode(p, before, &c); err != nil {
		return err
	}
	return bead.CheckUnreferenced(c.BeadIDs, later, func(b *bead.Bead) bool { return b.ConvoyID == c.ID })
}
