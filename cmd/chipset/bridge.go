package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli/claude/claudeteam"
	"github.com/gastown-chipset/chipset/chipset/bridge"
	"github.com/gastown-chipset/chipset/chipset/bridge/nanobot"
)

type bridgeOptions struct {
	ours, theirs []string
	watch        bool
	every        time.Duration
}

// AddFlags registers the flags of both bridges.
func (o *bridgeOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.ours, "ours", nil, "an agent of this rig that the other system can write to, as `NAME[=AGENT]`; may be repeated")
	fs.StringSliceVar(&o.theirs, "theirs", nil, "an agent of the other system that this rig can write to, as `NAME[=AGENT]`; may be repeated")
	o.addWatch(fs)
}

func (o *bridgeOptions) addWatch(fs *pflag.FlagSet) {
	fs.BoolVar(&o.watch, "watch", false, "continue until interrupted")
	fs.DurationVar(&o.every, "every", time.Second, "how often to look, with --watch")
}

func newBridgeCmd(a *app) *cobra.Command {
	return newGroupCmd("bridge", "Carry mail to and from the mailboxes of other systems",
		newBridgeToCmd(a, "claude-team DIR", "an agent team of Claude Code",
			`DIR is the team's folder, such as ~/.claude/teams/session-0a1b2c3d, of present
versions (which delete delivered messages) or of older ones (which mark them).`,
			"  chipset bridge claude-team ~/.claude/teams/session-0a1b2c3d --ours mayor --theirs researcher",
			func(dir string) (bridge.System, error) { return claudeteam.OpenTeam(dir) }),
		newBridgeToCmd(a, "nanobot DIR", "mailboxes with a file for each message",
			`DIR holds _registry.json and a folder with inbox/ and processed/ for each agent.`,
			"  chipset bridge nanobot ~/mailboxes --ours mayor --theirs coder=nano-coder --watch",
			func(dir string) (bridge.System, error) { return nanobot.Open(dir) }),
		newBridgeTasksCmd(a))
}

func newBridgeTasksCmd(a *app) *cobra.Command {
	var export bool
	var opts bridgeOptions
	cmd := &cobra.Command{
		Use:   "claude-tasks DIR",
		Short: "Sync a task list of Claude Code with beads",
		Long: `Make a bead for each open task of the list in DIR, such as
~/.claude/tasks/session-0a1b2c3d, and let each task follow its bead: in progress
while somebody is working on it, completed when it has landed. The tag
chipset:bead:ID in a task's description connects it to its bead. With --export,
also make a task for each open bead without one.`,
		Example: "  chipset bridge claude-tasks ~/.claude/tasks/session-0a1b2c3d --export",
		Args:    nargs(1, 1, "a folder"),
		RunE: with(a.openRigActor, func(ctx context.Context, me *actor.Actor, args []string) error {
			list, err := claudeteam.OpenTasks(a.abs(args[0]), me)
			if err != nil {
				return err
			}
			list.Export = export
			return a.carry(ctx, list.Carry, opts)
		}),
	}
	cmd.Flags().BoolVar(&export, "export", false, "also make tasks for open beads")
	opts.addWatch(cmd.Flags())
	return cmd
}

func newBridgeToCmd(a *app, use, what, about, example string, open func(dir string) (bridge.System, error)) *cobra.Command {
	var opts bridgeOptions
	return withFlags(&opts, &cobra.Command{
		Use:   use + " --ours NAME[=AGENT]… --theirs NAME[=AGENT]…",
		Short: "Carry mail to and from " + what,
		Long: "Carry mail to and from " + what + ",\nin both directions, each message once.\n" + about + `

For each of --theirs an agent is registered in the rig: mail to that agent is
written to the other system's inbox, and then marked as read. Messages in the
other system's inbox of one of --ours become mail to that agent, and are then
deleted or marked there as that system does itself. Messages that can't be
parsed are reported and left unchanged.`,
		Example: example,
		Args:    nargs(1, 1, "a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			foreign, err := open(a.abs(args[0]))
			if err != nil {
				return err
			}
			return runBridge(cmd.Context(), foreign, opts, a)
		},
	})
}

func runBridge(ctx context.Context, foreign bridge.System, opts bridgeOptions, a *app) error {
	if len(opts.ours)+len(opts.theirs) == 0 {
		return usagef("no agents: --ours or --theirs is required")
	}
	r, err := a.openRig(ctx)
	if err != nil {
		return err
	}
	b := bridge.Bridge{Rig: r, Foreign: foreign}
	if b.Ours, err = parsePairs(opts.ours); err != nil {
		return err
	}
	if b.Theirs, err = parsePairs(opts.theirs); err != nil {
		return err
	}
	if err := b.Register(ctx); err != nil {
		return err
	}
	return a.carry(ctx, b.Carry, opts)
}

// carry carries once, or with --watch until it is interrupted; a repeated failure is
// then reported once.
func (a *app) carry(ctx context.Context, carry func(context.Context) (bridge.Count, error), opts bridgeOptions) error {
	if opts.every <= 0 {
		return usagef("--every %s is not positive", opts.every)
	}
	told := ""
	for {
		n, err := carry(ctx)
		if n != (bridge.Count{}) || !opts.watch {
			err = errors.Join(err, a.did(n, nil, "%d in, %d out\n", n.In, n.Out))
		}
		if !opts.watch {
			return err
		}
		if err != nil && err.Error() != told && ctx.Err() == nil {
			told = err.Error()
			a.warnf("%v", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(opts.every):
		}
	}
}

func parsePairs(texts []string) ([]bridge.Pair, error) {
	var pairs []bridge.Pair
	for _, text := range texts {
		p, err := bridge.ParsePair(text)
		if err != nil {
			return nil, usagef("%v", fmt.Errorf("%s: %w", text, err))
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}
