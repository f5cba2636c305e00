// Package opencode is the client of that name.
package opencode

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

// Client returns opencode.
func Client() agentcli.Client {
	return agentcli.Client{
		Preset: agentcli.Preset{
			Name:    "opencode",
			Command: []string{"opencode", "run", "--format", "json"},
			Prompt:  agentcli.PromptStdin,
			Timeout: agentcli.DefaultWorkerTimeout,
			// Between its own configuration and everything it has no flag: edit is a
			// configuration that equip hands over.
			Permissions: map[string][]string{
				agentcli.PermissionAsk:  nil,
				agentcli.PermissionEdit: nil,
				agentcli.PermissionFull: {"--auto"},
			},
		},
		Configures: []string{".opencode", "opencode.json", "opencode.jsonc"},
		About: agentcli.About{Title: "opencode", Tried: "1.18.33", Stream: true, Cost: true, Resume: true, MCP: true,
			ExitCode: "0 after a refused tool; permissions that its configuration does not set are granted"},
		Equip:    equip,
		Reader:   func() agentcli.Reader { return &reader{} },
		Passages: passages,
		Attended: func(argv []string) []string {
			return agentcli.Without(argv, []string{"run", "--auto"}, []string{"--format"})
		},
		Help:  []string{"run", "--help"},
		Shell: "bash",
		Home: agentcli.Home{Own: []string{".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"},
			Changed: []string{".local/share/opencode", ".local/state/opencode", ".cache/opencode"}},
		Hosts:  []string{"opencode.ai", "*.opencode.ai", "models.dev", "api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "openrouter.ai", "api.groq.com"},
		Keys:   []string{"OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "GOOGLE_GENERATIVE_AI_API_KEY", "OPENROUTER_API_KEY", "GROQ_API_KEY"},
		Nested: []string{"OPENCODE", "OPENCODE_CLIENT", "OPENCODE_PID"},
	}
}

// bashRules lets a worker run the rig's commands that are meant for it, and more.
func bashRules(more ...string) map[string]string {
	rules := map[string]string{"*": "deny"}
	for _, command := range agentcli.WorkerCommands() {
		rules["chipset "+command+"*"] = "allow"
	}
	for _, pattern := range more {
		rules[pattern] = "allow"
	}
	return rules
}

func equip(argv []string, kit agentcli.Kit) agentcli.Equipped {
	if kit.Resume != "" {
		argv = append(argv, "--session", kit.Resume)
	}
	config := map[string]any{}
	if kit.Plan {
		// It has no hooks that could ask; once the plan is approved and it is continued, it may more.
		config["permission"] = map[string]any{"edit": "deny", "external_directory": "deny", "bash": bashRules()}
	} else if kit.Permission == agentcli.PermissionEdit {
		// The last rule that matches counts, and they are sorted when written.
		bash := bashRules("git add *", "git commit *", "git status*")
		for _, line := range append(slices.Clone(kit.Granted), kit.Test) {
			if !strings.ContainsAny(line, "*?") && line > "*" { // as a pattern it would allow something else
				bash[line] = "allow"
			}
		}
		config["permission"] = map[string]any{"edit": "allow", "webfetch": "deny", "external_directory": "deny", "bash": bash}
	}
	if kit.MCP {
		config["mcp"] = map[string]any{agentcli.ServerName: map[string]any{"type": "local", "enabled": true, "environment": kit.IdentityMap(),
			"command": append([]string{kit.Chipset}, agentcli.MCPArgs()...)}}
	}
	e := agentcli.Equipped{Argv: argv}
	if text, err := json.Marshal(config); err == nil && len(config) > 0 {
		e.Env = []string{"OPENCODE_CONFIG_CONTENT=" + string(text)}
	}
	return e
}
