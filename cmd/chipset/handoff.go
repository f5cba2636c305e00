package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/handoff"
)

func newHandoffCmd(a *app) *cobra.Command {
	return newGroupCmd("handoff", "Write and read hand-offs, the notes for the next session",
		newHandoffWriteCmd(a), newHandoffShowCmd(a))
}

type handoffWriteOptions struct {
	summary   string
	remaining []string
}

// AddFlags registers the flags of handoff write.
func (o *handoffWriteOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.summary, "summary", "", "what was done and what the next session must know, as `text`; required")
	fs.StringArrayVar(&o.remaining, "remaining", nil, "a `thing` that is still to be done; may be repeated")
}

func newHandoffWriteCmd(a *app) *cobra.Command {
	var opts handoffWriteOptions
	return withFlags(&opts, &cobra.Command{
		Use:     "write --summary S",
		Short:   "Leave a note for your next session",
		Long:    "Leave a note for your next session, about the work on your hook. It is shown to\nthat session when it begins, and is durable when the command returns.",
		Example: "  chipset handoff write --summary \"parser works, printer does not\" --remaining \"fix indent\" --remaining \"add a test\"",
		Args:    nargs(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runHandoffWrite(cmd.Context(), opts, a) },
	})
}

func runHandoffWrite(ctx context.Context, opts handoffWriteOptions, a *app) error {
	if strings.TrimSpace(opts.summary) == "" {
		return usagef("--summary is required")
	}
	s, err := a.openActor(ctx)
	if err != nil {
		return err
	}
	h, err := s.WriteHandoff(opts.summary, opts.remaining)
	return a.did(h, err, "%s/%s.json\n", s.ID, h.Timestamp.Stamp())
}

type handoffShowOptions struct{ all bool }

// AddFlags registers the flags of handoff show.
func (o *handoffShowOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.all, "all", false, "show all of them, oldest first")
}

func newHandoffShowCmd(a *app) *cobra.Command {
	var opts handoffShowOptions
	return withFlags(&opts, &cobra.Command{
		Use:     "show [AGENT]",
		Short:   "Show the newest hand-off of an agent (default: your own)",
		Example: "  chipset handoff show polecat-alpha --all",
		Args:    nargs(0, 1, "one agent"),
		RunE:    a.onAgent(func(r *rig.Rig, id state.AgentID) error { return runHandoffShow(r, id, opts, a) }),
	})
}

func runHandoffShow(r *rig.Rig, id state.AgentID, opts handoffShowOptions, a *app) error {
	all, bad, err := r.Handoffs.List(id)
	if err != nil {
		return err
	}
	warnAll(a, bad)
	if opts.all && a.json {
		return printList(a, all)
	}
	if len(all) == 0 {
		if opts.all {
			return nil
		}
		return state.Absent(fmt.Sprintf("handoff show: no hand-off of %s", id))
	}
	if !opts.all {
		all = all[len(all)-1:]
	}
	if a.json {
		return a.printJSON(all[0])
	}
	for i := range all {
		if i > 0 {
			a.printf("\n")
		}
		a.showHandoff(&all[i])
	}
	return nil
}

func (a *app) showHandoff(h *handoff.Handoff) {
	about := strings.TrimSpace(fmt.Sprintf("%s %s", h.BeadID, h.AssignmentID))
	a.printf("%s  %s  %s\n", localTime(h.Timestamp), h.AgentID, about)
	if h.Salvage != "" {
		a.printf("unfinished work: %s\n", clean(h.Salvage))
	}
	a.section("summary", h.Summary)
	if len(h.Remaining) > 0 {
		a.section("remaining", "- "+strings.Join(h.Remaining, "\n- "))
	}
}
