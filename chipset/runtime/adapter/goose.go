package adapter

import (
	"slices"

	"github.com/gastown-chipset/chipset/chipset/runtime"
)

// goose is Block's goose.
type goose struct{}

func (goose) Preset() runtime.Preset {
	return runtime.Preset{
		Name:    "goose",
		Command: []string{"goose", "run", "--instructions", "{prompt_file}"},
		Prompt:  runtime.PromptFile,
		Timeout: runtime.DefaultWorkerTimeout,
		// It is told by its environment, see Equip.
		Permissions: map[string][]string{runtime.PermissionAsk: nil, runtime.PermissionEdit: nil, runtime.PermissionFull: nil},
	}
}

func (goose) About() About { return About{Title: "goose", ExitCode: "not tried"} }

// Equip says by the environment what it may do: it has no flag for that.
func (goose) Equip(argv []string, kit Kit) Equipped {
	e := Equipped{Argv: slices.Clone(argv)}
	switch kit.Permission {
	case runtime.PermissionAsk:
		e.Env = []string{"GOOSE_MODE=chat"}
	case runtime.PermissionEdit:
		e.Env = []string{"GOOSE_MODE=smart_approve"}
	case runtime.PermissionFull:
		e.Env = []string{"GOOSE_MODE=auto"}
	}
	return e
}

func (goose) Reader() Reader { return &plain{} }
