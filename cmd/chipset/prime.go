package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/prompt"
)

type primeOptions struct {
	format string
}

// AddFlags registers the flags of prime.
func (o *primeOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.format, "format", "text", "`text` or json")
}

func newPrimeCmd(a *app) *cobra.Command {
	var opts primeOptions
	return withFlags(&opts, &cobra.Command{
		Use:     "prime",
		Short:   "Print everything an agent needs to begin",
		Long:    "Print everything the agent needs to begin: role, rules, its hook, the last\nhand-off, and unread mail (as data, escaped). Nothing is marked.",
		Example: "  chipset prime --as polecat-alpha\n  chipset prime --format json",
		Args:    nargs(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runPrime(cmd.Context(), opts, a) },
	})
}

func runPrime(ctx context.Context, opts primeOptions, a *app) error {
	if opts.format != "text" && opts.format != "json" {
		return usagef("--format %q is not text or json", opts.format)
	}
	me, err := a.openActor(ctx)
	if err != nil {
		return err
	}
	b, err := prompt.Prime(ctx, me.Rig, me.ID)
	if err != nil {
		return err
	}
	shown := b.InText()
	if a.json || opts.format == "json" {
		shown = b.Names()
		err = a.printJSON(b)
	} else {
		_, err = a.stdout.Write([]byte(b.Text()))
	}
	if err != nil {
		return err
	}
	me.Injected("chipset prime", shown...)
	return nil
}
