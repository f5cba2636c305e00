package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/state/wording"
)

const exitCodes = `Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 conflict, 5 corrupt state,
6 timed out waiting, 7 the rig finished but beads wait for a person,
130 interrupted.`

// newRootCmd makes the command tree: only the commands that a command line needs (see onlyCommand), or all without one.
func newRootCmd(a *app, args ...string) *cobra.Command {
	root := &cobra.Command{
		Use:   "chipset",
		Short: "Run coding agents in parallel on one repository, and land what they finish",
		Long: `chipset runs a rig: one git repository in which a mayor hands beads (work items)
to polecats, polecats run workers (coding agents or any command) on them in
worktrees of their own, a refinery tests and lands the results one by one, and a
witness notices what stalls. Everything that must survive is plain JSON below
.chipset/state/.

` + exitCodes,
		Example:       "  chipset init --worker sh --test true\n  chipset work add \"Say hello\" -d \"echo hello > hello.txt\"\n  chipset up --until-idle",
		Version:       currentVersion().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if err := a.permit(cmd); err != nil {
				return err
			}
			if _, speaks := cmd.Annotations[ownFormat]; speaks && a.json {
				return usagef("--json is not supported: this command's output has its own format")
			}
			if err := checkSigns(cmd); err != nil {
				return err
			}
			if err := a.expandNames(cmd, args); err != nil {
				return err
			}
			a.page(cmd)
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return unknownCommand(cmd, args[0])
			case a.json:
				return printList(a, helpEntries(cmd))
			}
			return cmd.Help()
		},
	}
	root.SetVersionTemplate(currentVersion().String() + "\n")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return withHint(usagef("%s", flagProblem(err)), seeHelp(cmd))
	})
	a.addGlobalFlags(root.PersistentFlags())
	for _, g := range commandGroups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
	}
	addCommands(root, a, onlyCommand(args))
	if !root.HasSubCommands() { // there is none of that name, or flags come first
		addCommands(root, a, "")
	}
	a.setHelp(root)
	return root
}

// flagProblem says what is wrong with the flags of a command line.
func flagProblem(err error) string {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err.Error()
	}
	wanted := "a value for it"
	switch invalid.GetFlag().Value.Type() {
	case "duration":
		wanted = "a duration such as 90s or 1h30m"
	case "int", "int64", "uint64":
		wanted = "a whole number"
	case "bool":
		wanted = "true or false"
	}
	return fmt.Sprintf("--%s %q is not %s", invalid.GetFlag().Name, invalid.GetValue(), wanted)
}

// ownFormat is the annotation of a command whose output has a format defined by others, so that it has no --json.
const ownFormat = "own-format"

// checksItself is the annotation of a command that checks its numbers itself, to report
// all problems at once.
const checksItself = "checks-itself"

// checkSigns refuses negative numbers and durations: they are invalid for every flag.
func checkSigns(cmd *cobra.Command) error {
	if _, own := cmd.Annotations[checksItself]; own {
		return nil
	}
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if kind := f.Value.Type(); err == nil && (kind == "duration" || kind == "int") && strings.HasPrefix(f.Value.String(), "-") {
			err = withHint(usagef("--%s %s is negative", f.Name, f.Value), seeHelp(cmd))
		}
	})
	return err
}

func (a *app) addGlobalFlags(fs *pflag.FlagSet) {
	fs.StringVar(&a.dir, "dir", "", "the `directory` that holds .chipset (default $CHIPSET_DIR, else found from here)")
	fs.StringVar(&a.as, "as", "", "the `agent` to speak as (default $CHIPSET_AGENT, else human)")
	fs.BoolVar(&a.noPager, "no-pager", false, "do not use a pager")
	fs.BoolVar(&a.json, "json", false, "print answers and errors as JSON")
}

// withFlags registers the flags of a command's options.
func withFlags(opts interface{ AddFlags(fs *pflag.FlagSet) }, cmd *cobra.Command) *cobra.Command {
	opts.AddFlags(cmd.Flags())
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if list, ok := f.Value.(pflag.SliceValue); ok && f.Value.Type() == "stringSlice" {
			f.Value, f.DefValue = wordList{f.Value, list}, "" // help would name an empty list of another type
		}
	})
	return cmd
}

// wordList is a flag of words between commas. pflag itself drops what comes after a line break.
type wordList struct {
	pflag.Value
	pflag.SliceValue
}

// Set implements pflag.Value.
func (l wordList) Set(s string) error {
	if strings.ContainsAny(strings.TrimSpace(s), "\r\n") {
		return errors.New("must be one line")
	}
	return l.Value.Set(s)
}

// with makes the RunE of a command that first opens the rig or the actor.
func with[T any](open func(context.Context) (T, error), run func(ctx context.Context, opened T, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		opened, err := open(cmd.Context())
		if err != nil {
			return err
		}
		return run(cmd.Context(), opened, args)
	}
}

// newGroupCmd is a command that only holds others.
func newGroupCmd(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			var names []string
			for _, sub := range cmd.Commands() {
				if sub.IsAvailableCommand() {
					names = append(names, sub.Name())
				}
			}
			return withHint(usagef("missing subcommand: one of %s", strings.Join(names, ", ")), seeHelp(cmd))
		},
	}
	cmd.AddCommand(subs...)
	return cmd
}

// nargs checks the number of arguments; high -1 is any number. what describes them in
// the error.
func nargs(low, high int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= low && (high < 0 || len(args) <= high) {
			return nil
		}
		if what == "" {
			return withHint(usagef("takes no arguments, got %q", args[0]), seeHelp(cmd))
		}
		got := "nothing"
		if len(args) > 0 {
			got = wording.Count(len(args), "argument")
		}
		return withHint(usagef("expected %s, got %s", what, got), seeHelp(cmd))
	}
}

func unknownCommand(cmd *cobra.Command, name string) error {
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	hint := seeHelp(cmd)
	if guess := firstGuess(name); guess != "" && !cmd.HasParent() {
		hint = "that is " + guess
	} else if near := cmd.SuggestionsFor(name); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %s?", strings.Join(near, ", "))
	}
	return withHint(usagef("unknown command %q", name), hint)
}

// commandName is a command's path without the program's name.
func commandName(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), "chipset ")
}

func seeHelp(cmd *cobra.Command) string {
	if cmd.HasParent() {
		return "see chipset help " + commandName(cmd)
	}
	return "see chipset help"
}
