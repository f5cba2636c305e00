package codex

import (
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

type reader struct {
	agentcli.Transcript
	// completed is true once the turn is through; failure is why it is not.
	completed bool
	failure   string
}

type printed struct {
	Type   string `json:"type"`
	Thread string `json:"thread_id"`
	// Message is that of an error.
	Message string `json:"message"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
	Item struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Tool    string `json:"tool"`
		Message string `json:"message"`
	} `json:"item"`
	Usage struct {
		In  int64 `json:"input_tokens"`
		Out int64 `json:"output_tokens"`
	} `json:"usage"`
}

func (r *reader) Line(line []byte) {
	var l printed
	if !r.Decode(line, &l) {
		return
	}
	switch l.Type {
	case "thread.started":
		r.Began(l.Thread)
	case "turn.started":
		r.completed = false
	case "item.completed":
		r.item(&l)
	case "error":
		r.failure = agentcli.Clip(l.Message)
	case "turn.failed":
		r.completed, r.failure = false, agentcli.Clip(l.Error.Message)
	case "turn.completed":
		r.completed, r.failure = true, ""
		// The totals of the whole thread, earlier runs included.
		r.Total.TokensIn, r.Total.TokensOut = l.Usage.In, l.Usage.Out
	}
}

func (r *reader) item(l *printed) {
	switch l.Item.Type {
	case "agent_message":
		r.Total.Turns++
		r.Say(l.Item.Text)
	case "command_execution":
		r.Called("shell")
	case "file_change":
		r.Called("apply_patch")
	case "mcp_tool_call":
		r.Called(l.Item.Tool)
	case "web_search":
		r.Called("web_search")
	}
}

func (r *reader) Resumed() {
	r.Transcript.Resumed()
	r.completed, r.failure = false, ""
}

func (r *reader) End(code int, at time.Time) agentcli.End {
	var end agentcli.End
	switch {
	case r.failure != "" && !r.completed:
		// The message is all there is, and whether another try helps is not in it.
		end.Verdict, end.Reason = agentcli.Unfinished, "its turn failed: "+r.failure
	case code != 0:
	case r.completed:
		end.Verdict = agentcli.Finished
	case r.Session() != "":
		end.Verdict, end.Reason = agentcli.Unfinished, "it ended in the middle of its turn"
	}
	return r.Quoted(end)
}
