package agentcli

import (
	"slices"
)

// amp is Sourcegraph's Amp, known from its documentation alone. Its stream is of
// Claude Code's form.
type amp struct{}

func (amp) Preset() Preset {
	return Preset{
		Name:    "amp",
		Command: []string{"amp", "-x", "--stream-json"},
		Prompt:  PromptStdin,
		Timeout: DefaultWorkerTimeout,
		Permissions: map[string][]string{
			PermissionAsk:  nil,
			PermissionEdit: nil,
			PermissionFull: {"--dangerously-allow-all"},
		},
	}
}

func (amp) About() About {
	return About{Title: "Amp", Stream: true, Resume: true, ExitCode: "not tried"}
}

func (amp) Equip(argv []string, kit Kit) Equipped {
	argv = slices.Clone(argv)
	if kit.Resume != "" && len(argv) > 1 {
		argv = slices.Insert(argv, 1, "threads", "continue", kit.Resume)
	}
	return Equipped{Argv: argv}
}

func (amp) Reader() Reader { return &claudeReader{} }
