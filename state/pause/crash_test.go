package pause

import (
	"context"
	"testing"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

// A pause that is acknowledged holds after a crash, and what is admitted is known.
func TestCrashPause(t *testing.T) {
	scope := Client("claude")
	step := func(name, shows string, change func(p *Pause) error) model.Step {
		return model.Step{Name: name, Shows: shows, Do: func(ctx context.Context, t *state.Tree) error {
			return NewStore(t, nil).Change(ctx, scope, change)
		}}
	}
	model.Sweep(t, model.Steps("a pause", Dir.Join("client.claude.json"), nil, "",
		step("paused", `"status": "paused"`, func(p *Pause) error { return p.Fail(try("gt-1", 0), overloaded(), rules()) }),
		step("admitted", `"admitted"`, func(p *Pause) error { return p.Admit([]state.BeadID{"gt-1"}, at(5)) }),
		step("ramping", `"status": "ramping"`, func(p *Pause) error { return p.Succeed("gt-1", at(6), rules()) }),
		step("over", `"status": "over"`, func(p *Pause) error { return p.Lift(at(7)) }),
	))
}

func overloaded() fault.Fault { return fault.New(fault.Overloaded, "the service is overloaded") }
