package actor

import (
	"context"
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/pause"
)

// Resume lets work of a paused scope start again, one bead first; "" is every scope
// that is paused. It returns those that it resumed. Only the person may. Errors:
// state.ErrConflict, state.ErrNotFound for a scope that is not paused.
func (a *Actor) Resume(ctx context.Context, scope pause.Scope) (resumed []pause.Scope, err error) {
	if a.ID != state.Human {
		return nil, state.Conflictf(strings.TrimSpace("resume "+string(scope)), "only the person may do this, and you speak as %s", a.ID)
	}
	all, err := a.Pauses.InForce()
	if err != nil {
		return nil, err
	}
	for i := range all {
		p := &all[i]
		if scope != "" && p.Scope != scope || p.Status != pause.Paused {
			continue
		}
		if err := a.Pauses.Change(ctx, p.Scope, func(p *pause.Pause) error { return p.Resume(a.Clock.Now()) }); err != nil {
			return resumed, err
		}
		resumed = append(resumed, p.Scope)
	}
	if scope != "" && len(resumed) == 0 {
		return nil, state.Absent(fmt.Sprintf("no pause of %s", scope))
	}
	return resumed, nil
}
