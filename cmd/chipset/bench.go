package main

import (
	"context"
	"os/exec"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/measure"
)

type benchOptions struct {
	quick  bool
	echo   string
	sender bool
}

// AddFlags registers the flags of bench.
func (o *benchOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.quick, "quick", false, "take a few seconds, with rough figures")
	fs.StringVar(&o.echo, "echo", "", "be the recipient's process of a measurement in a `tree`")
	_ = fs.MarkHidden("echo") // it was registered a line above
	fs.BoolVar(&o.sender, "sender", false, "be a sender's process of a measurement")
	_ = fs.MarkHidden("sender") // the same
}

func newBenchCmd(a *app) *cobra.Command {
	var opts benchOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "bench",
		Short: "Measure sends, polls and wake-ups on this disk",
		Long: `Measure the disk of --dir or of the current directory: how many messages become
durable in a second (also with many processes, and while others write), how long
it takes to find unread messages, and how soon a recipient has a message. Each
figure is compared with a baseline of the same run. No rig is needed: bench
works in a folder of its own, and removes it at the end. docs/performance.md
explains the tables.`,
		Example: "  chipset bench --quick\n  chipset bench --dir /mnt/disk --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if opts.sender {
				return nargs(4, 4, "TREE FOLDER NUMBER COUNT")(cmd, args)
			}
			return nargs(0, 0, "")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.sender {
				return runSender(args, a)
			}
			return runBench(cmd.Context(), opts, a)
		},
	})
}

func runBench(ctx context.Context, opts benchOptions, a *app) error {
	if opts.echo != "" {
		return measure.Echo(ctx, opts.echo, a.stdout)
	}
	dir := a.abs(a.dir)
	if dir == "" {
		dir = a.cwd
	}
	report, err := measure.Run(ctx, measure.Options{Dir: dir, Quick: opts.quick, Clock: a.clock,
		Command: func(ctx context.Context, args ...string) *exec.Cmd {
			return exec.CommandContext(ctx, a.self, append([]string{"bench"}, args...)...)
		},
		Say: func(format string, args ...any) { a.tellf(format+" …\n", args...) }})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(report)
	}
	return report.WriteText(a.stdout)
}

func runSender(args []string, a *app) error {
	n, err := strconv.Atoi(args[3])
	if err != nil {
		return usagef("COUNT: %q is not a number", args[3])
	}
	return measure.Sender(args[0], args[1], args[2], n, a.stdin, a.stdout)
}
