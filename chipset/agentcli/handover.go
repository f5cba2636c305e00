package agentcli

import (
	"encoding/json"
	"maps"
	"strings"
)

// ServerName is what the rig's MCP server is called in every client.
const ServerName = "chipset"

// MCPArgs are the arguments with which the rig's binary serves tools.
func MCPArgs() []string { return []string{"mcp"} }

// MCPServers is the configuration of MCP servers that most clients read; more holds keys of
// the client's own.
func MCPServers(kit Kit, more map[string]any) map[string]any {
	server := map[string]any{"command": kit.Chipset, "args": MCPArgs(), "env": kit.IdentityMap()}
	maps.Copy(server, more)
	return map[string]any{ServerName: server}
}

// WorkerCommands are the commands of the rig that a worker may run: to report, to talk,
// to read, and to propose work. Its broker runs these and ClientCommands and nothing
// else, and clients allow them without asking.
func WorkerCommands() []string {
	return []string{"done", "fail", "block", "prime", "status", "why", "idle", "hook show", "hook touch",
		"mail inbox", "mail read", "mail peek", "mail search", "mail wait", "mail send", "mail reply", "mail forward",
		"nudge show", "nudge send", "nudge respond", "nudge wait", "handoff show", "handoff write",
		"request plan", "request permission", "request answer", "work add", "work list", "work show",
		"queue list", "convoy list", "convoy show", "agents", "version"}
}

// ClientCommands are the commands that the client of a worker runs by itself: its hooks,
// and the MCP server.
func ClientCommands() []string { return []string{"client-hook", "mcp"} }

// IdentityMap returns Identity by names.
func (k *Kit) IdentityMap() map[string]string {
	env := map[string]string{}
	for _, entry := range k.Identity {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	return env
}

// HookTimeout is how long a client waits for a hook of the rig, in seconds. The
// hooks answer in milliseconds and give up by themselves before this.
const HookTimeout = 10

// HooksHandedOver silences the hooks of a plugin that the person has installed, in a
// worker that has the rig's: everything would be said twice.
const HooksHandedOver = EnvWorkerHooks + "=1"

// EnvWorkerHooks is set in a worker whose client was given the rig's hooks.
const EnvWorkerHooks = "CHIPSET_WORKER_HOOKS"

// HookEvent is an event of a client at which the rig is asked. Matcher limits it to some
// tools; "" is all.
type HookEvent struct{ Name, Matcher string }

// HookTable is the configuration of hooks that several clients read; unit is how many of
// their units of time-out make a second.
func HookTable(kit Kit, client string, unit int, events []HookEvent) map[string]any {
	table := map[string]any{}
	for _, on := range events {
		entry := map[string]any{"hooks": []any{map[string]any{"type": "command", "name": ServerName,
			"command": HookCommand(kit, client, on.Name), "timeout": HookTimeout * unit}}}
		if on.Matcher != "" {
			entry["matcher"] = on.Matcher
		}
		table[on.Name] = []any{entry}
	}
	return table
}

// HookCommand is a line for a shell.
func HookCommand(kit Kit, client, event string) string {
	return "'" + strings.ReplaceAll(kit.Chipset, "'", `'\''`) + "' client-hook " + client + " " + event + " --worker"
}

// Settings is the text of a file of settings.
func Settings(parts map[string]any) string {
	text, err := json.MarshalIndent(parts, "", "  ")
	if err != nil {
		return "{}\n" // of strings, numbers and maps, which always encode
	}
	return string(text) + "\n"
}
