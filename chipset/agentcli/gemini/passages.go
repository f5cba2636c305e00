package gemini

import (
	"encoding/json"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

// passages implements agentcli.Client.Passages.
func passages(line []byte) ([]agentcli.Passage, bool) {
	var l struct {
		Type       string          `json:"type"`
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		Model      string          `json:"model"`
		Tool       string          `json:"tool_name"`
		Parameters json.RawMessage `json:"parameters"`
		Status     string          `json:"status"`
		Output     string          `json:"output"`
		Message    string          `json:"message"`
		Error      struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(line, &l) != nil {
		return nil, false
	}
	switch l.Type {
	case "init":
		return agentcli.Text(agentcli.Noted, strings.TrimSpace("the session begins "+l.Model)), true
	case "message":
		var text string
		_ = json.Unmarshal(l.Content, &text) // anything else has no text
		if l.Role == "assistant" {
			return agentcli.Text(agentcli.Said, text), true
		}
		return agentcli.Text(agentcli.Noted, text), true
	case "tool_use":
		return agentcli.Call(l.Tool, l.Parameters), l.Tool != ""
	case "tool_result":
		return agentcli.Result(l.Output+l.Error.Message, l.Status != "success"), true
	case "error":
		return agentcli.Text(agentcli.Erred, l.Message), l.Message != ""
	case "result":
		if l.Error.Message != "" {
			return agentcli.Text(agentcli.Erred, l.Error.Message), true
		}
		return agentcli.Text(agentcli.Noted, "the turn ends"), true
	}
	return nil, false
}
