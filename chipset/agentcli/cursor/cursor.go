// Package cursor is Cursor's command-line agent, known from its documentation alone.
package cursor

import (
	"slices"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

// Client returns Cursor's agent.
func Client() agentcli.Client {
	return agentcli.Client{
		Preset: agentcli.Preset{
			Name:    "cursor",
			Command: []string{"cursor-agent", "-p", "--output-format", "stream-json"},
			Prompt:  agentcli.PromptArg,
			Timeout: agentcli.DefaultWorkerTimeout,
			Permissions: map[string][]string{
				agentcli.PermissionAsk:  nil,
				agentcli.PermissionEdit: {"--trust"},
				agentcli.PermissionFull: {"--trust", "--force"},
			},
		},
		Configures: []string{".cursor", ".cursorrules", ".cursorignore"},
		About:      agentcli.About{Title: "Cursor", Stream: true, Resume: true, ExitCode: "not tried"},
		Equip:      equip,
		Reader:     func() agentcli.Reader { return &reader{} },
		Nested:     []string{"CURSOR_AGENT"},
		Home:       agentcli.Home{Own: []string{".cursor", ".config/cursor"}, Changed: []string{".cursor/chats", ".cursor/projects", ".config/cursor"}},
		Hosts:      []string{"api2.cursor.sh", "*.cursor.sh", "cursor.com", "*.cursor.com"},
		Keys:       []string{"CURSOR_*"},
	}
}

// equip puts options before the prompt, which is the last argument.
func equip(argv []string, kit agentcli.Kit) agentcli.Equipped {
	if kit.Resume != "" && len(argv) > 1 {
		argv = slices.Insert(argv, 1, "--resume="+kit.Resume)
	}
	return agentcli.Equipped{Argv: argv}
}
