// Package codex is OpenAI's Codex CLI.
package codex

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

//go:embed all:plugin
var files embed.FS

const name = "codex"

// Client returns Codex.
func Client() agentcli.Client {
	return agentcli.Client{
		Preset: agentcli.Preset{
			Name:    name,
			Command: []string{"codex", "exec", "--json"},
			Prompt:  agentcli.PromptStdin,
			Timeout: agentcli.DefaultWorkerTimeout,
			Permissions: map[string][]string{
				agentcli.PermissionAsk:  {"--sandbox", "read-only"},
				agentcli.PermissionEdit: {"--sandbox", "workspace-write"},
				agentcli.PermissionFull: {"--dangerously-bypass-approvals-and-sandbox"},
			},
		},
		Configures: []string{".codex", "AGENTS.md", "AGENTS.override.md"},
		About: agentcli.About{Title: "Codex", Tried: "0.169.0", Stream: true, Resume: true, MCP: true,
			ExitCode: "0 although its sandbox kept it from committing: with edit, git's own files are read-only and the rig commits for it"},
		Equip:    equip,
		Reader:   func() agentcli.Reader { return &reader{} },
		Passages: passages,
		Attended: func(argv []string) []string { return agentcli.Without(argv, []string{"exec", "e", "--json"}, nil) },
		Hooks:    hooks(),
		Plugin: &agentcli.Plugin{Name: name, Files: files, Settings: []string{"hooks.json"}, Steps: func(_, binary string) []agentcli.Step {
			return []agentcli.Step{{Argv: []string{"codex", "mcp", "add", agentcli.ServerName, "--", binary, "mcp", "--crew", name},
				Remove: []string{"codex", "mcp", "remove", agentcli.ServerName}}}
		}},
		Help: []string{"exec", "--help"},
		Account: &agentcli.Account{Keys: []string{"CODEX_API_KEY", "OPENAI_API_KEY"}, Status: []string{"login", "status"}, LoggedOut: "Not logged in",
			Other: ownProvider, Login: "codex login"},
		Shell: "shell",

		OwnSandbox: true,
		Home: agentcli.Home{Moved: "CODEX_HOME", Stand: true, Own: []string{".codex"}, Renewed: []string{".codex/auth.json"},
			Changed: []string{".codex/sessions", ".codex/log", ".codex/tmp", ".codex/shell_snapshots"}},
		Hosts: []string{"api.openai.com", "auth.openai.com", "chatgpt.com"},
		Keys:  []string{"OPENAI_*", "CODEX_*", "AZURE_OPENAI_*"},
		Nested: []string{"CODEX_CI", "CODEX_MANAGED_BY_NPM", "CODEX_MANAGED_PACKAGE_ROOT", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED",
			"CODEX_SESSION_ID", "CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID", "CODEX_VERSION"},
	}
}

