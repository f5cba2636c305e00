package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
)

type statusOptions struct{ health bool }

// AddFlags registers the flags of status.
func (o *statusOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.health, "health", false, "show the health of the agents, as the witness sees it")
}

func newStatusCmd(a *app) *cobra.Command {
	var opts statusOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "status",
		Short: "Show the rig at a glance: agents, work, queue, incidents",
		Long: `Show which agents run, what is on each hook and for how long, what waits to land
and why, what waits for you, and what is wrong. Nothing is changed.`,
		Example: "  chipset status\n  chipset status --health\n  chipset status --json",
		Args:    nargs(0, 0, ""),
		RunE: with(a.openState, func(ctx context.Context, r *rig.Rig, _ []string) error {
			if opts.health {
				h, err := view.Health(ctx, r)
				return a.show(h, err, func() error { return h.WriteText(a.stdout, a.screen()) })
			}
			s, err := view.GetStatus(ctx, r)
			return a.show(s, err, func() error { return s.WriteText(a.stdout, a.screen()) })
		}),
	})
}

// screen returns how to write screens: truncated and coloured only on a terminal.
func (a *app) screen() screen.Options {
	width, yes := a.terminal()
	if !yes {
		return screen.Options{}
	}
	return screen.Options{Width: width, Colour: a.colour()}
}
