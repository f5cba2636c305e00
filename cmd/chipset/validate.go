package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/preflight"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state/wording"
)

type validateOptions struct{ forceCount, schema, live bool }

// AddFlags registers the flags of validate.
func (o *validateOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.forceCount, "force-count", false, forceCountUsage())
	fs.BoolVar(&o.live, "live", false, "also check what up checks: clients, target, remote, disk, setup and test")
	fs.BoolVar(&o.schema, "schema", false, "print the JSON Schema of chipset.yaml, for editors")
}

func newValidateCmd(a *app) *cobra.Command {
	var opts validateOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check chipset.yaml",
		Long: `Check a chipset.yaml, by default the rig's own; "-" reads standard input. All
problems are printed, each with file:line:column. The exit code is 0 if there
are only warnings.

--live also checks whether the rig can work, as up does before it starts
anything: that each client is installed, logged in, and accepts its options;
target, remote, disk and rights; the setup and the test in a fresh worktree of
the target's tip. It asks no model, and starts no agent.`,
		Example: "  chipset validate\n  chipset validate --json .chipset/chipset.yaml\n  chipset validate --schema > chipset.schema.json",
		Args:    nargs(0, 1, "one file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runValidate(cmd.Context(), opts, args, a)
		},
	})
}

func runValidate(ctx context.Context, opts validateOptions, args []string, a *app) error {
	if opts.schema {
		if len(args) > 0 {
			return usagef("--schema checks nothing; leave the file out")
		}
		a.printf("%s", definition.Schema())
		return nil
	}
	if opts.live && len(args) > 0 {
		return usagef("--live is about the rig's own definition; leave the file out")
	}
	check := rig.CheckCommands()
	check.ForceCount = opts.forceCount
	file, problems, err := a.problems(ctx, args, check)
	if err != nil {
		return err
	}
	if a.json && (!opts.live || len(problems.Errors()) > 0) {
		if err := printList(a, problems); err != nil {
			return err
		}
	} else {
		for _, p := range problems {
			a.tellf("%s\n", clean(p.String()))
		}
	}
	bad, odd := len(problems.Errors()), len(problems.Warnings())
	if bad > 0 {
		return fmt.Errorf("validate: %s: %s, %s", file, wording.Count(bad, "error"), wording.Count(odd, "warning"))
	}
	if opts.live {
		return a.validateLive(ctx)
	}
	if !a.json {
		a.printf("%s: ok, %s\n", clean(file), wording.Count(odd, "warning"))
	}
	return nil
}

func (a *app) problems(ctx context.Context, args []string, check definition.Options) (string, definition.Problems, error) {
	if len(args) == 1 {
		path := a.abs(args[0])
		if args[0] == "-" {
			path = "stdin"
		}
		data, err := a.readInput(ctx, "validate", args[0], definition.MaxSize+1) // one more, so that too much is seen
		if err != nil {
			return "", nil, err
		}
		_, problems := definition.ParseWith(path, data, check)
		return path, problems, nil
	}
	dir, err := a.rigDir(ctx)
	if err != nil {
		return "", nil, err
	}
	path := filepath.Join(dir, rig.DirName, rig.DefinitionName)
	_, problems, err := rig.LoadDefinition(path, check)
	if err != nil {
		return "", nil, fmt.Errorf("validate: %w", err)
	}
	return path, problems, nil
}

// preflightOptions returns the options of a command that checks once.
func (a *app) preflightOptions() (preflight.Options, error) {
	self, err := os.Executable()
	return preflight.Options{Self: self, Say: func(text string, args ...any) { a.tellf("%s\n", clean(fmt.Sprintf(text, args...))) }}, err
}

// validateLive makes the checks that up makes before it starts.
func (a *app) validateLive(ctx context.Context) error {
	r, err := a.openRig(ctx)
	if err != nil {
		return err
	}
	o, err := a.preflightOptions()
	if err != nil {
		return err
	}
	checks, err := preflight.Run(ctx, r, o)
	if err != nil {
		return err
	}
	if a.json {
		err = printList(a, checks)
	}
	bad := 0
	for i := range checks {
		c := &checks[i]
		switch {
		case !c.OK():
			bad++
			a.tellf("%s: %s\n", c.Name, clean(c.Fault.Reason))
			if c.Mend != "" {
				a.tellf("  %s\n", clean(c.Mend))
			}
		case !a.json:
			a.printf("%-7s %s  %s\n", c.Name, clean(c.Subject), clean(c.Found))
		}
	}
	if bad > 0 && err == nil {
		err = exitWith(codeWaiting, fmt.Errorf("validate: %d of %s failed: up would wait for you", bad, wording.Count(len(checks), "check")))
	}
	return err
}
