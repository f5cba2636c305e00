package claude

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/state"
)

func hooks() *agentcli.Hooks {
	// A tool that fails is a step like any other.
	events := map[string]agentcli.Event{"PostToolUseFailure": agentcli.PostToolUse}
	for _, e := range agentcli.Events() {
		events[string(e)] = e // the names are those of Claude Code
	}
	delete(events, string(agentcli.Idle)) // which it has none for: a hook on other events waits in the background
	events["Wait"] = agentcli.Idle
	return &agentcli.Hooks{
		Events:    events,
		Input:     func(data []byte) (agentcli.Input, error) { return agentcli.DecodeHook(data, tool) },
		Output:    output,
		Limit:     limit,
		Prepend:   prepend,
		SpawnedBy: spawnedBy,
		EnvFile:   "CLAUDE_ENV_FILE",
		// A headless session does not end before such a hook.
		Attended: func(env func(string) string) bool { return env("CLAUDE_CODE_SESSION_ATTENDED") == "1" },
	}
}

// limit is 10,000 UTF-16 units for what a hook adds, of which none takes less than a byte: of more, the model
// sees the first 2 KB. A reason to go on is shown whole up to 40,000.
func limit(e agentcli.Event) int {
	if slices.Contains([]agentcli.Event{agentcli.Stop, agentcli.SubagentStop, agentcli.TeammateIdle, agentcli.TaskCompleted}, e) {
		return 38_000
	}
	return 9_800
}

func prepend(in agentcli.Input, text string) string {
	switch in.Tool.Does {
	case agentcli.Spawns:
		return agentcli.PrependField(in.ToolInput, "prompt", text)
	case agentcli.Runs:
		return agentcli.PrependField(in.ToolInput, "command", text)
	case agentcli.Looks, agentcli.Edits, agentcli.EntersPlanning, agentcli.LeavesPlanning:
	}
	return ""
}

// spawnedBy reads the file that lies beside a subagent's transcript from before its first call of a tool.
func spawnedBy(in agentcli.Input) string {
	folder, is := strings.CutSuffix(in.Transcript, ".jsonl")
	if !is || !filepath.IsAbs(folder) || filepath.Base(in.AgentID) != in.AgentID {
		return ""
	}
	const most = 64 << 10
	data, err := state.ReadOutside(filepath.Join(folder, "subagents", "agent-"+in.AgentID+".meta.json"), most)
	if err != nil {
		return ""
	}
	return agentcli.TextField(data, "toolUseId")
}

// keepsGoing is the exit code that keeps a teammate working and a task open, and wakes an idle session.
const keepsGoing = 2

func output(e agentcli.Event, name string, a agentcli.Answer) agentcli.Output {
	if a.GoOn != "" && slices.Contains([]agentcli.Event{agentcli.TeammateIdle, agentcli.TaskCompleted, agentcli.Idle}, e) {
		return agentcli.Output{Stderr: string(a.GoOn) + "\n", Code: keepsGoing}
	}
	return agentcli.EncodeAnswer(e, name, a)
}

// hooksOfWorker are the events at which a worker asks the rig.
func hooksOfWorker(plan bool) []agentcli.HookEvent {
	before := "EnterPlanMode|ExitPlanMode|Task|Agent|Bash"
	if plan {
		before = "" // it is asked about each tool, because any may change something
	}
	return []agentcli.HookEvent{{Name: "SessionStart"}, {Name: "UserPromptSubmit"}, {Name: "PreToolUse", Matcher: before}, {Name: "PermissionRequest"},
		{Name: "PostToolUse"}, {Name: "PostToolUseFailure"}, {Name: "Stop"}, {Name: "SubagentStart"}, {Name: "SubagentStop"},
		{Name: "TeammateIdle"}, {Name: "TaskCompleted"}, {Name: "SessionEnd"}}
}

// tool says what a tool does with its input.
func tool(name string, input json.RawMessage) agentcli.Tool {
	switch name {
	case "Edit", "MultiEdit", "Write", "NotebookEdit":
		return agentcli.Tool{Does: agentcli.Edits, Given: agentcli.TextField(input, "file_path", "notebook_path")}
	case "Bash", "Monitor", "PowerShell":
		return agentcli.Tool{Does: agentcli.Runs, Given: agentcli.TextField(input, "command")}
	case "Task", "Agent":
		return agentcli.Tool{Does: agentcli.Spawns, Spawned: agentcli.TextField(input, "name"), SpawnedType: agentcli.TextField(input, "subagent_type")}
	case "EnterPlanMode":
		return agentcli.Tool{Does: agentcli.EntersPlanning}
	case "ExitPlanMode":
		return agentcli.Tool{Does: agentcli.LeavesPlanning}
	}
	return agentcli.Tool{Given: agentcli.TextField(input, "url")}
}
