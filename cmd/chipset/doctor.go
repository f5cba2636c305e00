package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/doctor"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/state/wording"
)

type doctorOptions struct{ fix, rules bool }

// AddFlags registers the flags of doctor.
func (o *doctorOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.fix, "fix", false, "repair what can be repaired without loss")
	fs.BoolVar(&o.rules, "rules", false, "list the rules, and check nothing")
}

func newDoctorCmd(a *app) *cobra.Command {
	var opts doctorOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "doctor",
		Short: "Check the state tree, and repair it",
		Long: `Check that every file of the state tree is intact and in its place, and that
hooks, beads, dispatches, attempts, merge requests, mail and git agree with each
other. In a running rig, a contradiction that lasts only a moment is not
reported. The exit code is 5 if there are errors, and 0 if there are only
warnings and notes.

--fix moves unreadable files to state/quarantine, finishes interrupted
dispatches, attempts and merges in the same way as the roles do, rebuilds hooks
from the beads, repairs git's files in worktrees, saves what they hold, and
removes leftovers. It never deletes a file that it does not recognise. It can be
interrupted and repeated at any time, also while the rig runs.

--rules lists the rules, and what --fix does about each.`,
		Example: "  chipset doctor\n  chipset doctor --fix\n  chipset doctor --json\n  chipset doctor --rules",
		Args:    nargs(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), opts, a) },
	})
}

func runDoctor(ctx context.Context, opts doctorOptions, a *app) error {
	if opts.rules {
		return printRules(opts, a)
	}
	r, err := a.openState(ctx)
	if err != nil {
		return err
	}
	found, err := doctor.Doctor(ctx, r, opts.fix)
	var printErr error
	if a.json {
		printErr = printList(a, found)
	} else {
		printErr = writeFindings(a.stdout, found, err == nil, a.screen())
	}
	if err != nil || printErr != nil {
		return cmp.Or(err, printErr)
	}
	if n := doctor.Standing(found); n > 0 {
		return exitWith(codeCorrupt, withHint(fmt.Errorf("doctor: %s", wording.Count(n, "error")), doctorHint(opts, found)))
	}
	return nil
}

// doctorHint says what to do next.
func doctorHint(opts doctorOptions, found []doctor.Finding) string {
	if opts.fix || !doctor.Repairable(found) {
		return "chipset can't repair what is left: do what the lines with → say"
	}
	return "chipset doctor --fix repairs what can be repaired without loss"
}

// printRules lists the rules; it needs no rig.
func printRules(opts doctorOptions, a *app) error {
	if opts.fix {
		return usagef("--rules and --fix can't be combined")
	}
	return showList(a, doctor.Rules(), []string{"RULE", "SEVERITY", "WHAT MUST BE TRUE", "--FIX"}, func(r *doctor.Rule) []string {
		return []string{r.ID, string(r.Severity), r.Meaning, r.Repair}
	})
}

// writeFindings writes findings for a person. complete is true if every check was made;
// only then it can say that everything is in order.
func writeFindings(w io.Writer, found []doctor.Finding, complete bool, opts screen.Options) error {
	out := screen.New(opts)
	for _, f := range found {
		mark := map[doctor.Severity]screen.Cell{doctor.Error: screen.Red("error"), doctor.Warning: screen.Yellow("warning"), doctor.Info: screen.Dim("info")}[f.Severity]
		if f.Fixed {
			mark = screen.Green("fixed")
		}
		out.Row("", []screen.Cell{mark, screen.Plain(f.Rule), screen.Bold(f.Path)}, []int{7, 22})
		out.Wrap("         ", screen.Plain(f.Detail))
		if f.Hint != "" && !f.Fixed {
			out.Wrap("         ", screen.Dim("→ "+f.Hint))
		}
	}
	if len(found) == 0 && complete {
		out.Wrap("", screen.Plain("everything is in order"))
	}
	return out.Flush(w)
}
