package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/state"
)

func newWhyCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "why BEAD",
		Short: "Show what a bead waits for, and everything that happened to it",
		Long: `Say in one sentence what a bead waits for, then list everything that happened to
it in order: events, mail, attempts, hand-offs and merge requests, with its
branches and what was salvaged.`,
		Example: "  chipset why gt-abc12\n  chipset why gt-abc12 --json",
		Args:    nargs(1, 1, "one bead"),
		RunE: with(a.openState, func(ctx context.Context, r *rig.Rig, args []string) error {
			id, err := state.ParseBeadID(args[0])
			if err != nil {
				return usagef("%v", err)
			}
			history, err := view.Why(ctx, r, id)
			return a.show(history, err, func() error { return history.WriteText(a.stdout, a.screen()) })
		}),
	}
}
