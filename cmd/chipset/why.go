package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/state"
)

func newWhyCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why BEAD",
		Short: "What one bead waits for, and everything that happened to it",
		Long: `Say in one sentence what a bead waits for, then list what happened to it in order:
every event, mail, attempt, hand-off and merge request, with its branches and what
was salvaged.`,
		Example: "  chipset why gt-abc12\n  chipset why gt-abc12 --json",
		Args:    nargs(1, 1, "one bead"),
		RunE:    func(cmd *cobra.Command, args []string) error { return runWhy(cmd.Context(), args[0], a) },
	}
	return cmd
}

func runWhy(ctx context.Context, name string, a *app) error {
	id, err := state.ParseBeadID(name)
	if err != nil {
		return usagef("why: %v", err)
	}
	r, err := a.openState(ctx)
	if err != nil {
		return err
	}
	history, err := view.Why(ctx, r, id)
	return a.show(history, err, func() error { return history.WriteText(a.stdout, a.screen()) })
}
