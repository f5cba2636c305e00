package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/event"
)

func newNudgeCmd(a *app) *cobra.Command {
	cmd := newGroupCmd("nudge", "Nudges: latest-wins hints that wake an agent",
		newNudgeSendCmd(a), newNudgeShowCmd(a), newNudgeRespondCmd(a), newNudgeWaitCmd(a))
	cmd.Long = "Nudges are hints: the newest of each sender counts, and nothing is lost with one that\nis overwritten. What must arrive is mail."
	return cmd
}

type nudgeSendOptions struct {
	kind, message string
	respond       bool
}

// AddFlags registers the flags of nudge send.
func (o *nudgeSendOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.kind, "type", "", "`"+string(nudge.HealthCheck)+"`, stall_warning, priority_change, abort, sync_request or nudge_response; required")
	fs.StringVarP(&o.message, "message", "m", "", "what to tell, as `text`")
	fs.BoolVar(&o.respond, "respond", false, "a response is wanted")
}

func newNudgeSendCmd(a *app) *cobra.Command {
	var opts nudgeSendOptions
	cmd := &cobra.Command{
		Use:   "send AGENT --type T",
		Short: "Nudge an agent",
		Long: `Nudge an agent. The nudge names the assignment that hangs on the agent's hook, so one
that comes too late can't hit the next. Only the mayor and human may abort.`,
		Example: "  chipset nudge send polecat-alpha --type health_check --message \"still there?\" --respond",
		Args:    nargs(1, 1, "one agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runNudgeSend(cmd.Context(), opts, args[0], a)
		},
	}
	opts.AddFlags(cmd.Flags())
	return cmd
}

func runNudgeSend(ctx context.Context, opts nudgeSendOptions, name string, a *app) error {
	if !slices.Contains(nudge.Types(), nudge.Type(opts.kind)) {
		return withHint(usagef("nudge send: --type %q is no type of nudge", opts.kind), fmt.Sprintf("one of %v", nudge.Types()))
	}
	if _, err := validText("--message", opts.message, nudge.MaxMessage); err != nil {
		return err
	}
	r, from, err := a.openSpeaker(ctx)
	if err != nil {
		return err
	}
	if nudge.Type(opts.kind) == nudge.Abort {
		if _, err := a.authority(r, "nudge abort"); err != nil {
			return err
		}
	}
	to, err := lookup(r, name)
	if err != nil {
		return err
	}
	if who, err := r.Agents.Get(string(to)); err == nil && who.Status == agent.Retired {
		return state.Conflictf("agent "+string(to), "is retired and gets no more nudges")
	}
	n := nudge.Nudge{From: from, Type: nudge.Type(opts.kind), Message: opts.message, RequiresResponse: opts.respond, Ref: hookRef(r, to)}
	return a.sendNudge(ctx, r, to, n)
}

// hookRef is the assignment on an agent's hook. A hook that can't be read has
// none: a nudge is no reason to fail.
func hookRef(r *rig.Rig, id state.AgentID) *nudge.Ref {
	h, err := r.Hooks.Get(string(id))
	if err != nil || h.WorkItem == nil {
		return nil
	}
	return &nudge.Ref{BeadID: h.WorkItem.BeadID, AssignmentID: h.WorkItem.AssignmentID, Session: h.WorkItem.Session}
}

func (a *app) sendNudge(ctx context.Context, r *rig.Rig, to state.AgentID, n nudge.Nudge) error {
	n, err := r.Slot(to).Send(ctx, n, r.Clock.Now())
	if err != nil {
		return err
	}
	r.Emit(nudgeEvent("nudge.sent", n.From, to, &n))
	a.printf("%s → %s %s %s\n", n.From, to, n.Type, n.Timestamp)
	return nil
}

func nudgeEvent(kind string, by, to state.AgentID, n *nudge.Nudge) event.Event {
	e := event.Event{Type: kind, Agent: by, Subject: string(to), From: string(n.From), To: string(to), Text: strings.TrimSpace(string(n.Type) + ": " + n.Message)}
	if n.Ref != nil {
		e.Bead, e.Assignment, e.Session = n.Ref.BeadID, n.Ref.AssignmentID, n.Ref.Session
	}
	return e
}

type nudgeShowOptions struct{ unseen, json bool }

// AddFlags registers the flags of nudge show.
func (o *nudgeShowOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.unseen, "unseen", false, "only what the agent has not processed")
	addJSON(fs, &o.json)
}

func newNudgeShowCmd(a *app) *cobra.Command {
	var opts nudgeShowOptions
	cmd := &cobra.Command{
		Use:     "show [AGENT]",
		Short:   "Show the newest nudge of each sender, newest last",
		Example: "  chipset nudge show polecat-alpha",
		Args:    nargs(0, 1, "one agent"),
		RunE:    func(cmd *cobra.Command, args []string) error { return runNudgeShow(cmd.Context(), opts, args, a) },
	}
	opts.AddFlags(cmd.Flags())
	return cmd
}

func runNudgeShow(ctx context.Context, opts nudgeShowOptions, args []string, a *app) error {
	r, id, err := a.openAgent(ctx, args)
	if err != nil {
		return err
	}
	list := r.Slot(id).All
	if opts.unseen {
		list = r.Slot(id).Unseen
	}
	all, bad, err := list()
	if err != nil {
		return err
	}
	warnAll(a, bad)
	if opts.json {
		return printList(a, all)
	}
	return a.printNudges(all)
}

