package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/demo"
)

type demoOptions struct{ keep bool }

// AddFlags puts the options on a command.
func (o *demoOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.keep, "keep", false, "keep the repository for inspection")
}

func newDemoCmd(a *app) *cobra.Command {
	var o demoOptions
	return withFlags(&o, &cobra.Command{
		Use:   "demo",
		Short: "Play a whole rig in a throw-away repository, in seconds",
		Long: `Make a small program with tests in a temporary repository, and let a rig work on
it: beads with dependencies, a merge conflict that is reworked, work that fails
its tests and does not land, a worker that hangs, is noticed and replaced.`,
		Example: "  chipset demo\n  chipset demo --keep",
		Args:    nargs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), a, o)
		},
	})
}

// demoTimeout is far above the few seconds that the demo takes.
const demoTimeout = 90 * time.Second

func runDemo(ctx context.Context, a *app, o demoOptions) error {
	out := a.stdout
	if a.json { // the story is for people
		out = a.stderr
	}
	err := demo.Run(ctx, demo.Options{Out: out, Keep: o.keep, Clock: a.clock, Timeout: demoTimeout})
	if a.json && err == nil {
		err = a.printJSON(outcome{Did: "played"})
	}
	return err
}
