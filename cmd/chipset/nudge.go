package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

func newNudgeCmd(a *app) *cobra.Command {
	cmd := newGroupCmd("nudge", "Nudge agents, and answer nudges",
		newNudgeSendCmd(a), newNudgeShowCmd(a), newNudgeRespondCmd(a), newNudgeWaitCmd(a))
	cmd.Long = "Nudges are hints: only the latest of each sender is kept. Use mail for what must\narrive."
	return cmd
}

type nudgeSendOptions struct {
	kind, message string
	respond       bool
}

// AddFlags registers the flags of nudge send.
func (o *nudgeSendOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.kind, "type", "", "the `type`: "+wording.Join(nudge.Types(), ", ")+"; required")
	fs.StringVarP(&o.message, "message", "m", "", "the message, as `text`")
	fs.BoolVar(&o.respond, "respond", false, "ask for a response")
}

func newNudgeSendCmd(a *app) *cobra.Command {
	var opts nudgeSendOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "send AGENT --type T",
		Short: "Nudge an agent",
		Long: `Nudge an agent. The nudge names the assignment on the agent's hook, so that a
late nudge does not affect the next assignment. Only the mayor and human may
send an abort.`,
		Example: "  chipset nudge send polecat-alpha --type health_check --message \"still there?\" --respond",
		Args:    nargs(1, 1, "one agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runNudgeSend(cmd.Context(), opts, args[0], a)
		},
	})
}

func runNudgeSend(ctx context.Context, opts nudgeSendOptions, name string, a *app) error {
	if !slices.Contains(nudge.Types(), nudge.Type(opts.kind)) {
		problem := usagef("--type %q is not a type of nudge", opts.kind)
		if opts.kind == "" {
			problem = usagef("--type is required")
		}
		return withHint(problem, "one of "+wording.Join(nudge.Types(), ", "))
	}
	me, err := a.openActor(ctx)
	if err != nil {
		return err
	}
	n, to, err := me.SendNudge(ctx, name, nudge.Type(opts.kind), opts.message, opts.respond)
	return a.show(n, err, func() error {
		a.printNudge(&n, to)
		return nil
	})
}

func (a *app) printNudge(n *nudge.Nudge, to state.AgentID) {
	a.printf("%s → %s %s %s\n", n.From, to, n.Type, n.Timestamp)
}

type nudgeShowOptions struct{ unseen bool }

// AddFlags registers the flags of nudge show.
func (o *nudgeShowOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.unseen, "unseen", false, "only nudges that the agent has not processed")
}

func newNudgeShowCmd(a *app) *cobra.Command {
	var opts nudgeShowOptions
	return withFlags(&opts, &cobra.Command{
		Use:     "show [AGENT]",
		Short:   "Show the latest nudge of each sender, newest last",
		Example: "  chipset nudge show polecat-alpha",
		Args:    nargs(0, 1, "one agent"),
		RunE: a.onAgent(func(r *rig.Rig, id state.AgentID) error {
			list := r.Slot(id).All
			if opts.unseen {
				list = r.Slot(id).Unseen
			}
			all, bad, err := list()
			if err != nil {
				return err
			}
			warnAll(a, bad)
			return a.showNudges(all)
		}),
	})
}

func (a *app) showNudges(all []nudge.Nudge) error {
	return showList(a, all, []string{"TIME", "FROM", "TYPE", "", "MESSAGE"}, func(n *nudge.Nudge) []string {
		wants := ""
		if n.RequiresResponse {
			wants = "response wanted"
		}
		return []string{localTime(n.Timestamp), string(n.From), string(n.Type), wants, n.Message}
	})
}

type nudgeRespondOptions struct{ message string }

// AddFlags registers the flags of nudge respond.
func (o *nudgeRespondOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&o.message, "message", "m", "", "the message, as `text`")
}

func newNudgeRespondCmd(a *app) *cobra.Command {
	var opts nudgeRespondOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "respond",
		Short: "Answer the nudges that ask you for a response",
		Long: `Answer every unprocessed nudge that asks you for a response, and mark it as
seen. If there is none, answer again the latest one that asked for a response.`,
		Example: "  chipset nudge respond --message \"tests are running\"",
		Args:    nargs(0, 0, ""),
		RunE: with(a.openActor, func(ctx context.Context, me *actor.Actor, _ []string) error {
			sent, err := me.Respond(ctx, opts.message)
			if a.json {
				var all []nudge.Nudge
				for i := range sent {
					all = append(all, sent[i].Response)
				}
				return joined([]error{err, printList(a, all)})
			}
			for i := range sent {
				a.printNudge(&sent[i].Response, sent[i].To)
			}
			return err
		}),
	})
}

type nudgeWaitOptions struct {
	timeout time.Duration
	seen    bool
}

// AddFlags registers the flags of nudge wait.
func (o *nudgeWaitOptions) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.timeout, "timeout", 0, "give up after this `duration` (default: never)")
	fs.BoolVar(&o.seen, "seen", false, "mark the printed nudges as processed")
}

func newNudgeWaitCmd(a *app) *cobra.Command {
	var opts nudgeWaitOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "wait",
		Short: "Wait for nudges to you, and print them",
		Long: `Wait until there are unprocessed nudges to you, and print them. They are marked
only with --seen. Exit 6 when the time is up.`,
		Example: "  chipset nudge wait --timeout 5m --seen",
		Args:    nargs(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runNudgeWait(cmd.Context(), opts, a) },
	})
}

func runNudgeWait(ctx context.Context, opts nudgeWaitOptions, a *app) error {
	me, err := a.openActor(ctx)
	if err != nil {
		return err
	}
	slot := me.Slot(me.ID)
	var fresh []nudge.Nudge
	err = actor.Wait(ctx, me.Rig, "nudge wait", opts.timeout, func() (bool, error) {
		var err error
		fresh, _, err = slot.Unseen()
		return len(fresh) > 0, err
	}, slot.Dir(), slot.Dir().Join("from"))
	if err != nil {
		return err
	}
	if err = a.showNudges(fresh); err != nil || !opts.seen {
		return err
	}
	var failed []error
	for i := range fresh {
		if err := me.Seen(ctx, &fresh[i]); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
