package agentcli

import (
	"slices"
)

// goose is Block's goose.
type goose struct{}

func (goose) Preset() Preset {
	return Preset{
		Name:    "goose",
		Command: []string{"goose", "run", "--instructions", "{prompt_file}"},
		Prompt:  PromptFile,
		Timeout: DefaultWorkerTimeout,
		// It is told by its environment, see Equip.
		Permissions: map[string][]string{PermissionAsk: nil, PermissionEdit: nil, PermissionFull: nil},
	}
}

func (goose) About() About { return About{Title: "goose", ExitCode: "not tried"} }

// Equip says by the environment what it may do: it has no flag for that.
func (goose) Equip(argv []string, kit Kit) Equipped {
	e := Equipped{Argv: slices.Clone(argv)}
	switch kit.Permission {
	case PermissionAsk:
		e.Env = []string{"GOOSE_MODE=chat"}
	case PermissionEdit:
		e.Env = []string{"GOOSE_MODE=smart_approve"}
	case PermissionFull:
		e.Env = []string{"GOOSE_MODE=auto"}
	}
	return e
}

func (goose) Reader() Reader { return &plain{} }
