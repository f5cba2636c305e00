package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/wording"
)

func newWorkCmd(a *app) *cobra.Command {
	return newGroupCmd("work", "Add, list and change beads, the work items",
		newWorkAddCmd(a), newWorkListCmd(a), newWorkShowCmd(a), newWorkEditCmd(a), newWorkCancelCmd(a), newWorkReopenCmd(a), newWorkClaimCmd(a),
		newWorkImportCmd(a), newWorkExportCmd(a))
}

type workListOptions struct {
	statuses, labels []string
	ready, blocked   bool
}

// AddFlags registers the flags of work list.
func (o *workListOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.statuses, "status", nil, "only beads of this `status`; may be repeated")
	fs.StringSliceVar(&o.labels, "label", nil, "only beads with this `label`; if repeated, only beads with all of them")
	fs.BoolVar(&o.ready, "ready", false, "only beads that could be slung now, in that order")
	fs.BoolVar(&o.blocked, "blocked", false, "only beads that wait for a person or for other beads")
}

func newWorkListCmd(a *app) *cobra.Command {
	var opts workListOptions
	return withFlags(&opts, &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List beads, oldest first",
		Example: "  chipset work list --status open,blocked\n  chipset work list --ready --json",
		Args:    nargs(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runWorkList(cmd.Context(), opts, a) },
	})
}

func runWorkList(ctx context.Context, opts workListOptions, a *app) error {
	for _, s := range opts.statuses {
		if !bead.Status(s).Known() {
			return usagef("--status %q is not one of %s", s, wording.Join(bead.Statuses(), ", "))
		}
	}
	r, err := a.openState(ctx)
	if err != nil {
		return err
	}
	filter := actor.BeadFilter{Labels: opts.labels, Ready: opts.ready, Blocked: opts.blocked}
	for _, s := range opts.statuses {
		filter.Statuses = append(filter.Statuses, bead.Status(s))
	}
	chosen, byID, bad, err := actor.ListBeads(r, filter)
	if err != nil {
		return err
	}
	warnAll(a, bad)
	return showList(a, chosen, []string{"ID", "PRIO", "STATUS", "TITLE", "ASSIGNEE", "WAITS FOR"}, func(b *bead.Bead) []string {
		waits := ""
		if !b.Status.Finished() {
			waits = strings.Join(bead.Blockers(b, byID), ", ")
		}
		return []string{string(b.ID), string(b.Priority), string(b.Status), b.Title, string(b.Assignee), waits}
	})
}

func newWorkShowCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show BEAD",
		Short:   "Show a bead",
		Example: "  chipset work show gt-abc12 --json",
		Args:    nargs(1, 1, "the ID of a bead"),
		RunE: with(a.openState, func(_ context.Context, r *rig.Rig, args []string) error {
			b, err := r.Beads.Get(args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(b)
			}
			all, _, err := r.Beads.All()
			if err != nil {
				return err
			}
			a.showBead(&b, bead.Blockers(&b, bead.Index(all)))
			return nil
		}),
	}
}

func (a *app) showBead(b *bead.Bead, blockers []string) {
	a.printf("%s  %s  %s  %s\n", b.ID, b.Priority, b.Status, clean(b.Title))
	failures, empty, closed := "", "", state.Time{}
	if b.Attempts+b.Conflicts+b.Restarts+b.Unended > 0 {
		failures = b.FailureCounts()
	}
	if b.AllowEmpty {
		empty = "yes: no change is a success"
	}
	if b.ClosedAt != nil {
		closed = *b.ClosedAt
	}
	a.fields(13, [][2]string{
		{"reason", b.CloseReason}, {"waits for", strings.Join(blockers, ", ")}, {"assignee", string(b.Assignee)}, {"assignment", string(b.AssignmentID)},
		{"branch", b.Branch}, {"failures", failures}, {"worker", b.Worker}, {"convoy", string(b.ConvoyID)}, {"type", b.Type},
		{"labels", strings.Join(b.Labels, ", ")}, {"allow empty", empty}, {"created", strings.TrimSpace(localTime(b.CreatedAt) + " " + string(b.CreatedBy))},
		{"updated", localTime(b.UpdatedAt)}, {"closed", localTime(closed)},
	})
	a.section("description", b.Description)
	a.section("acceptance", b.Acceptance)
	a.section("rework notes", strings.Join(b.ReworkNotes, "\n---\n"))
}

// section prints text of several lines under a heading.
func (a *app) section(title, text string) {
	text = strings.TrimRight(cleanText(text), "\n")
	if strings.TrimSpace(text) != "" {
		a.printf("\n%s:\n  %s\n", title, strings.ReplaceAll(text, "\n", "\n  "))
	}
}

type reasonOptions struct{ reason string }

// AddFlags registers --reason.
func (o *reasonOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.reason, "reason", "", "why, in a `sentence`")
}

func newWorkCancelCmd(a *app) *cobra.Command {
	return newInterventionCmd(a, "cancel", "cancelled", "Cancel a bead",
		`Cancel a bead. Its worker is stopped and the unfinished work saved; its merge
request will not land. A bead that has landed can't be cancelled (exit 4).`, (*actor.Actor).CancelBead)
}

func newWorkReopenCmd(a *app) *cobra.Command {
	return newInterventionCmd(a, "reopen", "open", "Reopen a bead that is blocked, failed, closed or cancelled",
		`Reopen a bead that is blocked, failed, closed or cancelled. Its failure counts
are reset, and the reason goes into the notes for its next worker.`, (*actor.Actor).ReopenBead)
}

func newInterventionCmd(a *app, name, word, short, long string,
	act func(s *actor.Actor, ctx context.Context, id state.BeadID, reason string) error) *cobra.Command {
	var opts reasonOptions
	return withFlags(&opts, &cobra.Command{
		Use: name + " BEAD", Short: short, Long: long,
		Example: fmt.Sprintf("  chipset work %s gt-abc12 --reason \"the plan changed\"", name),
		Args:    nargs(1, 1, "the ID of a bead"),
		RunE: with(a.openRigActor, func(ctx context.Context, me *actor.Actor, args []string) error {
			id, err := state.ParseBeadID(args[0])
			if err != nil {
				return err
			}
			return a.forEach(args, func(string) (outcome, error) {
				err := act(me, ctx, id, opts.reason)
				return outcome{Did: didIf(err, word), BeadID: id}, err
			})
		}),
	})
}

func newWorkClaimCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "claim [BEAD]",
		Short: "Claim a ready bead",
		Long: `Put a ready bead (default: the next one) on your own empty hook, in the same
steps as the mayor. Your own session in a coding-agent client may claim in every
rig: it gets a worktree, works there, and ends the work with chipset done, fail
or block. Polecats may claim only if dispatch.strategy is auto_claim; otherwise
the mayor assigns work (exit 4).`,
		Example: "  chipset work claim --as polecat-alpha",
		Args:    nargs(0, 1, "the ID of a bead"),
		RunE: with(a.openRigActor, func(ctx context.Context, me *actor.Actor, args []string) error {
			var id state.BeadID
			if len(args) > 0 {
				var err error
				if id, err = state.ParseBeadID(args[0]); err != nil {
					return err
				}
			}
			rec, err := me.Claim(ctx, id)
			if err != nil {
				return err
			}
			const patience = 10 * time.Second
			where, err := me.WhereToWork(ctx, patience)
			if where != "" {
				where += "\n"
			}
			return a.did(rec, err, "%s slung to %s (%s)\n%s", rec.BeadID, rec.AgentID, rec.AssignmentID, where)
		}),
	}
}
