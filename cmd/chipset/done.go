package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/state/retire"
)

type doneOptions struct{ summary, reason string }

// AddFlags registers the flags of done; fail and block want a reason.
func (o *doneOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.summary, "summary", "", "what was done, as `text`")
}

func (o *doneOptions) addReason(fs *pflag.FlagSet) {
	o.AddFlags(fs)
	fs.StringVar(&o.reason, "reason", "", "why, as `text`; required")
}

func newDoneCmd(a *app) *cobra.Command {
	var opts doneOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "done",
		Short: "Report your assignment as finished (workers)",
		Long: `Report your own assignment as finished. This can't be undone: the polecat ends
the worker, commits what is left, and submits the branch to the merge queue. The
first report counts; the same report again is ignored, and a different one is
refused (exit 4).`,
		Example: "  chipset done --summary \"Added the README section\"",
		Args:    nargs(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runVerdict(cmd.Context(), retire.Done, opts, a) },
	})
}

func newFailCmd(a *app) *cobra.Command {
	return newReasonedCmd(a, "fail", retire.Fail, "Report this attempt as failed (workers)",
		`Report that you can't finish your own assignment. The unfinished work is saved,
and the mayor decides whether to try the bead again, with the reason as a note.`,
		"  chipset fail --reason \"the API this builds on does not exist\"")
}

func newBlockCmd(a *app) *cobra.Command {
	return newReasonedCmd(a, "block", retire.Block, "Report that a person must decide (workers)",
		`Report that a person must decide something before your own assignment can be
finished. The unfinished work is saved, and the bead waits until the person
reopens it.`,
		"  chipset block --reason \"which of the two licences applies?\"")
}

func newReasonedCmd(a *app, name string, outcome retire.Outcome, short, long, example string) *cobra.Command {
	var opts doneOptions
	cmd := &cobra.Command{
		Use: name + " --reason TEXT", Short: short, Long: long, Example: example,
		Args: nargs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(opts.reason) == "" {
				return usagef("--reason is required")
			}
			return runVerdict(cmd.Context(), outcome, opts, a)
		},
	}
	opts.addReason(cmd.Flags())
	return cmd
}

func runVerdict(ctx context.Context, outcome retire.Outcome, opts doneOptions, a *app) error {
	s, err := a.openActor(ctx)
	if err != nil {
		return err
	}
	rec, err := s.Verdict(ctx, outcome, opts.summary, opts.reason)
	if me, unknown := s.Agents.Get(string(s.ID)); err == nil && unknown == nil && me.IsSession() && !s.Runs(s.ID) {
		a.warnf("no process runs the rig: chipset up continues with it")
	}
	return a.did(rec, err, "%s %s (%s)\n", rec.BeadID, rec.Outcome, rec.AssignmentID)
}
