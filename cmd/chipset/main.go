// Command chipset runs a rig: a git repository in which coding agents work on
// beads in parallel, talk through durable mail, and land what they finish one
// tested merge at a time. Its command tree is in root.go, what every command
// shares in app.go, and which error leads to which exit code in errors.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/process/broker"
)

// gcPercent lets a command of a few milliseconds end before the first garbage
// collection. A process that runs agents sets its own.
const gcPercent = 1000

func main() { os.Exit(mainCode()) }

// mainCode is main without the exit, so that deferred calls run.
func mainCode() int {
	// The supervisor of a worker and its sandbox are this same binary.
	if len(os.Args) > 1 && os.Args[1] == process.SuperviseArg && os.Getenv(broker.EnvAddress) == "" {
		return process.Supervise(os.Stdin)
	}
	if len(os.Args) > 1 && os.Args[1] == process.BoxArg {
		return process.Box(os.Args[2:])
	}
	debug.SetGCPercent(gcPercent)
	args, given, err := commandArgs(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "chipset: %v\n", err)
		return codeUsage
	}
	cwd, err := os.Getwd()
	if err != nil {
		fmt.Fprintf(os.Stderr, "chipset: current directory: %v\n", err)
		return codeFailed
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintf(os.Stderr, "chipset: own path: %v\n", err)
		return codeFailed
	}
	cobra.EnableCommandSorting = false // keeps the order of commandGroups; a variable of the library, so set once
	return runWithSignals(args, &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		env: os.Getenv, cwd: cwd, clock: clockOf(time.Now), self: self, given: given,
	})
}

// execute executes one command line and returns the exit code.
func execute(ctx context.Context, args []string, a *app) int {
	if address := a.env(broker.EnvAddress); address != "" && a.given == nil {
		return a.forward(ctx, address, args)
	}
	out := &sink{w: a.stdout}
	a.stdout = out
	root := newRootCmd(a, args...)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		a.addCompletions(root)
	}
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	err = namingCommand(ctx, cmd, err)
	a.endPager()
	if a.paging != nil && errors.Is(err, syscall.EPIPE) {
		err = nil // the person has read enough
	} else if err == nil && out.err != nil && a.paging == nil {
		err = fmt.Errorf("standard output: %w", out.err)
	}
	if a.json || slices.Contains(args, "--json") { // also if the command line can't be parsed
		return a.reportJSON(ctx, err)
	}
	return a.report(ctx, err)
}

// sink remembers that output was lost: a command whose answer did not arrive
// has not succeeded.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}
