package main

import (
	"io"
	"os"
	"os/exec"
	"slices"

	"github.com/spf13/cobra"
)

// paging is the pager that shows the output of a command.
type paging struct {
	screen *os.File // the terminal, for its width
	input  io.Closer
	cmd    *exec.Cmd
}

// pagedCommands returns the commands whose output may be longer than a screen.
func pagedCommands() []string {
	return []string{"agents", "agents list", "audit log", "convoy list", "convoy show", "diff", "hook list", "inbox", "log", "mail inbox", "mail peek", "mail read",
		"mail search", "mail trace", "queue diff", "queue list", "queue show", "status", "tail", "why", "work list", "work show"}
}

// page sends the output of a reading command on a terminal through $PAGER, or less. A missing
// pager is not an error.
func (a *app) page(cmd *cobra.Command) {
	follow := cmd.Flags().Lookup("follow")
	out, sunk := a.stdout.(*sink)
	if _, yes := a.terminal(); !yes || !sunk || a.noPager || a.env("TERM") == "dumb" || !a.interactive() ||
		follow != nil && follow.Changed || !slices.Contains(pagedCommands(), plainName(cmd)) {
		return
	}
	words := a.program("PAGER", "less")
	terminal, isFile := out.w.(*os.File)
	if _, err := exec.LookPath(words[0]); err != nil || !isFile {
		return
	}
	pager := exec.Command(words[0], words[1:]...)
	pager.Stdout, pager.Stderr, pager.Env = terminal, os.Stderr, os.Environ()
	if a.env("LESS") == "" {
		pager.Env = append(pager.Env, "LESS=FRX") // a short answer is printed, colours are shown
	}
	input, err := pager.StdinPipe()
	if err != nil || pager.Start() != nil {
		return
	}
	a.paging = &paging{screen: terminal, input: input, cmd: pager}
	out.w = input
}

// endPager waits until the person has read the answer.
func (a *app) endPager() {
	if a.paging != nil {
		_ = a.paging.input.Close()
		_ = a.paging.cmd.Wait() // how it ends says nothing about the command
	}
}
