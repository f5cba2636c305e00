package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

type validateOptions struct{ json, forceCount, schema bool }

// AddFlags registers the flags of validate.
func (o *validateOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.json, "json", false, "print the problems as one JSON array")
	fs.BoolVar(&o.forceCount, "force-count", false, "allow more than 30 polecats")
	fs.BoolVar(&o.schema, "schema", false, "print the JSON Schema of the file, for editors")
}

func newValidateCmd(a *app) *cobra.Command {
	var opts validateOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check a chipset definition",
		Long: `Check a chipset.yaml, by default the rig's own; "-" reads standard input. All
problems are printed, each with file:line:column. The exit code is 0 if there are only
warnings.`,
		Example: "  chipset validate\n  chipset validate --json .chipset/chipset.yaml\n  chipset validate --schema > chipset.schema.json",
		Args:    nargs(0, 1, "one file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runValidate(cmd.Context(), opts, args, a)
		},
	})
}

func runValidate(ctx context.Context, opts validateOptions, args []string, a *app) error {
	if opts.schema {
		a.printf("%s", definition.Schema())
		return nil
	}
	check := rig.CheckCommands()
	check.ForceCount = opts.forceCount
	file, problems, err := a.problems(ctx, args, check)
	if err != nil {
		return err
	}
	if opts.json {
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
	if !opts.json {
		a.printf("%s: ok, %s\n", clean(file), wording.Count(odd, "warning"))
	}
	return nil
}

func (a *app) problems(ctx context.Context, args []string, check definition.Options) (string, definition.Problems, error) {
	if len(args) == 1 && args[0] == "-" {
		data, err := untilDone(ctx, func() ([]byte, error) { return readLimited(a.stdin, definition.MaxSize+1) }) // one more, so that too much is seen
		if err != nil {
			return "", nil, fmt.Errorf("validate: standard input: %w", err)
		}
		_, problems := definition.ParseWith("stdin", data, check)
		return "stdin", problems, nil
	}
	if len(args) == 1 {
		path := a.abs(args[0])
		data, err := readInput(ctx, path, definition.MaxSize+1)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s: %w", path, state.ErrNotFound)
		}
		if err != nil {
			return "", nil, fmt.Errorf("validate: %w", err)
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

// readLimited reads at most limit bytes.
func readLimited(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit))
	if errors.Is(err, fs.ErrClosed) {
		return nil, errors.New("it is closed")
	}
	return data, err
}
