package handoff

import (
	"errors"
	"path"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/audit"
)

// History returns the audit rule of hand-offs: they never change. A hand-off may only be
// renamed to the name that matches its timestamp.
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
		err = errors.New("it was removed")
	}
	return err
}