func (a *app) printNudges(all []nudge.Nudge) error {
	rows := make([][]string, 0, len(all))
	for i := range all {
		wants := ""
		if all[i].RequiresResponse {
			wants = "response wanted"
		}
		rows = append(rows, []string{localTime(all[i].Timestamp), string(all[i].From), string(all[i].Type), wants, all[i].Message})
	}
	return a.table([]string{"TIME", "FROM", "TYPE", "", "MESSAGE"}, rows)
}

type nudgeRespondOptions struct{ message string }

// AddFlags registers the flags of nudge respond.
func (o *nudgeRespondOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&o.message, "message", "m", "", "what to tell, as `text`")
}

func newNudgeRespondCmd(a *app) *cobra.Command {
	var opts nudgeRespondOptions
	cmd := &cobra.Command{
		Use:   "respond",
		Short: "Answer the nudges to oneself that want a response",
		Long: `Answer every nudge to oneself that wants a response and was not processed yet, and mark
it as seen. With none of those, the newest that wanted one is answered again.`,
		Example: "  chipset nudge respond --message \"tests are running\"",
		Args:    nargs(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runNudgeRespond(cmd.Context(), opts, a) },
	}
	opts.AddFlags(cmd.Flags())
	return cmd
}

func runNudgeRespond(ctx context.Context, opts nudgeRespondOptions, a *app) error {
	if _, err := validText("--message", opts.message, nudge.MaxMessage); err != nil {
		return err
	}
	r, id, err := a.openSpeaker(ctx)
	if err != nil {
		return err
	}
	asked, again, err := a.unanswered(r, id)
	if err != nil {
		return err
	}
	for i := range asked {
		n := &asked[i]
		answer := nudge.Nudge{From: id, Type: nudge.Response, Message: opts.message, Ref: n.Ref, InReplyTo: &n.Timestamp}
		if err := a.sendNudge(ctx, r, n.From, answer); err != nil {
			return err
		}
		if again {
			continue
		}
		if err := r.Slot(id).MarkSeen(ctx, *n); err != nil {
			return err
		}
		r.Emit(nudgeEvent("nudge.seen", id, id, n))
	}
	return nil
}

// unanswered is what wants a response, or again the newest that wanted one.
func (a *app) unanswered(r *rig.Rig, id state.AgentID) (asked []nudge.Nudge, again bool, _ error) {
	wanted := func(list []nudge.Nudge) []nudge.Nudge {
		return slices.DeleteFunc(list, func(n nudge.Nudge) bool { return !n.RequiresResponse || n.Type == nudge.Response })
	}
	fresh, bad, err := r.Slot(id).Unseen()
	if err != nil {
		return nil, false, err
	}
	warnAll(a, bad)
	if fresh = wanted(fresh); len(fresh) > 0 {
		return fresh, false, nil
	}
	all, _, err := r.Slot(id).All()
	if err != nil {
		return nil, false, err
	}
	if all = wanted(all); len(all) == 0 {
		return nil, false, fmt.Errorf("nudge respond: no nudge to %s wants a response: %w", id, state.ErrNotFound)
	}
	return all[len(all)-1:], true, nil
}

type nudgeWaitOptions struct {
	timeout    time.Duration
	seen, json bool
}

// AddFlags registers the flags of nudge wait.
func (o *nudgeWaitOptions) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.timeout, "timeout", 0, "give up after this `duration` (default: never)")
	fs.BoolVar(&o.seen, "seen", false, "mark what is printed as processed")
	addJSON(fs, &o.json)
}

func newNudgeWaitCmd(a *app) *cobra.Command {
	var opts nudgeWaitOptions
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Wait for nudges to oneself that were not processed yet, and print them",
		Long: `Wait until there are nudges to oneself that were not processed yet, and print them.
They are marked with --seen only. Exit 6 when the time is up.`,
		Example: "  chipset nudge wait --timeout 5m --seen",
		Args:    nargs(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runNudgeWait(cmd.Context(), opts, a) },
	}
	opts.AddFlags(cmd.Flags())
	return cmd
}

func runNudgeWait(ctx context.Context, opts nudgeWaitOptions, a *app) error {
	if opts.timeout < 0 {
		return usagef("nudge wait: --timeout %s is negative", opts.timeout)
	}
	r, id, err := a.openSpeaker(ctx)
	if err != nil {
		return err
	}
	slot := r.Slot(id)
	var fresh []nudge.Nudge
	err = waitFor(ctx, r, "nudge wait", opts.timeout, func() (bool, error) {
		var err error
		fresh, _, err = slot.Unseen()
		return len(fresh) > 0, err
	}, slot.Dir(), slot.Dir().Join("from"))
	if err != nil {
		return err
	}
	if opts.json {
		err = printList(a, fresh)
	} else {
		err = a.printNudges(fresh)
	}
	if err != nil || !opts.seen {
		return err
	}
	var failed []error
	for i := range fresh {
		if err := slot.MarkSeen(ctx, fresh[i]); err != nil {
			failed = append(failed, err)
			continue
		}
		r.Emit(nudgeEvent("nudge.seen", id, id, &fresh[i]))
	}
	return errors.Join(failed...)
}
