package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// commandGroup is a heading of the help and the commands below it.
type commandGroup struct {
	id, title string
	// first are the commands of chipset help, more those that chipset help --all adds.
	first, more []func(*app) *cobra.Command
}

// commandGroups lists the commands for people, in the order of the help.
func commandGroups() []commandGroup {
	type list = []func(*app) *cobra.Command
	return []commandGroup{
		{"work", "Work: say what is to be done",
			list{newWorkCmd, newConvoyCmd, newSlingCmd}, list{newUnslingCmd, newQueueCmd}},
		{"look", "Look: see what happens",
			list{newStatusCmd, newSpendCmd, newBoardCmd, newTailCmd, newAttachCmd, newDiffCmd, newWhyCmd}, list{newLogCmd, newAgentsCmd}},
		{"talk", "Talk: decide what only you can decide",
			list{newInboxCmd, newApproveCmd, newDenyCmd, newAnswerCmd, newMailCmd}, list{newReopenCmd, newPermissionsCmd}},
		{"run", "Run: start and stop the agents",
			list{newUpCmd, newDownCmd}, list{newResumeCmd}},
		{"setup", "Set up: make a rig, and keep it well",
			list{newInitCmd, newDoctorCmd}, list{newDemoCmd, newTrustCmd, newValidateCmd, newRuntimeCmd, newPluginCmd, newAuditCmd, newCompletionCmd, newVersionCmd}},
	}
}

// machinery is a command that holds those which people seldom type. Each of them may also be
// called without the word, as prompts, hooks and plugins do: chipset done is chipset agent done.
type machinery struct {
	name, short string
	make        []func(*app) *cobra.Command
}

func machineries() []machinery {
	return []machinery{
		{"agent", "What agents and their clients call", []func(*app) *cobra.Command{
			newPrimeCmd, newDoneCmd, newFailCmd, newBlockCmd, newHandoffCmd, newRequestCmd, newIdleCmd,
			newHookCmd, newNudgeCmd, newMCPCmd, newClientHookCmd, newBridgeCmd,
		}},
		{"dev", "Single agents, measurements and simulation", []func(*app) *cobra.Command{
			newMayorCmd, newPolecatCmd, newRefineryCmd, newWitnessCmd, newBenchCmd, newSimulateCmd, newManCmd,
		}},
	}
}

// addCommands puts the whole command table below root.
func addCommands(root *cobra.Command, a *app) {
	for _, g := range commandGroups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for i, construct := range append(g.first, g.more...) {
			cmd := construct(a)
			cmd.GroupID = g.id
			if i >= len(g.first) {
				annotate(cmd, secondary)
			}
			root.AddCommand(cmd)
		}
	}
	for _, m := range machineries() {
		parent := newGroupCmd(m.name, m.short)
		for _, construct := range m.make {
			below, plain := construct(a), construct(a)
			spellOut(below, m.name)
			parent.AddCommand(below)
			plain.Hidden = true
			root.AddCommand(plain)
		}
		root.AddCommand(parent)
	}
}

// secondary is the annotation of a command that chipset help shows with --all only.
const secondary = "secondary"

func annotate(cmd *cobra.Command, key string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[key] = ""
}

// spellOut puts the name of the machinery into the examples of a command and those below it.
func spellOut(cmd *cobra.Command, name string) {
	cmd.Example = strings.ReplaceAll(cmd.Example, "chipset ", "chipset "+name+" ")
	for _, sub := range cmd.Commands() {
		spellOut(sub, name)
	}
}

// plainName is a command's name without the word of its machinery.
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
