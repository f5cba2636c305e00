package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/bd"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

type workImportOptions struct {
	bd.Options
}

// AddFlags registers the flags of work import.
func (o *workImportOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.DryRun, "dry-run", false, "show what would be done, and write nothing")
	fs.BoolVar(&o.DropUnknown, "drop-unknown", false, "leave out dependencies on unknown issues instead of refusing the issue")
	fs.BoolVar(&o.Workers, "trust-workers", false, "accept the workers that issues name: commands that the rig runs")
}

func newWorkImportCmd(a *app) *cobra.Command {
	var opts workImportOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "import FILE",
		Short: "Import issues of bd, the beads issue tracker",
		Long: `Make beads from issues: JSON lines as bd export prints them and as
.beads/issues.jsonl holds them; - is standard input. Every line is checked
before anything is written, and every problem is reported with its line: an
invalid issue (exit 2), a dependency on an issue that is neither in the file nor
in the rig (exit 3), a dependency cycle (exit 4).

An import may be repeated. Issues that have not changed are skipped; an issue
that changed in bd changes its bead unless a worker is working on it. Everything
is durable when the command returns; after a crash, run the same import again.

A line is printed for each issue, except for unchanged ones. docs/bd.md
describes how each field is mapped.`,
		Example: "  bd export | chipset work import -\n  chipset work import .beads/issues.jsonl --dry-run",
		Args:    nargs(1, 1, "a file of JSON lines, or -"),
		RunE: with(a.openRigActor, func(ctx context.Context, me *actor.Actor, args []string) error {
			if err := me.Authority("work import"); err != nil {
				return err
			}
			lines, err := a.readIssues(ctx, args[0])
			if err != nil {
				return err
			}
			opts.CheckWorker = func(worker string) error { return a.checkWorker(me.Rig, worker, false) }
			report, err := bd.Import(ctx, me.Rig, me.ID, lines, opts.Options)
			if err != nil {
				return importError(args[0], err)
			}
			if report.Dropped > 0 {
				a.warnf("dependencies on unknown issues left out: %d", report.Dropped)
			}
			if report.OfferedWorkers > 0 {
				a.warnf("workers (commands) named by issues left out: %d; --trust-workers accepts them", report.OfferedWorkers)
			}
			if a.json {
				return printList(a, report.Results)
			}
			a.showImport(report.Results, opts.DryRun)
			return nil
		}),
	})
}

func (a *app) readIssues(ctx context.Context, file string) ([]bd.Line, error) {
	return untilDone(ctx, func() ([]bd.Line, error) {
		from, err := a.openInput("work import", file)
		if err != nil {
			return nil, err
		}
		defer from.Close()
		lines, err := bd.Read(from)
		return lines, importError(file, err)
	})
}

// importError adds the name of the file to an error; nil stays nil.
func importError(file string, err error) error {
	if err == nil {
		return nil
	}
	if file == "-" {
		file = "standard input"
	}
	var problems bd.Problems
	if errors.As(err, &problems) {
		return withHint(fmt.Errorf("work import: %s: nothing was imported: %w", file, err), importHint(err))
	}
	return fmt.Errorf("work import: %s: %w", file, err)
}

func importHint(err error) string {
	if errors.Is(err, state.ErrNotFound) {
		return "--drop-unknown leaves out dependencies on unknown issues"
	}
	return "chipset work import --dry-run checks it again"
}

func (a *app) showImport(results []bd.Result, dry bool) {
	out := bufio.NewWriter(a.stdout)
	count := map[bd.Outcome]int{}
	for _, res := range results {
		count[res.Outcome]++
		if res.Outcome == bd.Unchanged {
			continue
		}
		name := string(res.ID)
		if name == "" {
			name = fmt.Sprintf("line %d", res.Line)
		}
		_, _ = fmt.Fprintf(out, "%s %s", name, res.Outcome)
		if res.ID != "" && res.Issue != string(res.ID) {
			_, _ = fmt.Fprintf(out, " as %s", clean(res.Issue))
		}
		if res.Detail != "" {
			_, _ = fmt.Fprintf(out, ": %s", clean(res.Detail))
		}
		_, _ = fmt.Fprintln(out)
	}
	_ = out.Flush() // what can't be printed changes nothing about what was done
	would := ""
	if dry {
		would = "would be: "
	}
	a.tellf("%s%d added, %d updated, %d unchanged, %d kept, %d skipped\n", would,
		count[bd.Added], count[bd.Updated], count[bd.Unchanged], count[bd.Kept], count[bd.Skipped])
}

func newWorkExportCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "export",
		Short: "Export beads as issues of bd, the beads issue tracker",
		Long: `Print every bead as a line of JSON, in the format of bd export: bd import reads
it, and so does chipset work import. Imported beads keep the fields that only bd
knows. A bead that can't be read is reported (exit 5).`,
		Example: "  chipset work export > .beads/issues.jsonl",
		Args:    nargs(0, 0, ""),
		RunE: with(a.openState, func(_ context.Context, r *rig.Rig, _ []string) error {
			beads, bad, err := r.Beads.All()
			if err != nil {
				return err
			}
			issues, err := bd.Export(beads)
			if err != nil {
				return err
			}
			out := bufio.NewWriter(a.stdout)
			for i := range issues {
				line, err := state.EncodeLine(issues[i])
				if err != nil {
					return err
				}
				if _, err := out.Write(line); err != nil {
					return err
				}
			}
			if err := out.Flush(); err != nil {
				return fmt.Errorf("work export: %w", err)
			}
			return errors.Join(bad...)
		}),
	}
}
