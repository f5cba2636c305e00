package mail

import (
	"encoding/json"

	"github.com/gastown-chipset/chipset/state"
)

// Ask is the metadata of a request.
type Ask struct {
	// Rule is what a permission_request asks for, word by word.
	Rule string `json:"rule,omitempty"`
	// NoReply is true for a request whose sender sees elsewhere what became of it.
	NoReply bool `json:"no_reply,omitempty"`
}

// AskOf returns what a request asks for. Metadata of another writer asks for nothing.
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

// AnswerOf returns what a response decides, and whether it decides anything: it must
// say so, and come from somebody who may. The person decides everything, the mayor
// plans, and whoever was asked to end decides that.
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
