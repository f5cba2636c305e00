package agentcli

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
)

// Hooks describes how a client asks the rig at the steps of its sessions: it runs
// `chipset client-hook NAME EVENT`, writes the event to standard input, and reads the
// answer from standard output. Package session decides the answer.
type Hooks struct {
	// Events maps the client's names of events to steps. Other events get no answer.
	Events map[string]Event
	// Input parses an event; empty data is an event without details.
	Input func(data []byte) (Input, error)
	// Output writes an answer in the client's format; name is the client's name of the event.
	Output func(e Event, name string, a Answer) Output
	// Limit returns how many bytes of an answer at an event the client puts before the model whole.
	Limit func(e Event) int
	// Prepend returns the input of a tool call with text put before the prompt of the agent that it spawns, or
	// before the command line that it runs; "" if it has neither. nil if a hook can't change the input.
	Prepend func(in Input, text string) string
	// SpawnedBy returns the ID of the call that spawned the subagent of an event, "" while that is not known. nil if
	// the client does not tell.
	SpawnedBy func(in Input) string
	// EnvFile is the variable that names a file whose lines the client adds to the environment of the session's
	// commands, "" for none.
	EnvFile string
	// Attended reports from the environment of a hook whether a person has the session open; nil if a hook at Idle is
	// harmless in every session. HoldsInput: the client closes the standard input of a hook at Idle to end it.
	Attended   func(env func(name string) string) bool
	HoldsInput bool
	// Wake is the command line that begins a turn of an idle session with a text, for a client without a hook at Idle: the
	// rig waits in its place. nil for others.
	Wake func(session, text string) []string
	// Resumed: a hook can't prevent the end of a worker's turn. The rig resumes its session instead.
	Resumed bool
}

// Event is a step of a client's session.
type Event string

// Steps at which an agent may be told something.
const (
	// SessionStart: a session begins, is resumed, or was compacted.
	SessionStart Event = "SessionStart"
	// UserPromptSubmit: the agent is about to read a prompt.
	UserPromptSubmit Event = "UserPromptSubmit"
	// PreToolUse: a tool is about to be called. PostToolUse: it was called, and may have failed.
	PreToolUse  Event = "PreToolUse"
	PostToolUse Event = "PostToolUse"
	// PermissionRequest: the client would ask its person.
	PermissionRequest Event = "PermissionRequest"
	// Stop: the agent wants to end its turn.
	Stop          Event = "Stop"
	SubagentStart Event = "SubagentStart"
	SubagentStop  Event = "SubagentStop"
	// TeammateIdle: another session of the same team wants to end its turn.
	TeammateIdle Event = "TeammateIdle"
	// TaskCompleted: a task of the client's own list is about to be marked as completed.
	TaskCompleted Event = "TaskCompleted"
	SessionEnd    Event = "SessionEnd"
	// Idle: the agent's turn is over. The answer comes when there is something to wake it for.
	Idle Event = "Idle"
)

// Events lists them in the order of a session.
func Events() []Event {
	return []Event{SessionStart, UserPromptSubmit, PreToolUse, PermissionRequest, PostToolUse, Stop, SubagentStart, SubagentStop, TeammateIdle, TaskCompleted, SessionEnd, Idle}
}

// Input is what a rig uses of an event.
type Input struct {
	Session string
	// Source is why the session starts: startup, resume, clear or compact.
	Source string
	// AgentID is set when a subagent is meant.
	AgentID, AgentType string
	// Transcript is the path of the session's transcript.
	Transcript string
	// Tool is the tool call of the event, if it has one.
	Tool Tool
	// ToolInput is the input, as JSON, of a tool that runs or spawns something.
	ToolInput string
	// LastMessage is the agent's last message.
	LastMessage string

	Teammate                     string
	TaskSubject, TaskDescription string
}

// Tool is a call of one of the client's tools.
type Tool struct {
	// ID is the client's ID of the call, Name its name of the tool.
	ID, Name string
	Does     ToolAction
	// Given is what a person would want to know of the call: the command line, the file, the address, else
	// the whole input as compact JSON; "" if not known.
	Given string
	// Spawned is the name of the subagent that the call spawns, SpawnedType its type, SpawnedID the client's
	// ID of it, once the call has returned.
	Spawned, SpawnedType, SpawnedID string
}

// ToolAction is what a tool does, as far as it matters to the rig.
type ToolAction int

const (
	// Looks: it changes nothing, or the rig does not know the tool.
	Looks ToolAction = iota
	// Edits: it changes files.
	Edits
	// Runs: it runs a command line.
	Runs
	// Spawns: it starts a subagent.
	Spawns
	// EntersPlanning: the agent begins to make a plan.
	EntersPlanning
	// LeavesPlanning: it has made one.
	LeavesPlanning
)

// Answer is the answer to a hook. The zero value says nothing.
type Answer struct {
	// Context is added to the agent's context.
	Context quote.Text
	// Deny refuses the tool call, with this reason; Allow permits the call that the
	// client would ask about.
	Deny  quote.Text
	Allow bool
	// Input replaces the tool's input.
	Input string
	// GoOn keeps an agent or a task from ending, with this reason.
	GoOn quote.Text
}

