package opencode

import (
	"encoding/json"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

// passages implements agentcli.Client.Passages.
func passages(line []byte) ([]agentcli.Passage, bool) {
	var l struct {
		Type    string `json:"type"`
		Session string `json:"sessionID"`
		Part    struct {
			Text, Tool, Reason string
			State              struct {
				Status, Output, Error string
				Input                 json.RawMessage
			}
		} `json:"part"`
		Status struct{ Type, Message string }
		Error  struct {
			Name string
			Data struct{ Message string }
		} `json:"error"`
	}
	if json.Unmarshal(line, &l) != nil || l.Session == "" {
		return nil, false
	}
	switch l.Type {
	case "text":
		return agentcli.Text(agentcli.Said, l.Part.Text), true
	case "tool_use":
		s := &l.Part.State
		failed := s.Status == "error"
		return append(agentcli.Call(l.Part.Tool, s.Input), agentcli.Result(s.Output+s.Error, failed)...), true
	case "step_finish":
		if l.Part.Reason == "stop" {
			return agentcli.Text(agentcli.Noted, "the turn ends"), true
		}
	case "chipset.status":
		if l.Status.Type == "retry" {
			return agentcli.Text(agentcli.Noted, "the API fails, and it tries again: "+l.Status.Message), true
		}
	case "error":
		return agentcli.Text(agentcli.Erred, l.Error.Name+": "+l.Error.Data.Message), true
	}
	return nil, true
}
