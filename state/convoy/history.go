package convoy

import (
	"errors"
	"slices"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/audit"
	"github.com/gastown-chipset/chipset/state/bead"
)

// History says how convoys move from one snapshot of the tree to the next. One
// may be taken back while its beads join it, before any of them names it for good.
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
		return errors.New("it was complete, and is no longer")
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
