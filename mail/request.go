package mail

import (
	"encoding/json"

	"github.com/gastown-chipset/chipset/state"
)

// Ask is the metadata of a request.
type Ask struct {
	// Rule is the exact text of the rule that a permission_request asks for.
	Rule string `json:"rule,omitempty"`
	// NoReply is true if the sender learns of the decision in another way.
	NoReply bool `json:"no_reply,omitempty"`
}

// AskOf returns the metadata of a request, or the zero value if that is invalid.
func AskOf(m *Message) Ask {
	var a Ask
	if len(m.Metadata) > 0 {
		_ = json.Unmarshal(m.Metadata, &a)
	}
	return a
}

// Answer is the metadata of a response.
type Answer struct {
	// Approved is nil for a response that decides nothing.
	Approved *bool  `json:"approved,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Remembered is the rule that keeps the decision, or "".
	Remembered string `json:"remembered,omitempty"`
}

// AnswerOf returns the metadata of a response, and whether it decides the request: it
// must set Approved, and the sender must have the right to decide. The person decides
// permissions and plans, the mayor decides plans, and the agent that was asked to shut
// down decides that.
func AnswerOf(m *Message, mayor state.AgentID) (Answer, bool) {
	var a Answer
	if len(m.Metadata) == 0 || json.Unmarshal(m.Metadata, &a) != nil || a.Approved == nil {
		return a, false
	}
	switch m.Type {
	case PermissionResponse:
		return a, m.From == state.Human
	case PlanResponse:
		return a, m.From == state.Human || m.From == mayor
	case ShutdownResponse:
		return a, true
	default:
		return a, false
	}
}
