// Package amp is Sourcegraph's Amp, known from its documentation alone.
package amp

import (
	"slices"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/claude"
)

// Client returns Amp.
func Client() agentcli.Client {
	return agentcli.Client{
		Preset: agentcli.Preset{
			Name:    "amp",
			Command: []string{"amp", "-x", "--stream-json"},
			Prompt:  agentcli.PromptStdin,
			Timeout: agentcli.DefaultWorkerTimeout,
			Permissions: map[string][]string{
				agentcli.PermissionAsk:  nil,
				agentcli.PermissionEdit: nil,
				agentcli.PermissionFull: {"--dangerously-allow-all"},
			},
		},
		Configures: []string{".amp", "AGENT.md"},
		About:      agentcli.About{Title: "Amp", Stream: true, Resume: true, ExitCode: "not tried"},
		Equip:      equip,
		Reader:     claude.NewReader, // it is documented to print the same
		Nested:     []string{"AMP_CURRENT_THREAD_ID"},
		Home:       agentcli.Home{Own: []string{".config/amp", ".local/share/amp", ".cache/amp"}, Changed: []string{".local/share/amp", ".cache/amp"}},
		Hosts:      []string{"ampcode.com", "*.ampcode.com"},
		Keys:       []string{"AMP_*"},
	}
}

func equip(argv []string, kit agentcli.Kit) agentcli.Equipped {
	if kit.Resume != "" && len(argv) > 1 {
		argv = slices.Insert(argv, 1, "threads", "continue", kit.Resume)
	}
	return agentcli.Equipped{Argv: argv}
}
