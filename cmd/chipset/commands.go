package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// command makes one command of the table, under its name.
type command struct {
	name string
	make func(*app) *cobra.Command
}

// commandGroup is a heading of the help with the commands below it.
type commandGroup struct {
	id, title string
	// first are listed by chipset help, more only by chipset help --all.
	first, more []command
}

// commandGroups lists the commands for people, in the order of the help.
func commandGroups() []commandGroup {
	type list = []command
	return []commandGroup{
		{"work", "Work: say what is to be done",
			list{{"work", newWorkCmd}, {"convoy", newConvoyCmd}, {"sling", newSlingCmd}}, list{{"unsling", newUnslingCmd}, {"queue", newQueueCmd}}},
		{"look", "Look: see what happens",
			list{{"status", newStatusCmd}, {"spend", newSpendCmd}, {"board", newBoardCmd}, {"tail", newTailCmd}, {"attach", newAttachCmd}, {"diff", newDiffCmd}, {"why", newWhyCmd}}, list{{"log", newLogCmd}, {"agents", newAgentsCmd}}},
		{"talk", "Talk: decide what only you can decide",
			list{{"inbox", newInboxCmd}, {"approve", newApproveCmd}, {"deny", newDenyCmd}, {"answer", newAnswerCmd}, {"mail", newMailCmd}}, list{{"reopen", newReopenCmd}, {"permissions", newPermissionsCmd}}},
		{"run", "Run: start and stop the agents",
			list{{"up", newUpCmd}, {"down", newDownCmd}}, list{{"resume", newResumeCmd}}},
		{"setup", "Set up: make and maintain a rig",
			list{{"init", newInitCmd}, {"doctor", newDoctorCmd}}, list{{"demo", newDemoCmd}, {"trust", newTrustCmd}, {"validate", newValidateCmd}, {"runtime", newRuntimeCmd}, {"plugin", newPluginCmd}, {"audit", newAuditCmd}, {"completion", newCompletionCmd}, {"version", newVersionCmd}}},
	}
}

// machinery is a command that groups commands which people seldom type. Each of them may also be
// called without the group's name, as prompts, hooks and plugins do: chipset done is chipset agent done.
type machinery struct {
	name, short string
	commands    []command
}

func machineries() []machinery {
	return []machinery{
		{"agent", "Commands for agents and their clients", []command{
			{"prime", newPrimeCmd}, {"done", newDoneCmd}, {"fail", newFailCmd}, {"block", newBlockCmd}, {"handoff", newHandoffCmd}, {"request", newRequestCmd}, {"idle", newIdleCmd},
			{"hook", newHookCmd}, {"nudge", newNudgeCmd}, {"mcp", newMCPCmd}, {"client-hook", newClientHookCmd}, {"bridge", newBridgeCmd},
		}},
		{"dev", "Run single agents, benchmarks and simulations", []command{
			{"mayor", newMayorCmd}, {"polecat", newPolecatCmd}, {"refinery", newRefineryCmd}, {"witness", newWitnessCmd}, {"bench", newBenchCmd}, {"simulate", newSimulateCmd}, {"man", newManCmd},
		}},
	}
}

// addCommands puts the command table below root, or only the command that is called: making all
// of them takes a seventh of the start-up time.
func addCommands(root *cobra.Command, a *app, only string) {
	wanted := func(name string) bool { return only == "" || only == name }
	for _, g := range commandGroups() {
		for i, c := range append(g.first, g.more...) {
			if !wanted(c.name) {
				continue
			}
			cmd := c.make(a)
			cmd.GroupID = g.id
			if i >= len(g.first) {
				annotate(cmd, secondary)
			}
			root.AddCommand(cmd)
		}
	}
	for _, m := range machineries() {
		parent := newGroupCmd(m.name, m.short)
		for _, c := range m.commands {
			if wanted(m.name) {
				below := c.make(a)
				spellOut(below, m.name)
				parent.AddCommand(below)
			}
			if wanted(c.name) {
				plain := c.make(a)
				plain.Hidden = true
				root.AddCommand(plain)
			}
		}
		if wanted(m.name) {
			root.AddCommand(parent)
		}
	}
}

// onlyCommand returns the name of the only command that a command line needs, or "" if it may need others.
func onlyCommand(args []string) string {
	if len(args) == 0 || slices.Contains([]string{"completion", "dev", "man"}, args[0]) { // they print the whole table
		return ""
	}
	return args[0]
}

// secondary is the annotation of a command that chipset help lists only with --all.
const secondary = "secondary"

func annotate(cmd *cobra.Command, key string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[key] = ""
}

// spellOut adds the name of the machinery to the examples of a command and those below it.
func spellOut(cmd *cobra.Command, name string) {
	cmd.Example = strings.ReplaceAll(cmd.Example, "chipset ", "chipset "+name+" ")
	for _, sub := range cmd.Commands() {
		spellOut(sub, name)
	}
}

// plainName returns a command's name without that of its machinery.
func plainName(cmd *cobra.Command) string {
	name := commandName(cmd)
	for _, m := range machineries() {
		if rest, found := strings.CutPrefix(name, m.name+" "); found {
			return rest
		}
	}
	return name
}

// firstGuess returns the command that does what people type before they know the names, or "".
func firstGuess(name string) string {
	return map[string]string{
		"list": "chipset work list", "ls": "chipset work list", "add": "chipset work add TITLE", "new": "chipset work add TITLE",
		"create": "chipset work add TITLE", "edit": "chipset work edit BEAD", "cancel": "chipset work cancel BEAD", "rm": "chipset work cancel BEAD",
		"show": "chipset work show BEAD, or chipset why BEAD", "start": "chipset up", "run": "chipset up", "stop": "chipset down", "kill": "chipset down --now",
		"quit": "chipset down", "logs": "chipset log, or chipset tail AGENT", "watch": "chipset board", "top": "chipset board", "ui": "chipset board",
		"web": "chipset board --web", "ps": "chipset status", "st": "chipset status", "send": "chipset mail send AGENT --subject TEXT",
		"merge": "chipset queue list", "check": "chipset doctor", "config": "an editor on .chipset/chipset.yaml, then chipset validate",
	}[name]
}
