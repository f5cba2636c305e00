package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/state"
)

// Kind is a client whose hooks are answered.
type Kind string

// Clients with hooks.
const (
	Claude Kind = "claude"
	Codex  Kind = "codex"
	Gemini Kind = "gemini"
)

// Kinds lists them, for help texts.
func Kinds() []Kind { return []Kind{Claude, Codex, Gemini} }

// Event is a step of a client's session, in Claude Code's words.
type Event string

// Events that are answered.
const (
	SessionStart     Event = "SessionStart"
	UserPromptSubmit Event = "UserPromptSubmit"
	PreToolUse       Event = "PreToolUse"
	PostToolUse      Event = "PostToolUse"
	// PermissionRequest is when the client would ask its person.
	PermissionRequest Event = "PermissionRequest"
	Stop              Event = "Stop"
	SubagentStart     Event = "SubagentStart"
	SubagentStop      Event = "SubagentStop"
	TeammateIdle      Event = "TeammateIdle"
	TaskCompleted     Event = "TaskCompleted"
	SessionEnd        Event = "SessionEnd"
)

// Events lists them in the order of a session.
func Events() []Event {
	return []Event{SessionStart, UserPromptSubmit, PreToolUse, PermissionRequest, PostToolUse, Stop, SubagentStart, SubagentStop, TeammateIdle, TaskCompleted, SessionEnd}
}

// Canonical is the event that a client calls by name, or false for one that
// nobody answers.
func Canonical(kind Kind, name string) (Event, bool) {
	if kind == Gemini {
		switch name {
		case "BeforeAgent":
			return UserPromptSubmit, true
		case "BeforeTool":
			return PreToolUse, true
		case "AfterTool":
			return PostToolUse, true
		case "AfterAgent":
			return Stop, true
		}
	}
	if kind == Claude && name == "PostToolUseFailure" {
		return PostToolUse, true // a tool that fails is a step like any other
	}
	for _, e := range Events() {
		if string(e) == name {
			return e, true
		}
	}
	return "", false
}

// Input is what a client tells about the event: of all its fields those that
// matter here. Every client tested uses these names.
type Input struct {
	SessionID string `json:"session_id"`
	// Source is why the session starts: startup, resume, clear or compact; Reason why it ends.
	Source string `json:"source"`
	Reason string `json:"reason"`
	// AgentID is set when a subagent is meant.
	AgentID   string `json:"agent_id"`
	AgentType string `json:"agent_type"`

	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`

	LastAssistantMessage string `json:"last_assistant_message"`

	TeammateName    string `json:"teammate_name"`
	TaskSubject     string `json:"task_subject"`
	TaskDescription string `json:"task_description"`
}

// MaxInput bounds what is read of an event, in bytes: tools answer at length.
const MaxInput = 32 << 20

// Decode reads an event. Nothing at all is an event without details.
func Decode(data []byte) (Input, error) {
	var in Input
	if len(strings.TrimSpace(string(data))) == 0 {
		return in, nil
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return in, fmt.Errorf("the event on standard input: %w", err)
	}
	return in, nil
}

// spawn is what the tools that start subagents are called with.
type spawn struct {
	Name string `json:"name"`
	Type string `json:"subagent_type"`
}

func (in *Input) spawn() (spawn, bool) {
	var s spawn
	if in.ToolName != "Task" && in.ToolName != "Agent" {
		return s, false
	}
	return s, json.Unmarshal(in.ToolInput, &s) == nil
}

// key makes a file's name of an id that a client chose: the id itself where it
// may be one, and a hash of it otherwise.
func key(id string) string {
	if lower := strings.ToLower(id); state.CheckID(lower) == nil {
		return lower
	}
	sum := sha256.Sum256([]byte(id))
	return "x" + hex.EncodeToString(sum[:16])
}
