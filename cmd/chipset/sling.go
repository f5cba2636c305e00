package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/state"
)

func newSlingCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "sling BEAD [AGENT]",
		Short: "Put a bead on a polecat's hook by hand",
		Long: `Dispatch one ready bead in the same steps as the mayor: dispatch record, bead
hooked, hook pending, assignment mail. Without AGENT a free polecat is chosen,
preferably one that is running. AGENT may be your own session in a coding-agent
client, which then works in a worktree of its own. A bead that is already slung,
or waits for others, is left unchanged (exit 4).`,
		Example: "  chipset sling gt-abc12\n  chipset sling gt-abc12 polecat-bravo",
		Args:    nargs(1, 2, "a bead and optionally an agent"),
		RunE: with(a.openRigActor, func(ctx context.Context, me *actor.Actor, args []string) error {
			id, err := state.ParseBeadID(args[0])
			if err != nil {
				return err
			}
			var to state.AgentID
			if len(args) == 2 {
				if to, err = state.ParseAgentID(args[1]); err != nil {
					return err
				}
			} else if to, err = me.FreePolecat(); err != nil {
				return err
			}
			rec, err := me.Sling(ctx, id, to)
			return a.did(rec, err, "%s slung to %s (%s)\n", rec.BeadID, rec.AgentID, rec.AssignmentID)
		}),
	}
}

func newUnslingCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "unsling BEAD",
		Short: "Take a slung bead back",
		Long: `Make a slung bead open again. Its hook is cleared, and its polecat stops the
worker and saves the unfinished work on a salvage ref.`,
		Example: "  chipset unsling gt-abc12",
		Args:    nargs(1, 1, "one bead"),
		RunE: with(a.openActor, func(ctx context.Context, me *actor.Actor, args []string) error {
			id, err := state.ParseBeadID(args[0])
			if err != nil {
				return err
			}
			b, err := me.Unsling(ctx, id)
			return a.did(b, err, "%s is open again\n", id)
		}),
	}
}
