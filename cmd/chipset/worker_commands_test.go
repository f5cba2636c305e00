package main

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/state"
)

// What workers are allowed without being asked are commands of this program, and none
// that runs commands or decides.
func TestWorkerCommands(t *testing.T) {
	root := newRootCmd(&app{})
	for _, command := range agentcli.WorkerCommands() {
		found, rest, err := root.Find(strings.Fields(command))
		if err != nil || len(rest) > 0 || command != strings.TrimPrefix(found.CommandPath(), "chipset ") {
			t.Errorf("%q is no command: found %q, %v", command, found.CommandPath(), err)
		}
		switch strings.Fields(command)[0] {
		case "init", "up", "down", "supervise", "plugin", "mcp", "bridge", "approve", "deny", "answer", "reopen", "inbox", "resume", "permissions", "sling", "unsling":
			t.Errorf("%q is for the person alone", command)
		}
	}
}

// A worker is refused every other command, and mcp over HTTP.
func TestPermitNamesWhatWorkersMayRun(t *testing.T) {
	a := &app{env: func(string) string { return "" }, given: map[string]*os.File{}}
	allowed := append(agentcli.WorkerCommands(), agentcli.ClientCommands()...)
	count := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if !cmd.HasParent() || cmd.Name() == "help" {
			return
		}
		count++
		if err := a.permit(cmd); slices.Contains(allowed, plainName(cmd)) != (err == nil) || err != nil && !errors.Is(err, state.ErrConflict) {
			t.Errorf("%s: %v", commandName(cmd), err)
		}
	}
	root := newRootCmd(a)
	walk(root)
	if count < 100 {
		t.Errorf("only %d commands were tried", count)
	}
	mcp, _, err := root.Find([]string{"mcp"})
	if err == nil {
		err = mcp.ParseFlags([]string{"--http", "127.0.0.1:0"})
	}
	if err != nil || !errors.Is(a.permit(mcp), state.ErrConflict) {
		t.Errorf("mcp --http: %v", err)
	}
}

// A command line makes the command that it names alone, as it is among all; every other one makes all.
func TestOnlyTheCalledCommandIsMade(t *testing.T) {
	all := newRootCmd(&app{})
	table := machineries()[0].commands
	for _, g := range commandGroups() {
		table = append(append(table, g.first...), g.more...)
	}
	for _, c := range table {
		alone, among := newRootCmd(&app{}, c.name, "--help"), subcommand(all, c.name)
		switch made := alone.Commands(); {
		case c.name == "completion":
			if len(made) != len(all.Commands()) {
				t.Errorf("%s prints %d commands", c.name, len(made))
			}
		case len(made) != 1 || made[0].Name() != c.name:
			t.Errorf("%s: %d commands are made", c.name, len(made))
		case among == nil || made[0].UsageString() != among.UsageString():
			t.Errorf("%s alone differs from it among all", c.name)
		}
	}
	if agent := newRootCmd(&app{}, "agent", "done"); len(agent.Commands()) != 1 || subcommand(agent.Commands()[0], "done") == nil {
		t.Error("agent holds no done")
	}
	for _, args := range [][]string{nil, {"help"}, {"dev", "man"}, {"man"}, {"--json", "status"}, {"stats"}, {"__complete", "st"}} {
		if got := newRootCmd(&app{}, args...); len(got.Commands()) != len(all.Commands()) {
			t.Errorf("%q makes %d of %d commands", args, len(got.Commands()), len(all.Commands()))
		}
	}
}
