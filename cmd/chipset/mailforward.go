package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/chipset/actor"
)

func newMailForwardCmd(a *app) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "forward MESSAGE TO",
		Short: "Forward a message from your mailbox",
		Long: `Forward a message from your mailbox to another agent, with its task (if it asks
for one), its deadline and its callback. The number of hops is limited (three
unless the sender set --ttl), and an agent that already had the message does not
get it again (exit 4). Nothing is marked.`,
		Example: "  chipset mail forward 2026-03-05T10-30-00.000000000Z-mayor polecat-bravo --note \"you know this better\"",
		Args:    nargs(2, 2, "the name of a message and an agent"),
		RunE: with(a.openActor, func(ctx context.Context, me *actor.Actor, args []string) error {
			e, err := me.Own(args[0])
			if err != nil {
				return err
			}
			n, err := me.Forward(ctx, &e, note, args[1])
			return a.sent(err, outcome{Did: "sent", Name: n, To: args[1]})
		}),
	}
	cmd.Flags().StringVar(&note, "note", "", "a `text` to put above the message")
	return cmd
}
