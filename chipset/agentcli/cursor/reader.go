package cursor

import (
	"encoding/json"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/state/fault"
)

type reader struct {
	agentcli.Transcript
	result *printed
}

type printed struct {
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

func (r *reader) Line(line []byte) {
	var l printed
	if !r.Decode(line, &l) {
		return
	}
	r.Began(l.Session)
	switch {
	case l.Type == "assistant":
		r.Total.Turns++
		for _, part := range l.Message.Content {
			r.Say(part.Text)
		}
	case l.Type == "tool_call" && l.Subtype == "started":
		name := ""
		for key := range l.Call {
			name = key
		}
		r.Called(name)
	case l.Type == "result":
		r.result = &l
		r.Say(l.Result)
	}
}

func (r *reader) Resumed() {
	r.Transcript.Resumed()
	r.result = nil
}

func (r *reader) End(code int, _ time.Time) agentcli.End {
	var end agentcli.End
	switch {
	case r.result != nil && r.result.IsError:
		end.Verdict, end.Reason = agentcli.Unfinished, "it ended with an error: "+agentcli.Clip(r.result.Result)
	case code != 0 && r.Complaint("Error: Authentication required") != "":
		end = agentcli.Failed(fault.NotLoggedIn, "")
	case code != 0 && r.Complaint("error: unknown option ") != "":
		end = agentcli.RefusedFlags(r.Complaint("error: unknown option "))
	case code != 0 || r.Session() == "":
	case r.result == nil:
		end.Verdict, end.Reason = agentcli.Unfinished, "it ended without a result"
	default:
		end.Verdict = agentcli.Finished
	}
	return r.Quoted(end)
}
