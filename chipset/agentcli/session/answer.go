package session

import (
	"encoding/json"
)

// Answer is what an agent or its client is told. The zero value is silence.
type Answer struct {
	// Context is put before the agent.
	Context string
	// Deny refuses the tool call that is about to be made, with this reason; Allow
	// permits the one that the client would ask about.
	Deny  string
	Allow bool
	// GoOn keeps an agent or a task from ending, with this reason.
	GoOn string
}

type specific struct {
	Event    string `json:"hookEventName"`
	Context  string `json:"additionalContext,omitempty"`
	Decision string `json:"permissionDecision,omitempty"`
	Reason   string `json:"permissionDecisionReason,omitempty"`
	// Asked answers what the client would ask its person.
	Asked *behavior `json:"decision,omitempty"`
}

// behavior is allow, or deny with a message for the agent.
type behavior struct {
	Behavior string `json:"behavior"`
	Message  string `json:"message,omitempty"`
}

type output struct {
	Decision string    `json:"decision,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Specific *specific `json:"hookSpecificOutput,omitempty"`
}

// keepsGoing is the exit code that keeps a teammate working and a task open.
const keepsGoing = 2

// Render says an answer in the words of a client: what goes to standard output
// and to standard error, and the exit code. name is the event's name there.
func (a Answer) Render(kind Kind, event Event, name string) (stdout []byte, stderr string, code int) {
	if a == (Answer{}) {
		return nil, "", 0
	}
	var out output
	switch {
	case a.GoOn != "" && (event == TeammateIdle || event == TaskCompleted):
		return nil, a.GoOn + "\n", keepsGoing
	case a.GoOn != "":
		out.Decision, out.Reason = refusal(kind), a.GoOn
	case a.Allow:
		out.Specific = &specific{Event: name, Asked: &behavior{Behavior: "allow"}}
	case a.Deny != "" && event == PermissionRequest:
		out.Specific = &specific{Event: name, Asked: &behavior{Behavior: "deny", Message: a.Deny}}
	case a.Deny != "" && kind == Gemini:
		out.Decision, out.Reason = refusal(kind), a.Deny
	default:
		out.Specific = &specific{Event: name, Context: a.Context}
		if a.Deny != "" {
			out.Specific.Decision, out.Specific.Reason = "deny", a.Deny
		}
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, err.Error() + "\n", 0
	}
	return append(data, '\n'), "", 0
}

// refusal is the decision with which a client's turn is not allowed to end.
func refusal(kind Kind) string {
	if kind == Gemini {
		return "deny"
	}
	return "block"
}
