// Package command is any program that is not a coding agent's client: exit code 0 is done, and its
// output is read by people.
package command

import (
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/state/fault"
)

// Name stands for any other program.
const Name = "command"

// Client returns the client of any other program.
func Client(program string) agentcli.Client {
	return agentcli.Client{
		Preset: agentcli.Preset{Name: Name, Command: []string{program}, Prompt: agentcli.PromptStdin, Timeout: agentcli.DefaultWorkerTimeout},
		About:  agentcli.About{Title: "any command"},
		Reader: func() agentcli.Reader { return &agentcli.PlainText{Judge: judge} },
	}
}

// judge knows what a shell says with two exit codes; no other says whose fault it is. What
// it prints is nobody's word.
func judge(code int, _, _ string) agentcli.End {
	switch code {
	case 126:
		return agentcli.Failed(fault.ClientRefused, " (exit code 126)")
	case 127:
		return agentcli.Failed(fault.ClientMissing, " (exit code 127)")
	}
	return agentcli.End{}
}

// Shell returns the shell that runs the bead's description as a script. A command that is
// missing there is the fault of the script, which is the work.
func Shell() agentcli.Client {
	return agentcli.Client{
		Preset: agentcli.Preset{Name: "sh", Command: []string{"sh", "-e"}, Prompt: agentcli.PromptScript, Timeout: agentcli.DefaultWorkerTimeout},
		About:  agentcli.About{Title: "the bead's description, run as a script"},
		Reader: agentcli.NewPlainText,
	}
}
