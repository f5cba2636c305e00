// Package claude is Claude Code. Package claudeteam, below it, is what its agent teams share.
package claude

import (
	"embed"
	"runtime"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

//go:embed all:plugin
var files embed.FS

const name = "claude"

// Client returns Claude Code.
func Client() agentcli.Client {
	return agentcli.Client{
		Preset: agentcli.Preset{
			Name:    name,
			Command: []string{"claude", "-p", "--output-format", "stream-json", "--verbose"},
			Prompt:  agentcli.PromptStdin,
			Timeout: agentcli.DefaultWorkerTimeout,
			Permissions: map[string][]string{
				agentcli.PermissionAsk:  nil,
				agentcli.PermissionEdit: {"--permission-mode", "acceptEdits"},
				agentcli.PermissionFull: {"--permission-mode", "bypassPermissions"},
			},
		},
		Configures: []string{".claude", ".mcp.json", "CLAUDE.md", "CLAUDE.local.md"},
		About: agentcli.About{Title: "Claude Code", Tried: "2.1.329", Stream: true, Cost: true, Resume: true, MCP: true,
			AddMCP:   "claude mcp add chipset -- chipset mcp --crew claude",
			ExitCode: "1 with subtype success for an API error; 0 after a refused tool, after SIGINT, and when it was told to go on too often"},
		Equip:    equip,
		Reader:   NewReader,
		Passages: Passages,
		Attended: func(argv []string) []string {
			return agentcli.Without(argv, []string{"-p", "--print", "--verbose"}, []string{"--output-format", "--input-format"})
		},
		Hooks: hooks(),
		Plugin: &agentcli.Plugin{Name: name, Files: files, Steps: func(dir, _ string) []agentcli.Step {
			return []agentcli.Step{
				{Argv: []string{"claude", "plugin", "marketplace", "add", dir}, Remove: []string{"claude", "plugin", "marketplace", "remove", "chipset"}},
				{Argv: []string{"claude", "plugin", "install", "chipset@chipset"}, Remove: []string{"claude", "plugin", "uninstall", "chipset@chipset"}}}
		}},
		// On macOS its login is in the keychain, under a name that depends on the variable.
		Home: agentcli.Home{Moved: "CLAUDE_CONFIG_DIR", Stand: runtime.GOOS != "darwin", Copied: []string{".claude.json"},
			Renewed: []string{".claude/.credentials.json"}, Own: []string{".claude", ".claude.json", ".cache/claude-cli-nodejs"},
			Changed: []string{".claude/projects", ".claude/todos", ".claude/tasks", ".claude/shell-snapshots", ".claude/session-env", ".claude/sessions",
				".claude/statsig", ".claude/debug", ".claude/file-history", ".claude/paste-cache", ".claude/plans", ".cache/claude-cli-nodejs"}},
		Hosts: []string{"api.anthropic.com", "console.anthropic.com", "platform.claude.com", "claude.ai", "statsig.anthropic.com", "mcp-proxy.anthropic.com"},
		Keys: []string{"ANTHROPIC_*", "CLAUDE_*", "API_TIMEOUT_MS", "BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS", "BASH_MAX_OUTPUT_LENGTH",
			"DISABLE_*", "IS_SANDBOX", "MAX_THINKING_TOKENS", "MAX_MCP_OUTPUT_TOKENS", "MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "USE_BUILTIN_RIPGREP"},
		Help: []string{"--help"},
		Account: &agentcli.Account{Keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK",
			"CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"}, Status: []string{"auth", "status"}, LoggedOut: `"loggedIn": false`, Login: "claude auth login"},
		Shell: "Bash",
		Nested: []string{"CLAUDECODE", "CLAUDE_CODE_CHILD_NOTES_DIR", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_EXECPATH",
			"CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN", "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_SESSION_ID",
			"CLAUDE_CODE_SSE_PORT", "CLAUDE_EFFORT", "CLAUDE_PID", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PROJECT_DIR"},
	}
}

// equip lets the agent report, talk and read without being asked: without that it
// could neither finish nor ask for a person.
func equip(argv []string, kit agentcli.Kit) agentcli.Equipped {
	switch {
	case kit.Resume != "":
		argv = append(argv, "--resume", kit.Resume)
	case kit.Session != "":
		argv = append(argv, "--session-id", kit.Session)
	}
	var allowed []string
	for _, command := range agentcli.WorkerCommands() {
		allowed = append(allowed, "Bash(chipset "+command+":*)")
	}
	allowed = append(allowed, "Bash(export CHIPSET_AGENT=*)") // what the rig puts before the commands of a subagent
	if kit.Permission == agentcli.PermissionEdit {
		allowed = append(allowed, "Bash(git add:*)", "Bash(git commit:*)", "Bash(git status:*)")
		if kit.Test != "" {
			allowed = append(allowed, "Bash("+kit.Test+")")
		}
	}
	e := agentcli.Equipped{Files: map[string]string{}}
	if kit.Hooks && !agentcli.HasOption(argv, "--settings") {
		const file = "settings.json"
		e.Files[file] = agentcli.Settings(map[string]any{"hooks": agentcli.HookTable(kit, name, 1, hooksOfWorker(kit.Plan))})
		argv, e.Env = append(argv, "--settings="+kit.Files+file), []string{agentcli.HooksHandedOver}
	}
	if kit.MCP {
		const file = "mcp.json"
		e.Files[file] = agentcli.Settings(map[string]any{"mcpServers": agentcli.MCPServers(kit, nil)})
		argv = append(argv, "--mcp-config="+kit.Files+file)
		allowed = append(allowed, "mcp__"+agentcli.ServerName)
	}
	e.Argv = append(argv, "--allowedTools="+strings.Join(allowed, ","))
	return e
}
