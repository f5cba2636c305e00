package claude

import (
	"encoding/json"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

func hooks() *agentcli.Hooks {
	// A tool that fails is a step like any other.
	events := map[string]agentcli.Event{"PostToolUseFailure": agentcli.PostToolUse}
	for _, e := range agentcli.Events() {
		events[string(e)] = e // the names are those of Claude Code
	}
	return &agentcli.Hooks{
		Events:  events,
		Input:   func(data []byte) (agentcli.Input, error) { return agentcli.DecodeHook(data, tool) },
		Output:  output,
		EnvFile: "CLAUDE_ENV_FILE",
	}
}

// keepsGoing is the exit code that keeps a teammate working and a task open.
const keepsGoing = 2

func output(e agentcli.Event, name string, a agentcli.Answer) agentcli.Output {
	if a.GoOn != "" && (e == agentcli.TeammateIdle || e == agentcli.TaskCompleted) {
		return agentcli.Output{Stderr: string(a.GoOn) + "\n", Code: keepsGoing}
	}
	return agentcli.EncodeAnswer(e, name, a)
}

// hooksOfWorker are the events at which a worker asks the rig.
func hooksOfWorker(plan bool) []agentcli.HookEvent {
	before := "EnterPlanMode|ExitPlanMode|Task|Agent"
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