// Output is an answer as a client reads it.
type Output struct {
	Stdout []byte
	Stderr string
	Code   int
}

// hookInput is the format of events that all tested clients share.
type hookInput struct {
	Session         string          `json:"session_id"`
	Source          string          `json:"source"`
	AgentID         string          `json:"agent_id"`
	AgentType       string          `json:"agent_type"`
	Transcript      string          `json:"transcript_path"`
	ToolUseID       string          `json:"tool_use_id"`
	ToolName        string          `json:"tool_name"`
	ToolInput       json.RawMessage `json:"tool_input"`
	ToolResponse    json.RawMessage `json:"tool_response"`
	LastMessage     string          `json:"last_assistant_message"`
	Teammate        string          `json:"teammate_name"`
	TaskSubject     string          `json:"task_subject"`
	TaskDescription string          `json:"task_description"`
}

// DecodeHook is the Input of clients that use the common field names. tool says what a tool
// of the client does with its input.
func DecodeHook(data []byte, tool func(name string, input json.RawMessage) Tool) (Input, error) {
	var in hookInput
	if len(bytes.TrimSpace(data)) == 0 {
		return Input{}, nil
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return Input{}, fmt.Errorf("the event on standard input: %w", err)
	}
	t := tool(in.ToolName, in.ToolInput)
	t.ID, t.Name = in.ToolUseID, in.ToolName
	input := ""
	if t.Does == Spawns || t.Does == Runs {
		input = string(in.ToolInput)
	}
	if t.Does == Spawns {
		t.SpawnedID = TextField(in.ToolResponse, "agentId")
	}
	if t.Given == "" && t.Does != Edits && t.Does != Runs {
		var compact bytes.Buffer
		if json.Compact(&compact, in.ToolInput) == nil {
			t.Given = compact.String()
		}
	}
	return Input{Session: in.Session, Source: in.Source, AgentID: in.AgentID, AgentType: in.AgentType, Transcript: in.Transcript, Tool: t, ToolInput: input, LastMessage: in.LastMessage,
		Teammate: in.Teammate, TaskSubject: in.TaskSubject, TaskDescription: in.TaskDescription}, nil
}

// TextField returns the first of some fields of a JSON object that holds text, else "".
func TextField(object json.RawMessage, names ...string) string {
	var fields map[string]any
	if json.Unmarshal(object, &fields) != nil {
		return ""
	}
	for _, name := range names {
		if text, _ := fields[name].(string); text != "" {
			return text
		}
	}
	return ""
}

// PrependField returns a JSON object with text put before the text of a field, "" if it has no such field.
func PrependField(object, field, text string) string {
	var fields map[string]json.RawMessage
	var old string
	if json.Unmarshal([]byte(object), &fields) != nil || json.Unmarshal(fields[field], &old) != nil {
		return ""
	}
	changed, err := json.Marshal(text + old)
	if err != nil {
		return ""
	}
	fields[field] = changed
	out, err := json.Marshal(fields)
	if err != nil {
		return ""
	}
	return string(out)
}

// hookOutput is the format of answers that most clients read.
type hookOutput struct {
	Decision string       `json:"decision,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	Specific *hookContext `json:"hookSpecificOutput,omitempty"`
}

type hookContext struct {
	Event    string          `json:"hookEventName"`
	Context  string          `json:"additionalContext,omitempty"`
	Decision string          `json:"permissionDecision,omitempty"`
	Reason   string          `json:"permissionDecisionReason,omitempty"`
	Input    json.RawMessage `json:"updatedInput,omitempty"`
	// Asked answers what the client would ask its person.
	Asked *hookBehavior `json:"decision,omitempty"`
}

// hookBehavior is allow, or deny with a message for the agent.
type hookBehavior struct {
	Behavior string `json:"behavior"`
	Message  string `json:"message,omitempty"`
}

// EncodeAnswer is the Output of clients that read the common format.
func EncodeAnswer(e Event, name string, a Answer) Output {
	if a == (Answer{}) {
		return Output{}
	}
	specific := &hookContext{Event: name}
	switch {
	case a.GoOn != "":
		return EncodeDecision("block", string(a.GoOn))
	case a.Allow:
		specific.Asked = &hookBehavior{Behavior: "allow"}
	case a.Deny != "" && e == PermissionRequest:
		specific.Asked = &hookBehavior{Behavior: "deny", Message: string(a.Deny)}
	case a.Deny != "":
		specific.Context, specific.Decision, specific.Reason = string(a.Context), "deny", string(a.Deny)
	default:
		specific.Context, specific.Input = string(a.Context), json.RawMessage(a.Input)
	}
	return encode(hookOutput{Specific: specific})
}

// EncodeDecision encodes an answer that consists of a decision and its reason.
func EncodeDecision(decision, reason string) Output {
	return encode(hookOutput{Decision: decision, Reason: reason})
}

func encode(out hookOutput) Output {
	data, err := json.Marshal(out)
	if err != nil {
		return Output{Stderr: err.Error() + "\n"}
	}
	return Output{Stdout: append(data, '\n')}
}
