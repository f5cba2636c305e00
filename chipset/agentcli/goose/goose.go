// Package goose is Block's goose, known from its documentation alone.
package goose

import (
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

// Client returns goose.
func Client() agentcli.Client {
	return agentcli.Client{
		Preset: agentcli.Preset{
			Name:    "goose",
			Command: []string{"goose", "run", "--instructions", "{prompt_file}"},
			Prompt:  agentcli.PromptFile,
			Timeout: agentcli.DefaultWorkerTimeout,
			// It has no flag for what it may do: equip sets its environment.
			Permissions: map[string][]string{agentcli.PermissionAsk: nil, agentcli.PermissionEdit: nil, agentcli.PermissionFull: nil},
		},
		Configures: []string{".goosehints", ".goose"},
		About:      agentcli.About{Title: "goose", ExitCode: "not tried"},
		Equip:      equip,
		Reader:     func() agentcli.Reader { return &agentcli.PlainText{Judge: judge} },
		Nested:     []string{"GOOSE_TERMINAL"},
		Home: agentcli.Home{Own: []string{".config/goose", ".local/share/goose", ".local/state/goose"},
			Changed: []string{".local/share/goose", ".local/state/goose"}},
		Hosts: []string{"api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "openrouter.ai"},
		Keys:  []string{"GOOSE_*", "ANTHROPIC_*", "OPENAI_*", "GOOGLE_API_KEY", "OPENROUTER_API_KEY", "DATABRICKS_*"},
	}
}

func equip(argv []string, kit agentcli.Kit) agentcli.Equipped {
	e := agentcli.Equipped{Argv: argv}
	switch kit.Permission {
	case agentcli.PermissionAsk:
		e.Env = []string{"GOOSE_MODE=chat"}
	case agentcli.PermissionEdit:
		e.Env = []string{"GOOSE_MODE=smart_approve"}
	case agentcli.PermissionFull:
		e.Env = []string{"GOOSE_MODE=auto"}
	}
	return e
}

// judge knows the words of the parser of its command line, which ends a run before any
// agent speaks. What comes later stands among the agent's own words.
func judge(code int, first, _ string) agentcli.End {
	const usageError = 2
	if code == usageError && strings.HasPrefix(first, "error: ") {
		return agentcli.RefusedFlags(first)
	}
	return agentcli.End{}
}
