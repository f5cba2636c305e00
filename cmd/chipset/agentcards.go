package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

func newAgentsCmd(a *app) *cobra.Command {
	cmd := newGroupCmd("agents", "List the agents, and change their cards",
		newAgentsListCmd(a), newAgentsShowCmd(a), newAgentsSetCmd(a), newAgentsRemoveCmd(a))
	listed := newAgentsListCmd(a)
	group := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return group(cmd, args)
		}
		return listed.RunE(cmd, args)
	}
	return cmd
}

func newAgentsListCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the agents with their cards",
		Example: "  chipset agents list --json",
		Args:    nargs(0, 0, ""),
		RunE: with(a.openState, func(_ context.Context, r *rig.Rig, _ []string) error {
			all, bad, err := r.Agents.All()
			if err != nil {
				return err
			}
			warnAll(a, bad)
			header := []string{"ID", "ROLE", "STATUS", "PROCESS", "TASKS", "CAPABILITIES", "DESCRIPTION"}
			return showList(a, all, header, func(c *agent.Agent) []string { return cardRow(r, c) })
		}),
	}
}

func cardRow(r *rig.Rig, c *agent.Agent) []string {
	return []string{string(c.ID), string(c.Role), string(c.Status), liveness(r, c), taskCount(r, c), strings.Join(c.Capabilities, ", "), c.Description}
}

// liveness returns the process of an agent, as text.
func liveness(r *rig.Rig, c *agent.Agent) string {
	if stamp, alive := r.Alive(c.ID); alive {
		return fmt.Sprintf("pid %d", stamp.PID)
	}
	return "–"
}

// taskCount returns how many tasks an agent is working on, and how many it may.
func taskCount(r *rig.Rig, c *agent.Agent) string {
	tasks, err := mail.TasksFor(r.Mailbox(c.ID), r.Mailbox)
	if err != nil {
		return "?"
	}
	busy := 0
	for i := range tasks {
		if tasks[i].State == mail.TaskAccepted || tasks[i].State == mail.TaskWorking {
			busy++
		}
	}
	if c.MaxTasks > 0 {
		return fmt.Sprintf("%d/%d", busy, c.MaxTasks)
	}
	return fmt.Sprint(busy)
}

func newAgentsShowCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show [AGENT]",
		Short:   "Show an agent's card (default: your own)",
		Example: "  chipset agents show polecat-alpha",
		Args:    nargs(0, 1, "one agent"),
		RunE: a.onAgent(func(r *rig.Rig, id state.AgentID) error {
			c, err := r.Agents.Get(string(id))
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(c)
			}
			a.printf("%s  %s  %s\n", c.ID, c.Role, c.Status)
			a.fields(13, [][2]string{
				{"description", c.Description}, {"capabilities", strings.Join(c.Capabilities, ", ")}, {"allow from", allowed(&c)},
				{"tasks", taskCount(r, &c)}, {"process", liveness(r, &c)}, {"session", string(c.Session)}, {"since", localTime(c.CreatedAt)},
			})
			return nil
		}),
	}
}

func allowed(c *agent.Agent) string {
	if len(c.AllowFrom) == 0 {
		return "everybody"
	}
	return strings.Join(c.AllowFrom, ", ") + " (and human, mayor, witness, refinery)"
}

type agentsSetOptions struct {
	description             string
	capabilities, allowFrom []string
	maxTasks                int
}

// AddFlags registers the flags of agents set.
func (o *agentsSetOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.description, "description", "", "one `sentence` that says what it is good at")
	fs.StringSliceVar(&o.capabilities, "capability", nil, "a `word` for what it can do; may be repeated")
	fs.StringSliceVar(&o.allowFrom, "allow-from", nil, "an `agent` that may write to it, or *; may be repeated")
	fs.IntVar(&o.maxTasks, "max-concurrent-tasks", 0, "how many tasks, `N`, it may work on at a time; 0 is no limit")
}

func newAgentsSetCmd(a *app) *cobra.Command {
	var opts agentsSetOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "set AGENT",
		Short: "Change the given fields of an agent's card",
		Long: `Change the given fields of your own card; the mayor and human may change any
agent's. --capability and --allow-from replace the whole list; "" clears it. The
person, mayor, witness and refinery can always write to an agent, and so can an
agent that answers one of its messages.`,
		Example: "  chipset agents set polecat-alpha --description \"knows the parser\" --capability go --allow-from polecat-bravo --max-concurrent-tasks 2",
		Args:    nargs(1, 1, "one agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			me, err := a.openActor(cmd.Context())
			if err != nil {
				return err
			}
			id, err := actor.Lookup(me.Rig, args[0])
			if err != nil {
				return err
			}
			c := actor.Card{}
			given := cmd.Flags().Changed
			if given("description") {
				c.Description = &opts.description
			}
			if given("capability") {
				c.Capabilities = &opts.capabilities
			}
			if given("allow-from") {
				c.AllowFrom = &opts.allowFrom
			}
			if given("max-concurrent-tasks") {
				c.MaxTasks = &opts.maxTasks
			}
			if c == (actor.Card{}) {
				return withHint(usagef("no change was given"), "chipset help agents set lists the fields")
			}
			card, err := me.SetCard(cmd.Context(), id, c)
			return a.did(card, err, "%s set\n", id)
		},
	})
}

func newAgentsRemoveCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "remove AGENT",
		Short: "Remove the agent of a session or of another system from the rig",
		Long: `Remove an agent that chipset.yaml does not name: that of a session, a subagent,
or one that stands for an agent of another system. This is refused while the
agent holds something (a process, a bead, unread mail, an unfinished task), and
the error says what. The agent's records and mail stay; a session of the same
name brings it back. Only the mayor and human may remove one.`,
		Example: "  chipset agents remove claude-2",
		Args:    nargs(1, 1, "one agent"),
		RunE: with(a.openActor, func(ctx context.Context, me *actor.Actor, args []string) error {
			id, err := actor.Lookup(me.Rig, args[0])
			if err != nil {
				return err
			}
			if err := me.Remove(ctx, id); err != nil {
				return err
			}
			return a.did([]outcome{{Did: "removed", AgentID: id}}, nil, "%s removed\n", id)
		}),
	}
}
