package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/doctor"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/state/wording"
)

type doctorOptions struct{ fix, rules, json bool }

// AddFlags registers the flags of doctor.
func (o *doctorOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.fix, "fix", false, "repair what can be repaired without loss")
	fs.BoolVar(&o.rules, "rules", false, "list the rules, and look at nothing")
	addJSON(fs, &o.json)
}

func newDoctorCmd(a *app) *cobra.Command {
	var opts doctorOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "doctor",
		Short: "Check every rule of the state tree, and repair what can be",
		Long: `Check that every file of the state tree is whole and in its place, and that hooks,
beads, dispatches, attempts, merge requests, mail and git agree. In a rig that
runs, what passes within a moment is not reported. Exit 5 while an error stands;
warnings and notes alone are exit 0.

--fix moves what can't be read to state/quarantine, finishes dispatches, attempts
and merges that were left half done as the roles themselves do, rebuilds hooks from
the beads, mends git's files of worktrees and saves what they hold, and removes
leftovers. It never deletes what it does not understand. It can be interrupted at
any time and run again, and works beside a rig that runs.

--rules lists what is checked, with what --fix does about each.`,
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
	if opts.json {
		if printErr := printList(a, found); err == nil {
			err = printErr
		}
	} else {
		if printErr := writeFindings(a.stdout, found, err == nil, a.screen()); err == nil {
			err = printErr
		}
	}
	if err != nil {
		return err
	}
	if n := doctor.Standing(found); n > 0 {
		return exitWith(codeCorrupt, withHint(fmt.Errorf("doctor: %s in the state tree", wording.Count(n, "error")), doctorHint(opts)))
	}
	return nil
}

// doctorHint says what helps next.
func doctorHint(opts doctorOptions) string {
	if opts.fix {
		return "what is left needs a person; each line says what it waits for"
	}
	return "chipset doctor --fix repairs what can be repaired without loss"
}

// printRules lists the rules; it needs no rig.
func printRules(opts doctorOptions, a *app) error {
	if opts.fix {
		return usagef("--rules looks at nothing, so there is nothing to --fix")
	}
	rules := doctor.Rules()
	if opts.json {
		return printList(a, rules)
	}
	rows := make([][]string, 0, len(rules))
	for _, r := range rules {
		rows = append(rows, []string{r.ID, string(r.Severity), r.Meaning, r.Repair})
	}
	return a.table([]string{"RULE", "SEVERITY", "WHAT MUST BE TRUE", "--FIX"}, rows)
}

// writeFindings writes findings for a person. Only a doctor whom nothing kept from
// looking (complete) says that everything is in order.
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
