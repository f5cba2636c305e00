package agentcli

import (
	"encoding/json"
	"strings"
)

// hookTimeout is how long a client waits for a hook of the rig, in seconds. The
// hooks answer in milliseconds and give up by themselves before this.
const hookTimeout = 10

// onHook is one event of a client at which the rig is asked. matcher limits it to
// some tools; "" is all.
type onHook struct{ event, matcher string }

// hookTable is the JSON in which Claude Code and Gemini CLI are told of hooks; unit
// is that of the timeout, in parts of a second.
func hookTable(kit Kit, client string, unit int, events []onHook) map[string]any {
	table := map[string]any{}
	for _, on := range events {
		entry := map[string]any{"hooks": []any{map[string]any{"type": "command", "name": serverName,
			"command": hookCommand(kit, client, on.event), "timeout": hookTimeout * unit}}}
		if on.matcher != "" {
			entry["matcher"] = on.matcher
		}
		table[on.event] = []any{entry}
	}
	return table
}

// hookCommand is a line for a shell.
func hookCommand(kit Kit, client, event string) string {
	return "'" + strings.ReplaceAll(kit.Chipset, "'", `'\''`) + "' client-hook " + client + " " + event + " --worker"
}

// hooksHandedOver keeps the hooks of a plugin that the person has installed silent
// in a worker that has been given its own: everything would be said twice.
const hooksHandedOver = "CHIPSET_WORKER_HOOKS=1"

// toldToGoOn is how often in a row, without a tool call between, an agent that ends
// its turn must have been told to go on to count as one that will not. Hooks of a
// project's own ask once or twice.
const toldToGoOn = 3

// commandsGranted are the command lines among rules that were approved, with the
// tool around them, in any client's words, or alone.
func commandsGranted(rules []string) []string {
	var lines []string
	for _, rule := range rules {
		line := rule
		for _, tool := range []string{"Bash", "bash", "run_shell_command", "shell"} {
			if inner, ok := strings.CutPrefix(rule, tool+"("); ok {
				line = strings.TrimSuffix(inner, ")")
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func settings(parts map[string]any) string {
	text, err := json.MarshalIndent(parts, "", "  ")
	if err != nil {
		return "{}\n" // of strings, numbers and maps, which always encode
	}
	return string(text) + "\n"
}
