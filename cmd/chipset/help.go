package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
)

// setHelp adds the help command to a command tree, and gives root an overview.
func (a *app) setHelp(root *cobra.Command) {
	whole := false
	if width, yes := a.terminal(); yes {
		root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "FlagUsages ", fmt.Sprintf("FlagUsagesWrapped %d ", width)))
	}
	ofOne := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd.HasParent() {
			ofOne(cmd, args)
			return
		}
		a.overview(root, whole)
	})
	root.SetHelpCommand(a.newHelpCmd(root, &whole))
}

func (a *app) newHelpCmd(root *cobra.Command, whole *bool) *cobra.Command {
	help := &cobra.Command{
		Use:     "help [COMMAND]…",
		Short:   "Show the help of a command",
		Example: "  chipset help mail send\n  chipset help --all",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd := root
			for _, name := range args {
				next := subcommand(cmd, name)
				if next == nil {
					return unknownCommand(cmd, name)
				}
				cmd = next
			}
			if a.json {
				return printList(a, helpEntries(cmd))
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
	help.Flags().BoolVar(whole, "all", false, "every command")
	return help
}

// helpEntry is a command in help --json.
type helpEntry struct {
	Command string `json:"command"`
	What    string `json:"what"`
}

// helpEntries lists a command and those below it, without hidden aliases.
func helpEntries(cmd *cobra.Command) []helpEntry {
	list := []helpEntry{{cmd.CommandPath(), cmd.Short}}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			list = append(list, helpEntries(sub)...)
		}
	}
	return list
}

func subcommand(cmd *cobra.Command, name string) *cobra.Command {
	for _, sub := range cmd.Commands() {
		if sub.Name() == name || sub.HasAlias(name) {
			return sub
		}
	}
	return nil
}

// nameWidth is the width of the first column of the overview.
const nameWidth = 13

// overview prints what chipset can do: the commands that most people need, or all of them.
func (a *app) overview(root *cobra.Command, whole bool) {
	s := screen.New(a.screen())
	line := func(name, short string) {
		s.Row("  ", []screen.Cell{screen.Bold(name), screen.Plain(short)}, []int{nameWidth})
	}
	s.Wrap("", screen.Plain(root.Short+"."))
	switch {
	case a.inSession():
		s.Heading("For the worker of a rig", "")
		for _, name := range agentcli.WorkerCommands() {
			if cmd, _, err := root.Find(strings.Fields(name)); err == nil {
				line(name, cmd.Short)
			}
		}
	default:
		groups(root, s, line, whole)
	}
	s.Blank()
	s.Wrap("", screen.Plain("chipset help COMMAND explains one. With every command: --dir DIRECTORY (of the rig), --as AGENT (who speaks), --json."))
	_ = s.Flush(a.stdout) // a lost write is reported when the command ends
}

// groups writes the commands for people under their headings.
func groups(root *cobra.Command, s *screen.Screen, line func(name, short string), whole bool) {
	var more []string
	for _, g := range root.Groups() {
		s.Heading(g.Title, "")
		for _, cmd := range root.Commands() {
			_, second := cmd.Annotations[secondary]
			switch {
			case cmd.GroupID != g.ID:
			case second && !whole:
				more = append(more, cmd.Name())
			default:
				line(cmd.Name(), cmd.Short)
			}
		}
	}
	s.Heading("For agents and machinery", "")
	for _, m := range machineries() {
		parent := subcommand(root, m.name)
		line(m.name, parent.Short)
		for _, cmd := range parent.Commands() {
			if whole {
				line("  "+cmd.Name(), cmd.Short)
			}
		}
	}
	s.Blank()
	if whole {
		s.Wrap("", screen.Plain(exitCodes))
		return
	}
	s.Wrap("", screen.Plain("More, with chipset help --all: "+strings.Join(more, ", ")+"."))
}
