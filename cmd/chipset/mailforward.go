package main

import (
	"github.com/spf13/cobra"
)

func newMailForwardCmd(a *app) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "forward NAME TO",
		Short: "Forward a message from your mailbox",
		Long: `Forward a message from your mailbox to another agent, with its task if it asks for
one, its deadline and its callback. Each hop is counted down (three where the sender did not
say), and who has had the message does not get it again (exit 4). Nothing is marked.`,
		Example: "  chipset mail forward 2026-03-05T10-30-00.000000000Z-mayor polecat-bravo --note \"you know this better\"",
		Args:    nargs(2, 2, "the name of a message and an agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			me, err := a.openActor(cmd.Context(), a.openState)
			if err != nil {
				return err
			}
			e, err := me.Own(args[0])
			if err != nil {
				return err
			}
			n, err := me.Forward(cmd.Context(), &e, note, args[1])
			if err == nil {
				a.printf("%s\n", n)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "what is said above it, as `text`")
	return cmd
}
