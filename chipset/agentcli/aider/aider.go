// Package aider is the client of that name. It commits by itself, and prints for people.
package aider

import (
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

// Client returns aider.
func Client() agentcli.Client {
	return agentcli.Client{
		Preset: agentcli.Preset{
			Name:    "aider",
			Command: []string{"aider", "--no-stream", "--no-pretty", "--no-check-update", "--message-file={prompt_file}"},
			Prompt:  agentcli.PromptFile,
			Timeout: agentcli.DefaultWorkerTimeout,
			Permissions: map[string][]string{
				agentcli.PermissionAsk:  nil,
				agentcli.PermissionEdit: {"--yes-always", "--no-suggest-shell-commands"},
				agentcli.PermissionFull: {"--yes-always"},
			},
		},
		Configures: []string{".aider.conf.yml", ".aider.model.*", ".aiderignore", "CONVENTIONS.md"},
		About:      agentcli.About{Title: "aider", ExitCode: "0 after an API error too: a branch without a change shows it"},
		Reader:     func() agentcli.Reader { return &agentcli.PlainText{Judge: judge} },
		Home:       agentcli.Home{Own: []string{".aider", ".aider.conf.yml"}, Changed: []string{".aider"}},
		Hosts:      []string{"api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "api.deepseek.com", "openrouter.ai", "api.groq.com"},
		Keys:       []string{"AIDER_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "DEEPSEEK_*", "OPENROUTER_API_KEY", "GROQ_API_KEY"},
	}
}

// judge knows the words of Python's argparse, which end a run before any agent speaks. What
// comes later stands among the agent's own words.
func judge(code int, _, last string) agentcli.End {
	const usageError = 2
	if code == usageError && strings.HasPrefix(last, "aider: error: ") {
		return agentcli.RefusedFlags(last)
	}
	return agentcli.End{}
}
