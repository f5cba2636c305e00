// Package agentcli knows the command-line clients of coding agents: how each is
// run headless, what its output says, and when its exit code lies.
//
// A client is one small file behind one interface, [Client], and stands in one
// list, [All]. It never runs anything itself: it says how, the supervisor of
// package process does, and what comes out is put through the client's [Reader].
//
//	preset ──Build──▶ argv ──Equip──▶ argv, environment, files ──▶ supervisor
//	                                                                  │ log
//	figures, session, how it ended  ◀──Reader──  lines of output  ◀───┘
//
// The formats are those of the programs as they were tried; docs/clients.md says
// which versions. They move, so everything here is tolerant: a line that is not
// understood is skipped, and a client whose words are not understood at all is
// judged by its exit code, like any other command.
package agentcli

// Client is what a rig knows of one program.
type Client interface {
	// Preset is how it is run: command line, prompt, permissions. Its name is the
	// client's name.
	Preset() Preset
	// About says in words what a person wants to know before choosing it.
	About() About
	// Equip adds to a command line what the rig hands over.
	Equip(argv []string, kit Kit) Equipped
	// Reader reads the output of one session, resumed runs included.
	Reader() Reader
}

// About is what a client can do, as far as a rig makes use of it.
type About struct {
	// Title is the program's own name.
	Title string
	// Tried is the version this was tried with, "" for what only its documentation says.
	Tried string
	// Stream: turns, tools and tokens can be watched. Cost: it says what it cost.
	Stream, Cost bool
	// Resume: an ended session can be continued with what it knows.
	Resume bool
	// Hooks and MCP: the rig's own can be handed over on the command line.
	Hooks, MCP bool
	// ExitCode is what its exit code does not say, "" where it can be trusted.
	ExitCode string
}

// Kit is what a rig hands to a worker's client.
type Kit struct {
	// Chipset is the rig's own binary, by its absolute path.
	Chipset string
	// Identity is who the worker is, NAME=VALUE, for helpers of a client that
	// does not pass its own environment on to them.
	Identity []string
	// Permission is ask, edit, full or "".
	Permission string
	// Session is a fresh UUID, for clients that let it be chosen.
	Session string
	// Resume is the session to continue, "" to begin one.
	Resume string
	// Files is the absolute path that, with a name behind it, is that of a file
	// the client can be given.
	Files string
	// Plan: nothing may be changed yet, because a plan must be approved first.
	Plan bool
	// Granted are rules that the person has approved, such as Bash(npm publish), for
	// clients that can't ask the rig while they run.
	Granted []string
	// Hooks: the binary answers the client's hooks. MCP: it serves the rig's tools.
	Hooks, MCP bool
}

// Equipped is a command line with what it needs around it.
type Equipped struct {
	Argv []string
	// Env has NAME=VALUE entries.
	Env []string
	// Files are to be written before the command starts, by their names.
	Files map[string]string
}

// serverName is what the rig's MCP server is called in every client.
const serverName = "chipset"

// mcpArgs are the arguments with which the rig's binary serves tools.
func mcpArgs() []string { return []string{"mcp"} }

// nestedMarkers are variables by which a client tells its children that they run
// inside it. A rig started from within an agent must not pass them to its workers:
// they would take themselves for that agent's tools, and some refuse to start. The
// names are those that the versions tried give their children.
func nestedMarkers() []string {
	return []string{
		"AGENT", "AI_AGENT",
		"CLAUDECODE", "CLAUDE_CODE_CHILD_NOTES_DIR", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_EXECPATH",
		"CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN", "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_SESSION_ID",
		"CLAUDE_CODE_SSE_PORT", "CLAUDE_EFFORT", "CLAUDE_PID", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PROJECT_DIR",
		"CODEX_CI", "CODEX_MANAGED_BY_NPM", "CODEX_MANAGED_PACKAGE_ROOT", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_SESSION_ID",
		"CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID", "CODEX_VERSION",
		"GEMINI_CLI", "GEMINI_CLI_NO_RELAUNCH", "GEMINI_CLI_TRUST_WORKSPACE",
		"OPENCODE", "OPENCODE_CLIENT", "OPENCODE_PID",
		"AMP_CURRENT_THREAD_ID", "CURSOR_AGENT", "GOOSE_TERMINAL",
	}
}

// Inherit filters an environment for a worker: all of it but what marks it as the
// tool of another agent. Keys and proxies pass; nothing of it is ever logged.
func Inherit(environ []string) []string {
	drop := map[string]bool{}
	for _, name := range nestedMarkers() {
		drop[name] = true
	}
	var kept []string
	for _, entry := range environ {
		if !drop[variable(entry)] {
			kept = append(kept, entry)
		}
	}
	return kept
}

func variable(entry string) string {
	for i := range len(entry) {
		if entry[i] == '=' {
			return entry[:i]
		}
	}
	return entry
}
