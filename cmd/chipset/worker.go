package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/process/broker"
	"github.com/gastown-chipset/chipset/state"
)

// commandArgs returns the command line of this process. A supervisor that runs it for a
// worker also hands over files; otherwise given is nil.
func commandArgs(args []string) (command []string, given map[string]*os.File, _ error) {
	if len(args) == 0 || args[0] != process.BrokeredArg || os.Getenv(broker.EnvAddress) != "" {
		return args, nil, nil
	}
	files, command, err := process.BrokeredArgs(args[1:])
	given = map[string]*os.File{}
	for i, name := range files {
		given[name] = os.NewFile(uintptr(3+i), name)
	}
	return command, given, err
}

// inSession reports whether a worker runs this command.
func (a *app) inSession() bool { return a.given != nil || a.env(envSession) != "" }

// permit returns an ErrConflict for a command that a worker may not run, whether a broker
// runs it or the worker itself, which was started without one. No other place decides that.
func (a *app) permit(cmd *cobra.Command) error {
	if !a.inSession() {
		return nil
	}
	name := plainName(cmd)
	allowed := append(agentcli.WorkerCommands(), agentcli.ClientCommands()...)
	if cmd.HasParent() && name != "help" && !slices.Contains(allowed, name) {
		return withHint(state.Conflictf(name, "is not for workers"), "chipset request permission asks the person; chipset block --reason ends the assignment with a question")
	}
	if f := cmd.Flags().Lookup("http"); f != nil && f.Changed {
		return state.Conflictf(name, "a worker may serve its tools only to its own client")
	}
	if a.given != nil && a.dir != "" && filepath.Clean(a.dir) != filepath.Clean(a.env(envDir)) {
		return state.Conflictf("--dir "+a.dir, "a worker's session belongs to the rig in %s", a.env(envDir))
	}
	return nil
}

// forward lets the broker of this worker's session, which knows the worker, run the
// command, and returns its exit code.
func (a *app) forward(ctx context.Context, address string, args []string) int {
	code, err := a.call(ctx, address, args)
	if err == nil {
		return code
	}
	if len(args) > 0 && args[0] == "client-hook" { // an error would hold the client up
		a.warnf("client-hook: %v", err)
		return codeOK
	}
	if code == codeConflict {
		err = state.Conflictf("limit", "%v", err)
	}
	if errors.Is(err, broker.ErrGone) || errors.Is(err, broker.ErrRefused) {
		err = state.Conflictf("$"+broker.EnvAddress, "%v", err)
	}
	return a.report(ctx, err)
}

func (a *app) call(ctx context.Context, address string, args []string) (int, error) {
	to, err := broker.ParseAddress(address)
	if err != nil {
		return 0, usagef("%v", err)
	}
	if who := a.env(envAgent); strings.Contains(who, ".") { // the shell of a subagent names it
		args = append([]string{"--as=" + who}, args...)
	}
	c := broker.Command{Args: args, Descriptors: []int{0, 1, 2}}
	files, err := a.openNamed(ctx, args)
	for name, f := range files {
		defer f.Close()
		c.Files, c.Descriptors = append(c.Files, name), append(c.Descriptors, int(f.Fd()))
	}
	if err != nil {
		return 0, err
	}
	status, err := broker.Call(ctx, to, c)
	return status.Code, err
}

// openNamed opens the files that a command line names, with the rights of this process.
func (a *app) openNamed(ctx context.Context, args []string) (map[string]*os.File, error) {
	files := map[string]*os.File{}
	cmd, rest, err := newRootCmd(&app{}, args...).Find(args)
	if err != nil || cmd.ParseFlags(rest) != nil {
		return files, nil //nolint:nilerr // the broker's process refuses the command line
	}
	var failed error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		name := f.Value.String()
		if _, isFile := f.Annotations[cobra.BashCompFilenameExt]; !isFile || name == "" || name == "-" || failed != nil {
			return
		}
		_, failed = untilDone(ctx, func() ([]byte, error) { // nobody may write to a pipe
			file, err := a.openFile("--"+f.Name, name)
			if err == nil {
				files[name] = file
			}
			return nil, err
		})
	})
	return files, failed
}
