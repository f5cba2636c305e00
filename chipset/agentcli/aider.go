package agentcli

import (
	"slices"
)

// aider is the client of that name. It commits by itself, and prints for people.
type aider struct{}

func (aider) Preset() Preset {
	return Preset{
		Name:    "aider",
		Command: []string{"aider", "--no-stream", "--no-pretty", "--no-check-update", "--message-file={prompt_file}"},
		Prompt:  PromptFile,
		Timeout: DefaultWorkerTimeout,
		Permissions: map[string][]string{
			PermissionAsk:  nil,
			PermissionEdit: {"--yes-always", "--no-suggest-shell-commands"},
			PermissionFull: {"--yes-always"},
		},
	}
}

func (aider) About() About {
	return About{Title: "aider", ExitCode: "0 after an API error too: a branch without a change is what tells"}
}

func (aider) Equip(argv []string, _ Kit) Equipped { return Equipped{Argv: slices.Clone(argv)} }

func (aider) Reader() Reader { return &plain{} }
