package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

func newQueueCmd(a *app) *cobra.Command {
	return newGroupCmd("queue", "Show the merge queue, and retry or drop requests",
		newQueueListCmd(a), newQueueShowCmd(a), newQueueDiffCmd(a), newQueueRetryCmd(a), newQueueDropCmd(a))
}

type queueListOptions struct {
	statuses []string
	live     bool
}

// AddFlags registers the flags of queue list.
func (o *queueListOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.statuses, "status", nil, "only requests of this `status`; may be repeated")
	fs.BoolVar(&o.live, "live", false, "only requests that are not finished")
}

func newQueueListCmd(a *app) *cobra.Command {
	var opts queueListOptions
	return withFlags(&opts, &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List merge requests in order",
		Example: "  chipset queue list --live\n  chipset queue list --status merged --json",
		Args:    nargs(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runQueueList(cmd.Context(), opts, a) },
	})
}

func runQueueList(ctx context.Context, opts queueListOptions, a *app) error {
	known := []mergequeue.Status{mergequeue.Pending, mergequeue.Merging, mergequeue.Merged, mergequeue.Conflicted, mergequeue.Superseded, mergequeue.Dropped}
	for _, s := range opts.statuses {
		if !slices.Contains(known, mergequeue.Status(s)) {
			return usagef("--status %q is not one of %s", s, wording.Join(known, ", "))
		}
	}
	r, err := a.openState(ctx)
	if err != nil {
		return err
	}
	all, bad, err := r.Queue.Queue()
	if err != nil {
		return err
	}
	warnAll(a, bad)
	shown := slices.DeleteFunc(slices.Clone(all), func(q mergequeue.Request) bool {
		return opts.live && !q.Status.Live() || len(opts.statuses) > 0 && !slices.Contains(opts.statuses, string(q.Status))
	})
	together := mergequeue.StackedWith(all)
	return showList(a, shown, []string{"SEQ", "ID", "STATUS", "BEAD", "AGENT", "WHY"}, func(q *mergequeue.Request) []string {
		status := string(q.Status)
		if q.Status == mergequeue.Merging && q.Stage != "" {
			status += ": " + string(q.Stage)
		}
		return []string{fmt.Sprint(q.Seq), string(q.ID), status, string(q.BeadID), string(q.AgentID), whyOf(q, together[q.ID])}
	})
}

// whyOf returns the first line of why a request has not landed, or the requests that
// are tested with it.
func whyOf(q *mergequeue.Request, with []state.MergeID) string {
	why := q.Waiting
	if q.IsHeld() {
		why = "waits for you: it changes " + q.Held.Summary()
	}
	if why == "" {
		why = q.Reason
	}
	why = wording.Reason(why)
	if why == "" && len(with) > 0 {
		why = "together with " + wording.Join(with, ", ")
	}
	if q.Failure != "" {
		why = strings.TrimSuffix(string(q.Failure)+": "+why, ": ")
	}
	return why
}

func newQueueShowCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show MR",
		Short:   "Show a merge request",
		Example: "  chipset queue show mr-gt-abc12",
		Args:    nargs(1, 1, "the ID of a merge request"),
		RunE: with(a.openState, func(_ context.Context, r *rig.Rig, args []string) error {
			q, err := r.Queue.Get(args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(q)
			}
			a.printf("%s  %s\n", q.ID, q.Status)
			a.fields(11, [][2]string{
				{"seq", fmt.Sprint(q.Seq)}, {"bead", string(q.BeadID)}, {"assignment", string(q.AssignmentID)}, {"agent", string(q.AgentID)},
				{"branch", q.SourceBranch + " → " + q.TargetBranch}, {"head", q.Head}, {"stage", string(q.Stage)}, {"candidate", q.Candidate},
				{"together", wording.Join(q.Stack, ", ")}, {"stack tip", q.StackTip}, {"merged", q.MergedSHA}, {"failure", string(q.Failure)}, {"waits for", q.Waiting},
				{"submitted", localTime(q.SubmittedAt)}, {"updated", localTime(q.UpdatedAt)},
			})
			a.section("reason", q.Reason)
			return nil
		}),
	}
}

func newQueueRetryCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "retry MR",
		Short: "Retry a merge request that could not land",
		Long: `Put a merge request that could not land back into its place in the queue, or
retry a waiting one at once. This does not count as an attempt at the bead. A
request that has landed, or was dropped or reworked, can't be retried (exit 4).`,
		Example: "  chipset queue retry mr-gt-abc12",
		Args:    nargs(1, 1, "the ID of a merge request"),
		RunE:    a.onRequest((*actor.Actor).RetryRequest),
	}
}

func newQueueDropCmd(a *app) *cobra.Command {
	var opts reasonOptions
	return withFlags(&opts, &cobra.Command{
		Use:     "drop MR --reason TEXT",
		Short:   "Drop a merge request, and block its bead",
		Example: "  chipset queue drop mr-gt-abc12 --reason \"superseded by hand\"",
		Args:    nargs(1, 1, "the ID of a merge request"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(opts.reason) == "" {
				return usagef("--reason is required")
			}
			return a.onRequest(func(me *actor.Actor, ctx context.Context, id state.MergeID) (mergequeue.Request, error) {
				return me.DropRequest(ctx, id, opts.reason)
			})(cmd, args)
		},
	})
}

// protectedDiff is what queue diff --json prints.
type protectedDiff struct {
	MergeID state.MergeID `json:"merge_id"`
	BeadID  state.BeadID  `json:"bead_id"`
	Paths   []string      `json:"paths"`
	Patch   string        `json:"patch"`
}

func newQueueDiffCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "diff MR",
		Short: "Show a change to protected files that waits for your approval",
		Long: `Show what a merge request changes in protected files (merge.protect), as the
refinery last saw it. chipset approve lets exactly that change land.`,
		Example: "  chipset queue diff mr-gt-abc12",
		Args:    nargs(1, 1, "the ID of a merge request"),
		RunE: with(a.openRig, func(ctx context.Context, r *rig.Rig, args []string) error {
			q, err := r.Queue.Get(args[0])
			if err != nil {
				return err
			}
			if q.Held == nil {
				return state.Conflictf("merge request "+string(q.ID), "changes no protected files that the refinery has seen")
			}
			patch, err := r.Git.Diff(ctx, git.Hash(q.Held.Onto), git.Hash(q.Held.Candidate), q.Held.Paths...)
			if err == nil && q.Held.Count > len(q.Held.Paths) {
				a.warnf("%d more files are not shown: git diff %s %s shows all", q.Held.Count-len(q.Held.Paths), q.Held.Onto, q.Held.Candidate)
			}
			return a.did(protectedDiff{q.ID, q.BeadID, q.Held.Paths, string(patch)}, err, "%s", cleanText(string(patch)))
		}),
	}
}

// onRequest makes the RunE of a command that changes the merge request in its argument.
func (a *app) onRequest(act func(*actor.Actor, context.Context, state.MergeID) (mergequeue.Request, error)) func(*cobra.Command, []string) error {
	return with(a.openRigActor, func(ctx context.Context, me *actor.Actor, args []string) error {
		id, err := state.ParseMergeID(args[0])
		if err != nil {
			return err
		}
		q, err := act(me, ctx, id)
		return a.did(q, err, "%s %s\n", q.ID, q.Status)
	})
}
