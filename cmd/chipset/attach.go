package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/run"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
)

func newAttachCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "attach AGENT|BEAD",
		Short: "Take over a worker's session in its client's own interface",
		Long: `Continue the session of a polecat's worker yourself, in the client's own
interface, in the same worktree and the same sandbox. The worker ends its turn
first, and rests while you have the session; chipset status says who has it.
When you leave the client, the rig continues with that session. What you report
from it takes effect once you have left. A worker that is a script has no
session to take over.`,
		Example:     "  chipset attach polecat-alpha\n  chipset attach gt-abc12",
		Args:        nargs(1, 1, "an agent or a bead"),
		Annotations: map[string]string{ownFormat: ""},
		RunE: with(a.openRigActor, func(ctx context.Context, me *actor.Actor, args []string) error {
			if err := me.Authority("attach"); err != nil {
				return err
			}
			id, err := workingOn(me, args[0])
			if err != nil {
				return err
			}
			terminal, ok := a.stdin.(*os.File)
			if !ok || !a.interactive() {
				return withHint(usagef("this is not a terminal"), "chipset tail "+args[0]+" -f shows what it does")
			}
			return a.attach(ctx, me, id, terminal)
		}),
	}
}

func (a *app) attach(ctx context.Context, me *actor.Actor, id state.AgentID, terminal *os.File) error {
	say := func(format string, args ...any) { a.tellf(format+"\n", args...) }
	if err := run.Attach(ctx, me.Rig, run.Attachment{Agent: id, Self: a.self, Terminal: terminal, Say: say}); err != nil {
		return err
	}
	if _, alive := me.Alive(id); alive {
		a.printf("%s has its session back, and continues it\n", id)
	} else {
		a.printf("%s has its session back, but is not running: chipset up continues it\n", id)
	}
	return nil
}

// workingOn returns the polecat in an argument, named itself or by the bead that it is working on.
func workingOn(me *actor.Actor, name string) (state.AgentID, error) {
	id, b, err := agentOrBead(me.Rig, name)
	switch {
	case err != nil:
		return "", err
	case id == "" && b.Status != bead.InProgress:
		return "", withHint(state.Conflictf("bead "+name, "is %s, not in progress", b.Status), "chipset tail "+name+" shows what the last one did")
	case id == "":
		return b.Assignee, nil
	}
	who, err := me.Agents.Get(string(id))
	if err != nil || who.Role != agent.Polecat {
		return "", errors.Join(err, state.Conflictf("attach "+string(id), "only polecats have workers"))
	}
	return id, nil
}
