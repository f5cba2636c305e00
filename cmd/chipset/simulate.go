package main

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/simulate"
)

type simulateOptions struct {
	simulate.Options
	faults string
}

// span is a flag that takes days and years as well.
type span struct{ to *time.Duration }

func (s span) String() string {
	if s.to == nil {
		return ""
	}
	return s.to.String()
}
func (s span) Type() string { return "duration" }
func (s span) Set(text string) (err error) {
	*s.to, err = simulate.ParseDuration(text)
	return err
}

// AddFlags registers the flags of simulate.
func (o *simulateOptions) AddFlags(fs *pflag.FlagSet) {
	o.Options = simulate.Defaults()
	fs.IntVar(&o.Polecats, "polecats", o.Polecats, "how many polecats")
	fs.IntVar(&o.Beads, "beads", o.Beads, "how many beads")
	fs.Uint64Var(&o.Seed, "seed", o.Seed, "the same seed and flags give the same run")
	fs.Var(span{&o.For}, "for", "end after that much virtual time, for example 30d or 1y (default: when nothing is left to do)")
	fs.StringVar(&o.faults, "faults", "none", "what goes wrong: none, all, or `kinds` separated by commas, each with =VALUE if you like")
	fs.Var(span{&o.Work}, "work", "the median time of a worker for a bead")
	fs.Var(span{&o.Test}, "test", "the median time of the test command")
	fs.Float64Var(&o.Spread, "spread", o.Spread, "how much these times vary (the shape of a log-normal distribution)")
	fs.Var(span{&o.Progress}, "progress", "the median time between two signs of life of a worker")
	fs.Float64Var(&o.PerHour, "per-hour", o.PerHour, "how many beads arrive in an hour, at random times; 0 is all at once")
	fs.Float64Var(&o.Needs, "needs", o.Needs, "the share of beads that wait for one to three earlier ones")
	fs.IntVar(&o.Chain, "chain", o.Chain, "how far back those are at most, in beads")
	fs.Float64Var(&o.Fail, "fail", o.Fail, "the probability that an attempt fails")
	fs.Float64Var(&o.Red, "red", o.Red, "the probability that finished work breaks the tests")
	fs.Float64Var(&o.Flaky, "flaky", o.Flaky, "the probability that a test is red for nothing")
	fs.Float64Var(&o.Conflict, "conflict", o.Conflict, "the probability that a merge request conflicts with the target")
	fs.Float64Var(&o.Overlap, "overlap", o.Overlap, "the probability that a change conflicts with one that lands before it")
	fs.IntVar(&o.Batch, "batch", o.Batch, "merge.batch: how many requests are tested together")
	fs.IntVar(&o.MaxParallel, "max-parallel", o.MaxParallel, "dispatch.max_parallel; 0 is all polecats")
	fs.Var(span{&o.Patrol}, "patrol", "the witness's interval")
	fs.Var(span{&o.Step}, "step", "what one durable step of a role takes")
	fs.Var(span{&o.Person}, "person", "the median time until a person reopens a bead that waits for one; 0 is never")
}

func newSimulateCmd(a *app) *cobra.Command {
	var opts simulateOptions
	return withFlags(&opts, &cobra.Command{
		Annotations: map[string]string{checksItself: ""},
		Use:         "simulate",
		Short:       "Simulate a rig of any size in virtual time",
		Long: `Run a rig with the real decisions of its roles and the real rules of every step,
but in virtual time, with models of the disk, git, workers and tests. It needs
no rig. The report says how many beads land in an hour, how long they wait,
which stalls the witness finds, which alerts it sends, and how much work is
wasted; docs/simulation.md explains it.

The run is checked while it goes on: a bead lands at most once and in order,
every step of hooks, beads, requests and incidents is legal, no alert is sent
twice, nothing is stuck. A violation is exit 1, with the seed and the virtual
time.

The kinds of faults for --faults, each with its usual value: a probability, or
the mean time between two.

  ` + strings.Join(simulate.FaultKinds(), "\n  "),
		Example: "  chipset simulate --polecats 30 --beads 2000\n" +
			"  chipset simulate --polecats 1000 --beads 100000 --batch 16 --json\n" +
			"  chipset simulate --per-hour 20 --beads 200000 --for 1y --person 8h --faults all\n" +
			"  chipset simulate --beads 500 --faults hang=0.05,kill=2h,nudge=1",
		Args: nargs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return runSimulate(cmd.Context(), opts, a) },
	})
}

// simulationGC trades memory for time: most values of a simulation are short-lived.
const simulationGC = 300

func runSimulate(ctx context.Context, opts simulateOptions, a *app) error {
	var err error
	if opts.Faults, err = simulate.ParseFaults(opts.faults); err != nil {
		return usagef("--faults: %v", err)
	}
	if err := opts.Check(); err != nil {
		return usagef("%v", err)
	}
	debug.SetGCPercent(simulationGC)
	report, err := simulate.Run(ctx, opts.Options)
	var violated *simulate.Violation
	if err != nil && !errors.As(err, &violated) {
		return err
	}
	if a.json {
		return errors.Join(err, a.printJSON(report))
	}
	return errors.Join(err, report.WriteText(a.stdout))
}
