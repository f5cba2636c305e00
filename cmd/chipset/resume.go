package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/state/pause"
)

func newResumeCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "resume [SCOPE]",
		Short: "Try what is paused now, not later",
		Long: `Start work again of a scope that is paused, or of every one. A scope is paused
when something that workers need is not there: client:NAME for one client,
worktree, or rig for all work. The rig tries again by itself, later and later;
this is for who has mended the cause and will not wait. One bead goes first, and
when it ends well two, four and so on. status names what is paused, and why.`,
		Example: "  chipset resume\n  chipset resume client:claude",
		Args:    nargs(0, 1, "at most one SCOPE"),
		RunE: with(a.openActor, func(ctx context.Context, me *actor.Actor, args []string) error {
			scope := pause.Scope("")
			if len(args) > 0 {
				scope = pause.Scope(args[0])
			}
			resumed, err := me.Resume(ctx, scope)
			if err != nil {
				return err
			}
			if len(resumed) == 0 {
				a.note("nothing is paused\n")
			}
			var all []outcome
			for _, s := range resumed {
				all = append(all, outcome{Did: "resumed", Scope: string(s)})
			}
			return a.didAll(all, nil, func(o *outcome) string { return o.Scope + " goes on, one bead first" })
		}),
	}
}
