package claude

import (
	"encoding/json"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

// Passages implements agentcli.Client.Passages for stream-json.
func Passages(line []byte) ([]agentcli.Passage, bool) {
	var l struct {
		Type    string `json:"type"`
		Subtype string `json:"subtype"`
		Model   string `json:"model"`
		Message *struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
		IsError bool            `json:"is_error"`
		Result  string          `json:"result"`
		Error   json.RawMessage `json:"error"`
		Session *string         `json:"session_id"`
	}
	if json.Unmarshal(line, &l) != nil || l.Session == nil {
		return nil, false
	}
	switch {
	case l.Type == "system" && l.Subtype == "init":
		return agentcli.Text(agentcli.Noted, strings.TrimSpace("the session begins "+l.Model)), true
	case l.Type == "system" && l.Subtype == "api_retry":
		return agentcli.Text(agentcli.Erred, "the service failed, it tries again: "+strings.Trim(string(l.Error), `"`)), true
	case l.Type == "system", l.Type == "rate_limit_event":
		return nil, true
	case l.Type == "result" && l.IsError:
		return agentcli.Text(agentcli.Erred, l.Result), true
	case l.Type == "result":
		return agentcli.Text(agentcli.Noted, "the turn ends"), true
	case (l.Type == "assistant" || l.Type == "user") && l.Message != nil:
		return blocks(l.Type, l.Message.Content), true
	}
	return nil, false
}

// blocks are the passages of a message.
func blocks(kind string, content json.RawMessage) []agentcli.Passage {
	said := agentcli.Said
	if kind == "user" {
		said = agentcli.Noted
	}
	var text string
	if json.Unmarshal(content, &text) == nil {
		return agentcli.Text(said, text)
	}
	var all []struct {
		Type, Text, Name string
		Input            json.RawMessage
		Content          json.RawMessage
		IsError          bool `json:"is_error"`
	}
	if json.Unmarshal(content, &all) != nil {
		return nil
	}
	var passages []agentcli.Passage
	for _, b := range all {
		switch b.Type {
		case "text":
			passages = append(passages, agentcli.Text(said, b.Text)...)
		case "tool_use":
			passages = append(passages, agentcli.Call(b.Name, b.Input)...)
		case "tool_result":
			passages = append(passages, agentcli.Result(resultText(b.Content), b.IsError)...)
		}
	}
	return passages
}

// resultText is the text of a result: a string, or blocks with texts.
func resultText(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var all []struct{ Text string }
	_ = json.Unmarshal(content, &all) // a picture has no text
	var parts []string
	for _, b := range all {
		parts = append(parts, b.Text)
	}
	return strings.Join(parts, "\n")
}
