// Package opencode is the client of that name.
package opencode

import (
	"embed"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

//go:embed all:plugin
var files embed.FS

const name = "opencode"

// pluginFile is what opencode loads: the whole plugin.
const pluginFile = "plugin/chipset.js"

func plugin() *agentcli.Plugin {
	return &agentcli.Plugin{Name: name, Files: files, Settings: []string{pluginFile},
		Steps: func(_, _ string) []agentcli.Step { return nil },
		SettingsIn: func(env func(string) string) string {
			if config := env("XDG_CONFIG_HOME"); filepath.IsAbs(config) {
				return filepath.Join(config, name)
			}
			return ""
		}}
}

// Client returns opencode.
func Client() agentcli.Client {
	return agentcli.Client{
		Preset: agentcli.Preset{
			Name:    name,
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
		Hooks:  hooks(),
		Plugin: plugin(),
		Help:   []string{"run", "--help"},
		Shell:  "bash",
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
	if kit.Hooks {
		if text, err := plugin().ForWorker(pluginFile, kit.Chipset); err == nil { // of files that are part of this binary
			const file = "opencode.js"
			e.Files = map[string]string{file: text}
			e.Env = append(e.Env, agentcli.HooksHandedOver)
			config["plugin"] = []string{"file://" + kit.Files + file}
		}
	}
	if text, err := json.Marshal(config); err == nil && len(config) > 0 {
		e.Env = append(e.Env, "OPENCODE_CONFIG_CONTENT="+string(text))
	}
	return e
}

// hooks are asked by the plugin, by the names that opencode has for the steps, or of its own where there are none.
func hooks() *agentcli.Hooks {
	return &agentcli.Hooks{
		Events: map[string]agentcli.Event{"session.start": agentcli.SessionStart, "chat.message": agentcli.UserPromptSubmit,
			"tool.execute.before": agentcli.PreToolUse, "tool.execute.after": agentcli.PostToolUse, "session.idle": agentcli.Stop,
			"wait": agentcli.Idle, "session.end": agentcli.SessionEnd},
		Input:   func(data []byte) (agentcli.Input, error) { return agentcli.DecodeHook(data, tool) },
		Output:  agentcli.EncodeAnswer,
		Limit:   limit,
		EnvFile: "CHIPSET_ENV_FILE",
		Resumed: true, HoldsInput: true,
	}
}

// limit is small beside a tool's output, of which opencode shows 50 KB. Otherwise there is none.
func limit(e agentcli.Event) int {
	if e == agentcli.PostToolUse {
		return 8_000
	}
	return 30_000
}

// tool says what a tool does with its input.
func tool(name string, input json.RawMessage) agentcli.Tool {
	switch name {
	case "bash":
		return agentcli.Tool{Does: agentcli.Runs, Given: agentcli.TextField(input, "command")}
	case "edit", "multiedit", "write", "patch", "apply_patch":
		return agentcli.Tool{Does: agentcli.Edits, Given: agentcli.TextField(input, "filePath")}
	}
	return agentcli.Tool{Given: agentcli.TextField(input, "url")}
}
