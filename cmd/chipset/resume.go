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
		Short: "Retry paused work now",
		Long: `Resume work in a paused scope, or in every paused scope. A scope is paused when
something that its workers need is missing: client:NAME for one client,
worktree, or rig for all work. The rig retries by itself, at growing intervals;
use this when you have fixed the cause and do not want to wait. One bead goes
first; when it ends well, two more follow, then four, and so on. chipset status
shows what is paused, and why.`,
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
			return a.didAll(all, nil, func(o *outcome) string { return o.Scope + " resumes, one bead first" })
		}),
	}
}
