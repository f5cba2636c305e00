package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/chipset/run"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

func newMayorCmd(a *app) *cobra.Command {
	return newRoleCmd(a, agent.Mayor, "mayor", "Run the mayor in this terminal",
		"It hands ready beads to polecats, reworks what failed, and asks a person when it\nmust.", "  chipset mayor")
}

func newRefineryCmd(a *app) *cobra.Command {
	return newRoleCmd(a, agent.Refinery, "refinery", "Run the refinery in this terminal",
		"It lands merge requests on the target branch: one by one, rebased and tested.", "  chipset refinery")
}

func newWitnessCmd(a *app) *cobra.Command {
	return newRoleCmd(a, agent.Witness, "witness", "Run the witness in this terminal",
		"It detects agents and work that make no progress, nudges, and escalates.", "  chipset witness")
}

func newPolecatCmd(a *app) *cobra.Command {
	return newRoleCmd(a, agent.Polecat, "polecat AGENT", "Run one polecat in this terminal",
		"It runs a worker in a worktree on what is on its hook, and submits the result.\nFor the agent of your own session it makes the worktree, and submits what the\nsession reports.", "  chipset polecat polecat-alpha")
}

func newRoleCmd(a *app, role agent.Role, use, short, what, example string) *cobra.Command {
	o := upOptions{}
	args := nargs(0, 0, "")
	if role == agent.Polecat {
		args = nargs(1, 1, "one polecat")
	}
	cmd := &cobra.Command{
		Use: use, Short: short,
		Long: what + `

Before it starts, it makes the same checks as up (chipset validate --live); a
failed check is listed by chipset inbox. If another process runs the same agent,
its pid is printed (exit 4). After Ctrl-C it takes nothing new, and finishes its
present work. A second Ctrl-C, or TERM, ends it within seconds; the next start
continues where it stopped.`,
		Example: example,
		Args:    args,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRole(cmd.Context(), a, role, args, o)
		},
	}
	o.addCommon(cmd.Flags())
	return cmd
}

func runRole(ctx context.Context, a *app, role agent.Role, args []string, o upOptions) error {
	say, err := a.linePrinter(o.logFormat)
	if err != nil {
		return err
	}
	r, err := a.openRig(ctx)
	if err != nil {
		return err
	}
	if err := r.Prepare(ctx, r.Def); err != nil {
		return err
	}
	a.tellCopied(r)
	var id state.AgentID
	switch role {
	case agent.Mayor:
		id = r.Mayor()
	case agent.Refinery:
		id = r.Refinery()
	case agent.Witness:
		id = r.Witness()
	default:
		if id, err = state.ParseAgentID(args[0]); err != nil {
			return err
		}
		known, err := r.Agents.Get(string(id))
		if err != nil {
			return err
		}
		if known.Role != role && !known.IsSession() {
			return state.Conflictf("agent "+string(id), "is a %s, not a %s", known.Role, role)
		}
	}
	began := r.Clock.Now()
	err = a.runAgents(ctx, r, say, run.UpOptions{Timeout: o.timeout, Agents: []state.AgentID{id}, Preflight: role != agent.Witness})
	if ctx.Err() != nil || errors.Is(err, run.ErrDrained) {
		a.summarize(ctx, r, say, began)
	}
	return err
}
