// Package gemini is Google's Gemini CLI.
package gemini

import (
	"embed"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

//go:embed all:plugin
var files embed.FS

const name = "gemini"

// Client returns Gemini CLI.
func Client() agentcli.Client {
	return agentcli.Client{
		Preset: agentcli.Preset{
			Name:    name,
			Command: []string{"gemini", "--output-format", "stream-json", "--skip-trust"},
			Prompt:  agentcli.PromptStdin,
			Timeout: agentcli.DefaultWorkerTimeout,
			Permissions: map[string][]string{
				agentcli.PermissionAsk:  {"--approval-mode", "default"},
				agentcli.PermissionEdit: {"--approval-mode", "auto_edit"},
				agentcli.PermissionFull: {"--approval-mode", "yolo"},
			},
		},
		Configures: []string{".gemini", "GEMINI.md"},
		About: agentcli.About{Title: "Gemini CLI", Tried: "0.61.0", Stream: true, Resume: true, MCP: true,
			ExitCode: "the HTTP status of an API error modulo 256, which looks like death by a signal"},
		Equip:  equip,
		Reader: func() agentcli.Reader { return &reader{} },
		// It looks for no session in the wall-clock minute in which that was made.
		Loadable: func(began time.Time) time.Time { return began.Truncate(time.Minute).Add(time.Minute) },
		Passages: passages,
		Attended: func(argv []string) []string { return agentcli.Without(argv, nil, []string{"--output-format", "-o"}) },
		Hooks:    hooks(),
		Plugin: &agentcli.Plugin{Name: name, Files: files, Steps: func(dir, _ string) []agentcli.Step {
			return []agentcli.Step{{Argv: []string{"gemini", "extensions", "link", dir}, Unattended: []string{"--consent"},
				Present: "already installed", Remove: []string{"gemini", "extensions", "uninstall", "chipset"}}}
		}},
		Help: []string{"--help"},
		Account: &agentcli.Account{Keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA",
			"GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT"}, Other: remembered, Login: "gemini"},
		Shell: "run_shell_command",
		Home: agentcli.Home{Moved: "GEMINI_CLI_HOME", MovedAbove: true, Stand: true, Own: []string{".gemini"},
			Changed: []string{".gemini/tmp", ".gemini/history"}, Renewed: []string{".gemini/oauth_creds.json"}},
		Hosts:  []string{"generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "oauth2.googleapis.com", "aiplatform.googleapis.com", "*.aiplatform.googleapis.com", "play.googleapis.com"},
		Keys:   []string{"GEMINI_*", "GOOGLE_*", "GOOGLE_APPLICATION_CREDENTIALS"},
		Nested: []string{"GEMINI_CLI", "GEMINI_CLI_NO_RELAUNCH", "GEMINI_CLI_TRUST_WORKSPACE"},
	}
}

// equip hands settings over as the system's defaults, the lowest of its layers:
// what the person has set stays in force.
func equip(argv []string, kit agentcli.Kit) agentcli.Equipped {
	switch {
	case kit.Resume != "":
		argv = append(argv, "--resume", kit.Resume)
	case kit.Session != "":
		argv = append(argv, "--session-id", kit.Session)
	}
	e := agentcli.Equipped{Argv: argv}
	parts := map[string]any{}
	if kit.Hooks {
		events := []agentcli.HookEvent{{Name: "SessionStart"}, {Name: "BeforeAgent"}, {Name: "AfterTool"}, {Name: "AfterAgent"}, {Name: "SessionEnd"}}
		if kit.Plan {
			events = append(events, agentcli.HookEvent{Name: "BeforeTool"})
		}
		const milliseconds = 1000
		parts["hooks"] = agentcli.HookTable(kit, name, milliseconds, events)
		e.Env = []string{agentcli.HooksHandedOver}
	}
	if kit.MCP {
		parts["mcpServers"] = agentcli.MCPServers(kit, map[string]any{"trust": true})
	}
	if kit.Permission == agentcli.PermissionEdit && kit.Test != "" { // with any words behind it
		parts["tools"] = map[string]any{"allowed": []string{"run_shell_command(" + kit.Test + ")"}}
	}
	if len(parts) > 0 {
		const file = "gemini.json"
		e.Files = map[string]string{file: agentcli.Settings(parts)}
		e.Env = append(e.Env, "GEMINI_CLI_SYSTEM_DEFAULTS_PATH="+kit.Files+file)
	}
	return e
}

// remembered reports whether the settings hold a login or a key, or may lead to one.
func remembered(settings string) bool {
	for _, name := range []string{"oauth_creds.json", "google_accounts.json", "gemini-credentials.json", "settings.json", ".env"} {
		if _, err := os.Lstat(filepath.Join(settings, name)); err == nil {
			return true
		}
	}
	return false
}

func hooks() *agentcli.Hooks {
	return &agentcli.Hooks{
		Events: map[string]agentcli.Event{"SessionStart": agentcli.SessionStart, "BeforeAgent": agentcli.UserPromptSubmit, "BeforeTool": agentcli.PreToolUse,
			"AfterTool": agentcli.PostToolUse, "AfterAgent": agentcli.Stop, "SessionEnd": agentcli.SessionEnd},
		Input:  func(data []byte) (agentcli.Input, error) { return agentcli.DecodeHook(data, tool) },
		Output: output,
		Limit:  limit,
	}
}

// limit is small beside a tool's output: of more than about 40,000 characters of both the middle is cut out, and
// what the rig adds stands at the end. Otherwise no limit was seen up to 200,000.
func limit(e agentcli.Event) int {
	if e == agentcli.PostToolUse {
		return 8_000
	}
	return 100_000
}

func output(e agentcli.Event, name string, a agentcli.Answer) agentcli.Output {
	if reason := a.GoOn + a.Deny; reason != "" { // an answer is one or the other
		return agentcli.EncodeDecision("deny", string(reason))
	}
	return agentcli.EncodeAnswer(e, name, a)
}

// tool says what a tool does with its input.
func tool(name string, input json.RawMessage) agentcli.Tool {
	switch name {
	case "write_file", "replace":
		return agentcli.Tool{Does: agentcli.Edits, Given: agentcli.TextField(input, "file_path")}
	case "run_shell_command":
		return agentcli.Tool{Does: agentcli.Runs, Given: agentcli.TextField(input, "command")}
	}
	return agentcli.Tool{Given: agentcli.TextField(input, "url")}
}
