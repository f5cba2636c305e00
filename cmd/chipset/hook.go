package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

func newHookCmd(a *app) *cobra.Command {
	cmd := newGroupCmd("hook", "Show hooks, and make single transitions",
		newHookShowCmd(a), newHookListCmd(a), newHookSetCmd(a), newHookActivateCmd(a), newHookTouchCmd(a),
		newHookCompleteCmd(a), newHookClearCmd(a))
	cmd.Long = `A hook moves empty → pending → active → completed → empty.

The mayor and human set and clear it; the agent itself activates, touches and
completes it. Every transition is a compare-and-swap: if somebody else was
faster, nothing is changed (exit 4).`
	return cmd
}

func newHookShowCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show [AGENT]",
		Short:   "Show a hook (default: your own)",
		Example: "  chipset hook show polecat-alpha --json",
		Args:    nargs(0, 1, "one agent"),
		RunE: a.onAgent(func(r *rig.Rig, id state.AgentID) error {
			h, err := actor.HookOf(r, id)
			return a.showHook(&h, err)
		}),
	}
}

func (a *app) showHook(h *hook.Hook, err error) error {
	if err != nil || a.json {
		return a.show(h, err, nil)
	}
	line := []string{string(h.AgentID), string(h.Status)}
	if w := h.WorkItem; w != nil {
		line = append(line, string(w.BeadID), string(w.AssignmentID))
		if w.Session != "" {
			line = append(line, string(w.Session))
		}
		line = append(line, w.Title)
	}
	a.printf("%s\n", clean(strings.Join(line, "  ")))
	return nil
}

func newHookListCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List all hooks",
		Example: "  chipset hook list",
		Args:    nargs(0, 0, ""),
		RunE: with(a.openState, func(_ context.Context, r *rig.Rig, _ []string) error {
			all, bad, err := r.Hooks.All()
			if err != nil {
				return err
			}
			agents, _, err := r.Agents.All()
			if err != nil {
				return err
			}
			for i := range agents {
				if _, err := actor.HookOf(r, agents[i].ID); errors.Is(err, state.ErrNotFound) {
					bad = append(bad, err)
				}
			}
			warnAll(a, bad)
			err = showList(a, all, []string{"AGENT", "STATUS", "LAST ACTIVITY", "BEAD", "TITLE"}, func(h *hook.Hook) []string {
				row := []string{string(h.AgentID), string(h.Status), localTime(h.LastActivity), "", ""}
				if w := h.WorkItem; w != nil {
					row[3], row[4] = string(w.BeadID), w.Title
				}
				return row
			})
			if err == nil && len(bad) > 0 { // a hook that can't be read is never taken for none
				err = &state.Corruption{Path: string(hook.Dir), Reason: wording.Count(len(bad), "hook") + " can't be read"}
			}
			return err
		}),
	}
}

func newHookSetCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "set AGENT BEAD",
		Short: "Make only the transition empty → pending (see sling)",
		Long: `Make only the transition empty → pending, under a new assignment. This does not
change the bead, sends no mail and writes no dispatch record, so a running mayor
takes it back. It is for tests and repairs; chipset sling does all steps.`,
		Example: "  chipset hook set polecat-alpha gt-abc12",
		Args:    nargs(2, 2, "an agent and a bead"),
		RunE: with(a.openActor, func(ctx context.Context, me *actor.Actor, args []string) error {
			h, err := me.SetHook(ctx, args[0], args[1])
			return a.showHook(&h, err)
		}),
	}
}

func newHookActivateCmd(a *app) *cobra.Command {
	return newOwnHookCmd(a, "activate", "Make the transition pending → active: start your work",
		nargs(0, 0, ""), func(ctx context.Context, s *actor.Actor, _ string) (hook.Hook, error) { return s.ActivateHook(ctx) })
}

func newHookTouchCmd(a *app) *cobra.Command {
	cmd := newOwnHookCmd(a, "touch [NOTE]", "Report progress on your hook",
		nargs(0, 1, "one note (quote it)"), func(ctx context.Context, s *actor.Actor, note string) (hook.Hook, error) {
			return s.Touch(ctx, note)
		})
	cmd.Long = "Report progress on your hook. The hook is written at most every 15 seconds; a\nnote goes into the event log every time."
	return cmd
}

func newHookCompleteCmd(a *app) *cobra.Command {
	cmd := newOwnHookCmd(a, "complete", "Make only the transition active → completed (see done)",
		nargs(0, 0, ""), func(ctx context.Context, s *actor.Actor, _ string) (hook.Hook, error) { return s.CompleteHook(ctx) })
	cmd.Long = "Make only the transition active → completed. A worker that has finished uses\nchipset done instead: its polecat then commits, submits and completes."
	return cmd
}

// newOwnHookCmd is a transition that only the agent itself makes.
func newOwnHookCmd(a *app, use, short string, args cobra.PositionalArgs,
	step func(ctx context.Context, s *actor.Actor, note string) (hook.Hook, error)) *cobra.Command {
	name, _, _ := strings.Cut(use, " ")
	return &cobra.Command{
		Use: use, Short: short, Args: args,
		Example: "  chipset hook " + name + " --as polecat-alpha",
		RunE: with(a.openActor, func(ctx context.Context, s *actor.Actor, args []string) error {
			h, err := step(ctx, s, strings.Join(args, " "))
			if s.ID == state.Human && errors.Is(err, state.ErrConflict) {
				err = withHint(err, "you speak as human: --as AGENT speaks for another")
			}
			return a.showHook(&h, err)
		}),
	}
}

type hookClearOptions struct {
	assignment string
}

// AddFlags registers the flags of hook clear.
func (o *hookClearOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.assignment, "assignment", "", "clear this `assignment` only")
}

func newHookClearCmd(a *app) *cobra.Command {
	var opts hookClearOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "clear AGENT",
		Short: "Make only the transition to empty (see unsling)",
		Long: `Make only the transition pending, active or completed → empty. This does not
change the bead. It is for tests and repairs; chipset unsling takes a bead back.`,
		Example: "  chipset hook clear polecat-alpha",
		Args:    nargs(1, 1, "one agent"),
		RunE: with(a.openActor, func(ctx context.Context, me *actor.Actor, args []string) error {
			if opts.assignment != "" {
				if _, err := state.ParseAssignmentID(opts.assignment); err != nil {
					return usagef("--assignment: %v", err)
				}
			}
			h, err := me.ClearHook(ctx, args[0], state.AssignmentID(opts.assignment))
			return a.showHook(&h, err)
		}),
	})
}
