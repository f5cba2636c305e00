// Package command is any program that is not a coding agent's client: exit code 0 is done, and its
// output is read by people.
package command

import "github.com/gastown-chipset/chipset/chipset/agentcli"

// Name stands for any other program.
const Name = "command"

// Client returns the client of any other program.
func Client(program string) agentcli.Client {
	return agentcli.Client{
		Preset: agentcli.Preset{Name: Name, Command: []string{program}, Prompt: agentcli.PromptStdin, Timeout: agentcli.DefaultWorkerTimeout},
		About:  agentcli.About{Title: "any command"},
		Reader: agentcli.NewPlainText,
	}
}

// Shell returns the shell that runs the bead's description as a script.
func Shell() agentcli.Client {
	return agentcli.Client{
		Preset: agentcli.Preset{Name: "sh", Command: []string{"sh", "-e"}, Prompt: agentcli.PromptScript, Timeout: agentcli.DefaultWorkerTimeout},
		About:  agentcli.About{Title: "the bead's description, run as a script"},
		Reader: agentcli.NewPlainText,
	}
}
