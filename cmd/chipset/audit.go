package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/history"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

func newAuditCmd(a *app) *cobra.Command {
	return newGroupCmd("audit", "Commit snapshots of the state tree to git, and verify them",
		newAuditCommitCmd(a), newAuditLogCmd(a), newAuditVerifyCmd(a), newAuditTrackCmd(a))
}

func newAuditTrackCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "track",
		Short: "Let your own commits keep the state tree",
		Long: `Remove .chipset/state from git's exclude file, so that git add .chipset/state
and git commit keep it in your branches, as init --track-state does from the
start. A stash, git clean or another branch can then remove the live tree while
a rig runs.`,
		Example: "  chipset audit track",
		Args:    nargs(0, 0, ""),
		RunE: with(a.openRig, func(ctx context.Context, r *rig.Rig, _ []string) error {
			if err := r.TrackState(ctx); err != nil {
				return err
			}
			return a.did(trackedState{true}, nil, "git add .chipset/state && git commit keeps it in your branches\n")
		}),
	}
}

// trackedState is what audit track --json prints.
type trackedState struct {
	Tracked bool `json:"tracked"`
}

type auditCommitOptions struct{ message string }

// AddFlags registers the flags of audit commit.
func (o *auditCommitOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&o.message, "message", "m", "", "the commit's `message` (default: how much changed)")
}

func newAuditCommitCmd(a *app) *cobra.Command {
	var opts auditCommitOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "commit",
		Short: "Commit a snapshot of the state tree, and print its hash",
		Long: `Commit the present state tree to the branch that audit.ref names
(chipset/audit), and print only the commit's hash. Checkout, index and HEAD are
not touched, and the rig may keep running. The commit is durable when the
command returns. If nothing has changed since the last snapshot, the command
says so and prints the hash of that one.

With audit.every in chipset.yaml a running rig does this by itself.`,
		Example: "  chipset audit commit -m \"before the upgrade\"",
		Args:    nargs(0, 0, ""),
		RunE: with(a.openRig, func(ctx context.Context, r *rig.Rig, _ []string) error {
			recorder, err := history.NewRecorder(r)
			if err != nil {
				return err
			}
			out, err := recorder.Commit(ctx, opts.message)
			warnAll(a, out.Skipped)
			switch {
			case errors.Is(err, git.ErrBranchInUse):
				return withHint(exitWith(codeConflict, err), "git switch to another branch there; the audit branch is the rig's own")
			case errors.Is(err, git.ErrMoved):
				return exitWith(codeConflict, err)
			case err != nil:
				return err
			}
			if !out.Made {
				a.tellf("chipset: nothing has changed since the last snapshot\n")
			}
			return a.did(auditCommit{out.Commit, out.Made}, nil, "%s\n", out.Commit)
		}),
	})
}

// auditCommit is what audit commit --json prints.
type auditCommit struct {
	Commit git.Hash `json:"commit"`
	Made   bool     `json:"made"` // false when nothing had changed since the last one
}

type auditLogOptions struct {
	limit int
}

// AddFlags registers the flags of audit log.
func (o *auditLogOptions) AddFlags(fs *pflag.FlagSet) {
	fs.IntVarP(&o.limit, "limit", "n", 0, "only the latest `N`")
}

func newAuditLogCmd(a *app) *cobra.Command {
	var opts auditLogOptions
	return withFlags(&opts, &cobra.Command{
		Use:     "log",
		Short:   "List the snapshots of the state tree, newest first",
		Example: "  chipset audit log -n 10",
		Args:    nargs(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runAuditLog(cmd.Context(), opts, a) },
	})
}

func runAuditLog(ctx context.Context, opts auditLogOptions, a *app) error {
	r, err := a.openRig(ctx)
	if err != nil {
		return err
	}
	entries, err := history.Log(ctx, r, opts.limit)
	if err != nil {
		return noHistory(err)
	}
	return showList(a, entries, []string{"COMMIT", "WHEN", "MESSAGE"}, func(e *history.Entry) []string {
		return []string{e.Commit.Short(), localTime(e.When), e.Subject}
	})
}

// noHistory adds a hint to the error for a rig without a history.
func noHistory(err error) error {
	if errors.Is(err, state.ErrNotFound) {
		return withHint(err, "chipset audit commit makes the first snapshot; audit.every in chipset.yaml makes them by itself")
	}
	return err
}

func newAuditVerifyCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "verify [REF]",
		Short: "Verify that every change in the snapshots was legal",
		Long: `Compare every snapshot with the one before it, over the whole history. A message
may only change from unread to read, and may only move to the archive or, with a
reason, to the quarantine. Every hook, bead, merge request, convoy, attempt,
dispatch, incident and nudge must change by legal transitions; there may be
several between two snapshots. The event log may only grow. Every violation is
reported with its commit and file.

REF is a branch, tag or commit of your own, if you commit .chipset/state
yourself; the default is the branch that audit.ref names. Exit 5 if there are
violations, 3 if there is no history.`,
		Example: "  chipset audit verify\n  chipset audit verify main --json",
		Args:    nargs(0, 1, "at most one ref"),
		RunE: with(a.openRig, func(ctx context.Context, r *rig.Rig, args []string) error {
			ref := ""
			if len(args) == 1 {
				if ref = args[0]; ref == "" {
					return usagef("REF is empty")
				}
			}
			report, err := history.Verify(ctx, r, ref)
			if err != nil {
				return noHistory(err)
			}
			if a.json {
				err = a.printJSON(report)
			} else {
				a.printReport(report)
			}
			if n := len(report.Violations); err == nil && n > 0 {
				err = exitWith(codeCorrupt, withHint(fmt.Errorf("audit: %s in the history of %s", wording.Count(n, "illegal change"), report.Ref),
					"git show COMMIT -- PATH shows a change"))
			}
			return err
		}),
	}
}

func (a *app) printReport(r *history.Report) {
	for _, v := range r.Violations {
		a.printf("%s  %s  %s\n            %s\n", v.Commit.Short(), localTime(v.When), clean(v.Path), clean(v.Reason))
	}
	verdict := "everything moved legally"
	if n := len(r.Violations); n > 0 {
		verdict = wording.Count(n, "illegal change")
	}
	a.printf("%s at %s: %s, %s: %s\n", clean(r.Ref), r.Tip.Short(), wording.Count(r.Commits, "snapshot"), wording.Count(r.Changes, "change"), verdict)
}
