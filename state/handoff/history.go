package handoff

import (
	"errors"
	"path"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/audit"
)

// History says how hand-offs move from one snapshot of the tree to the next: they
// never change. One whose name was not its time may get that name.
func History() audit.Rule {
	whole := func(string, *Handoff) error { return nil }
	changed := func(before, _ *Handoff) error {
		if before == nil {
			return nil
		}
		return errors.New("the hand-off was changed")
	}
	return audit.Rule{Patterns: []string{"handoff/*/*.json"}, CheckChange: audit.Typed(whole, changed), CheckRemoval: renamed}
}

func renamed(p string, before []byte, later audit.Snapshot) error {
	var h Handoff
	if err := state.Decode(p, before, &h); err != nil {
		return err
	}
	f, err := later(path.Join(path.Dir(p), h.Timestamp.Stamp()+".json"))
	if err == nil && string(f.Data) != string(before) {
		err = errors.New("it is gone")
	}
	return err
}
