package agentcli

import (
	"encoding/json"
	"slices"
)

// cursor is Cursor's command-line agent, known from its documentation alone.
type cursor struct{}

func (cursor) Preset() Preset {
	return Preset{
		Name:    "cursor",
		Command: []string{"cursor-agent", "-p", "--output-format", "stream-json"},
		Prompt:  PromptArg,
		Timeout: DefaultWorkerTimeout,
		Permissions: map[string][]string{
			PermissionAsk:  nil,
			PermissionEdit: {"--trust"},
			PermissionFull: {"--trust", "--force"},
		},
	}
}

func (cursor) About() About {
	return About{Title: "Cursor", Stream: true, Resume: true, ExitCode: "not tried"}
}

// Equip puts options before the prompt, which is the last argument.
func (cursor) Equip(argv []string, kit Kit) Equipped {
	argv = slices.Clone(argv)
	if kit.Resume != "" && len(argv) > 1 {
		argv = slices.Insert(argv, 1, "--resume="+kit.Resume)
	}
	return Equipped{Argv: argv}
}

func (cursor) Reader() Reader { return &cursorReader{} }

type cursorReader struct {
	transcript
	result *cursorLine
}

type cursorLine struct {
	Type    string                     `json:"type"`
	Subtype string                     `json:"subtype"`
	Session string                     `json:"session_id"`
	IsError bool                       `json:"is_error"`
	Result  string                     `json:"result"`
	Call    map[string]json.RawMessage `json:"tool_call"`
	Message struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"message"`
}

func (r *cursorReader) Line(line []byte) {
	var l cursorLine
	if !r.decode(line, &l) {
		return
	}
	r.named(l.Session)
	switch {
	case l.Type == "assistant":
		r.figures.Turns++
		for _, part := range l.Message.Content {
			r.say(part.Text)
		}
	case l.Type == "tool_call" && l.Subtype == "started":
		name := ""
		for key := range l.Call {
			name = key
		}
		r.tool(name)
	case l.Type == "result":
		r.result = &l
		r.say(l.Result)
	}
}

func (r *cursorReader) Resumed() { r.result, r.noise = nil, nil }

func (r *cursorReader) End(code int) End {
	end := End{Said: r.lastWords()}
	switch {
	case r.result != nil && r.result.IsError:
		end.Verdict, end.Reason = Unfinished, "it ended with an error: "+clip(r.result.Result)
	case code != 0 || r.session == "":
	case r.result == nil:
		end.Verdict, end.Reason = Unfinished, "it ended without a result"
	default:
		end.Verdict = Finished
	}
	return end
}