// equip hands over the rig's tools. Codex runs their server outside its sandbox,
// so an agent that may write nowhere but in its worktree can still report.
func equip(argv []string, kit agentcli.Kit) agentcli.Equipped {
	// A login shell would put the system's own PATH in place of the worker's, and
	// the rig's commands would not be found.
	argv = append(argv, "-c", "allow_login_shell=false")
	if i := slices.Index(argv, "--sandbox"); kit.Boxed && i >= 0 && i+1 < len(argv) {
		argv[i+1] = "danger-full-access" // in a sandbox of its own inside of another no command would start
	}
	var env []string
	if kit.Hooks {
		env = []string{agentcli.HooksHandedOver}
		// Hooks that nobody reviewed do not run, and nobody is there to do it. In a
		// linked worktree Codex reads no hooks of the repository's own.
		argv = append(argv, "--dangerously-bypass-hook-trust")
		events := []string{"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"}
		if kit.Plan {
			events = append(events, "PreToolUse")
		}
		for _, event := range events {
			argv = append(argv, "-c", fmt.Sprintf("hooks.%s=[{hooks=[{type=\"command\",command=%s,timeout=%d}]}]", event,
				tomlText(agentcli.HookCommand(kit, name, event)), agentcli.HookTimeout))
		}
	}
	if kit.MCP {
		server := "mcp_servers." + agentcli.ServerName
		var args, identity []string
		for _, arg := range agentcli.MCPArgs() {
			args = append(args, tomlText(arg))
		}
		for _, entry := range kit.Identity {
			key, value, _ := strings.Cut(entry, "=")
			identity = append(identity, key+"="+tomlText(value))
		}
		argv = append(argv, "-c", server+".command="+tomlText(kit.Chipset), "-c", server+".args=["+strings.Join(args, ",")+"]",
			"-c", server+".env={"+strings.Join(identity, ",")+"}", "-c", server+`.default_tools_approval_mode="approve"`)
	}
	if kit.Resume != "" {
		argv = append(argv, "resume", kit.Resume)
		if !kit.Attended {
			argv = append(argv, "-") // the prompt is on standard input
		}
	}
	return agentcli.Equipped{Argv: argv, Env: env}
}

// ownProvider reports whether the settings name another service, which has an account of its own.
func ownProvider(settings string) bool {
	data, err := os.ReadFile(filepath.Join(settings, "config.toml"))
	return err == nil && bytes.Contains(data, []byte("model_provider"))
}

// tomlText writes a basic string of TOML.
func tomlText(s string) string {
	var text strings.Builder
	text.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			text.WriteRune('\\')
			text.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&text, "\\u%04X", r)
		default:
			text.WriteRune(r)
		}
	}
	text.WriteByte('"')
	return text.String()
}

func hooks() *agentcli.Hooks {
	return &agentcli.Hooks{
		Events: map[string]agentcli.Event{"SessionStart": agentcli.SessionStart, "UserPromptSubmit": agentcli.UserPromptSubmit,
			"PreToolUse": agentcli.PreToolUse, "PermissionRequest": agentcli.PermissionRequest, "PostToolUse": agentcli.PostToolUse,
			"Stop": agentcli.Stop, "SubagentStart": agentcli.SubagentStart, "SubagentStop": agentcli.SubagentStop, "SessionEnd": agentcli.SessionEnd,
			"wait": agentcli.Idle},
		Input:  func(data []byte) (agentcli.Input, error) { return agentcli.DecodeHook(data, tool) },
		Output: agentcli.EncodeAnswer,
		Limit:  limit,
		Wake: func(session, text string) []string {
			return []string{"codex", "queue", "--thread", session, "--message", text}
		},
	}
}

// limit is 10,000 bytes at every event: of more, the middle is cut out.
func limit(agentcli.Event) int { return 9_800 }

// tool says what a tool does with its input. Hooks hear of some tools by other names than the model does.
func tool(name string, input json.RawMessage) agentcli.Tool {
	switch name {
	case "apply_patch", "Edit", "Write":
		return agentcli.Tool{Does: agentcli.Edits, Given: agentcli.TextField(input, "file_path")}
	case "Bash", "bash", "shell", "local_shell", "exec_command", "exec", "unified_exec":
		return agentcli.Tool{Does: agentcli.Runs, Given: commandLine(input)}
	}
	return agentcli.Tool{}
}

// commandLine is the command that a tool is asked to run, "" where it is not known.
func commandLine(input json.RawMessage) string {
	if line := agentcli.TextField(input, "cmd", "command"); line != "" {
		return line
	}
	var words struct{ Command []string }
	if json.Unmarshal(input, &words) != nil || len(words.Command) != 3 {
		return ""
	}
	// A shell and its -c: the line is what counts.
	if i := slices.IndexFunc(words.Command, func(arg string) bool { return strings.HasPrefix(arg, "-") && strings.HasSuffix(arg, "c") }); i == 1 {
		return words.Command[2]
	}
	return ""
}
