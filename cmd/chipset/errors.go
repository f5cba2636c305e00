package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/run"
	"github.com/gastown-chipset/chipset/state"
)

// The exit codes of every command.
const (
	codeOK          = 0
	codeFailed      = 1
	codeUsage       = 2
	codeNotFound    = 3
	codeConflict    = 4
	codeCorrupt     = 5
	codeTimeout     = 6
	codeWaiting     = 7 // the rig finished, but beads wait for a person
	codeInterrupted = 130
)

var (
	// errWaiting is returned when the rig finished, but beads wait for a person.
	errWaiting = errors.New("beads wait for a person")
	// errSilent is returned by a command that has already reported its error.
	errSilent = errors.New("failed")
)

// exitCode is the one table from errors to exit codes. The first row that
// matches wins: a corrupt file that was also not found is corrupt.
func exitCode(ctx context.Context, err error) int {
	if err == nil {
		return codeOK
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) || errors.Is(err, run.ErrDrained) {
		return codeInterrupted
	}
	var coded *codedError
	if errors.As(err, &coded) {
		return coded.code
	}
	for _, row := range []struct {
		is   error
		code int
	}{
		{actor.ErrInvalid, codeUsage},
		{actor.ErrTimeout, codeTimeout},
		{errWaiting, codeWaiting},
		{state.ErrNoTree, codeCorrupt},
		{state.ErrCorrupt, codeCorrupt},
		{state.ErrConflict, codeConflict},
		{state.ErrExists, codeConflict},
		{state.ErrNotFound, codeNotFound},
		{rig.ErrNoRig, codeNotFound},
		{rig.ErrUntrusted, codeConflict},
		{state.ErrBadID, codeUsage},
		{definition.ErrPolecatCount, codeUsage},
	} {
		if errors.Is(err, row.is) {
			return row.code
		}
	}
	return codeFailed
}

// codedError is an error with its exit code.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// exitWith gives an error an exit code that is not in the table.
func exitWith(code int, err error) error { return &codedError{code, err} }

// usagef makes an error that ends in exit code 2.
func usagef(format string, args ...any) error { return actor.Invalidf(format, args...) }

// namingCommand puts the command before what is wrong with its command line, unless the error names it.
func namingCommand(ctx context.Context, cmd *cobra.Command, err error) error {
	if exitCode(ctx, err) != codeUsage || !cmd.HasParent() {
		return err
	}
	name := commandName(cmd)
	if rest, named := strings.CutPrefix(err.Error(), name); named && strings.IndexAny(rest, ": ") == 0 {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// withHint adds a hint to an error; nil stays nil.
func withHint(err error, hint string) error { return actor.WithHint(err, hint) }

// jsonError is an error for programs, see docs/json.md.
type jsonError struct {
	Code  int    `json:"code"`
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

// reportJSON is report for a command with --json: one object on standard error.
func (a *app) reportJSON(ctx context.Context, err error) int {
	code := exitCode(ctx, err)
	if code == codeOK || code == codeInterrupted || errors.Is(err, errSilent) {
		return code
	}
	line, encodeErr := state.EncodeLine(jsonError{code, err.Error(), actor.HintFor(err)})
	if encodeErr != nil {
		return a.report(ctx, err)
	}
	a.tellf("%s\n", bytes.TrimSpace(line))
	return code
}

// report prints an error for a person, and returns the exit code.
func (a *app) report(ctx context.Context, err error) int {
	code := exitCode(ctx, err)
	switch {
	case code == codeOK, code == codeInterrupted, errors.Is(err, errSilent):
		return code
	}
	var invalid *rig.DefinitionError
	if errors.As(err, &invalid) {
		for _, p := range invalid.Problems {
			a.tellf("chipset: %s\n", clean(p.String()))
		}
		a.tellf("hint: chipset validate checks it again\n")
		return code
	}
	for i, line := range strings.Split(strings.TrimSpace(err.Error()), "\n") {
		if i == 0 {
			line = "chipset: " + line
		}
		a.tellf("%s\n", clean(line))
	}
	if hint := actor.HintFor(err); hint != "" {
		a.tellf("hint: %s\n", clean(hint))
	}
	return code
}
