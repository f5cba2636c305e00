package agentcli

import (
	"slices"

	"github.com/gastown-chipset/chipset/chipset/process"
)

// goose is Block's goose.
type goose struct{}

func (goose) Preset() process.Preset {
	return process.Preset{
		Name:    "goose",
		Command: []string{"goose", "run", "--instructions", "{prompt_file}"},
		Prompt:  process.PromptFile,
		Timeout: process.DefaultWorkerTimeout,
		// It is told by its environment, see Equip.
		Permissions: map[string][]string{process.PermissionAsk: nil, process.PermissionEdit: nil, process.PermissionFull: nil},
	}
}

func (goose) About() About { return About{Title: "goose", ExitCode: "not tried"} }

// Equip says by the environment what it may do: it has no flag for that.
func (goose) Equip(argv []string, kit Kit) Equipped {
	e := Equipped{Argv: slices.Clone(argv)}
	switch kit.Permission {
	case process.PermissionAsk:
		e.Env = []string{"GOOSE_MODE=chat"}
	case process.PermissionEdit:
		e.Env = []string{"GOOSE_MODE=smart_approve"}
	case process.PermissionFull:
		e.Env = []string{"GOOSE_MODE=auto"}
	}
	return e
}

func (goose) Reader() Reader { return &plain{} }
