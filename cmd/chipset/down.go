package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/run"
	"github.com/gastown-chipset/chipset/state/wording"
)

type downOptions struct {
	now      bool
	patience time.Duration
}

// AddFlags puts the options on a command.
func (o *downOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.now, "now", false, "stop workers at once, without asking them to finish")
	fs.DurationVar(&o.patience, "wait", 30*time.Second, "how long agents may take to finish before they are signalled")
}

func newDownCmd(a *app) *cobra.Command {
	var o downOptions
	return withFlags(&o, &cobra.Command{
		Use:   "down",
		Short: "Stop the rig: ask the agents to finish, then end them",
		Long: `Ask every running agent by mail (a shutdown_request, which names its session) to
finish its current work and to take no new work. Agents that still run after
--wait are ended with TERM, then KILL. With --now they are not asked first. An
interrupted session is kept, and continues at the next start.`,
		Example: "  chipset down\n  chipset down --wait 10m\n  chipset down --now",
		Args:    nargs(0, 0, ""),
		RunE: with(a.openActor, func(ctx context.Context, me *actor.Actor, _ []string) error {
			if err := me.Authority("down"); err != nil {
				return err
			}
			n, err := run.Down(ctx, me.Rig, run.DownOptions{Now: o.now, Patience: o.patience, Insist: insist, By: me.ID,
				Say: func(format string, args ...any) { a.note(format+"\n", args...) }})
			if err != nil {
				return err
			}
			return a.didAll([]outcome{{Did: "ended", Count: n}}, nil, func(*outcome) string {
				if n == 0 {
					return "nothing is running"
				}
				return wording.Count(n, "agent") + " ended"
			})
		}),
	})
}

// insist is how long a signalled process may take to end.
const insist = 15 * time.Second
