package codex

import (
	"encoding/json"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

// passages implements agentcli.Client.Passages.
func passages(line []byte) ([]agentcli.Passage, bool) {
	var l struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Error   struct {
			Message string `json:"message"`
		} `json:"error"`
		Item struct {
			Type, Text, Command, Tool, Query, Message string
			Arguments                                 json.RawMessage
			Output                                    string `json:"aggregated_output"`
			Code                                      *int   `json:"exit_code"`
			Changes                                   []struct{ Path, Kind string }
		} `json:"item"`
	}
	if json.Unmarshal(line, &l) != nil {
		return nil, false
	}
	switch {
	case l.Type == "thread.started":
		return agentcli.Text(agentcli.Noted, "the session begins"), true
	case l.Type == "turn.completed":
		return agentcli.Text(agentcli.Noted, "the turn ends"), true
	case l.Type == "turn.failed":
		return agentcli.Text(agentcli.Erred, l.Error.Message), true
	case l.Type == "error":
		return agentcli.Text(agentcli.Erred, l.Message), l.Message != ""
	case l.Type == "item.started" && l.Item.Type == "command_execution":
		return agentcli.Call("shell", quoted(map[string]any{"command": l.Item.Command})), true
	case l.Type == "item.completed" && l.Item.Type == "command_execution":
		return agentcli.Result(l.Item.Output, l.Item.Code != nil && *l.Item.Code != 0), true
	case l.Type == "item.completed":
		i := &l.Item
		switch i.Type {
		case "agent_message":
			return agentcli.Text(agentcli.Said, i.Text), true
		case "file_change":
			var paths []string
			for _, c := range i.Changes {
				paths = append(paths, c.Kind+" "+c.Path)
			}
			return agentcli.Call("apply_patch", quoted(map[string]any{"path": strings.Join(paths, ", ")})), true
		case "mcp_tool_call":
			return agentcli.Call(i.Tool, i.Arguments), true
		case "web_search":
			return agentcli.Call("web_search", quoted(map[string]any{"query": i.Query})), true
		case "error":
			return agentcli.Text(agentcli.Erred, i.Message), true
		}
		return nil, true
	}
	return nil, strings.HasPrefix(l.Type, "item.") || strings.HasPrefix(l.Type, "turn.")
}

func quoted(arguments map[string]any) json.RawMessage {
	data, _ := json.Marshal(arguments) // texts always encode
	return data
}
