package gemini

import (
	"fmt"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

type reader struct {
	agentcli.Transcript
	result *printed
	// speaking is true while the parts of one answer come.
	speaking bool
	// toldToGoOn counts how often in a row hooks kept the agent from ending.
	toldToGoOn          int
	beforeIn, beforeOut int64
}

type printed struct {
	Type    string `json:"type"`
	Session string `json:"session_id"`
	Role    string `json:"role"`
	Content string `json:"content"`
	Tool    string `json:"tool_name"`
	Status  string `json:"status"`
	// Message is that of a warning.
	Message string `json:"message"`
	Error   struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	Stats struct {
		In  int64 `json:"input_tokens"`
		Out int64 `json:"output_tokens"`
	} `json:"stats"`
}

func (r *reader) Line(line []byte) {
	var l printed
	if !r.Decode(line, &l) {
		return
	}
	answer := l.Type == "tool_use" || l.Type == "message" && l.Role == "assistant"
	if answer && !r.speaking {
		r.Total.Turns++
	}
	r.speaking = answer
	switch l.Type {
	case "init":
		r.Began(l.Session)
	case "message":
		if answer {
			r.Say(l.Content)
		}
	case "error":
		if strings.HasPrefix(l.Message, "Agent execution blocked") {
			r.toldToGoOn++
		}
	case "tool_use":
		r.toldToGoOn = 0
		r.Called(l.Tool)
	case "result":
		r.result = &l
		r.Total.TokensIn, r.Total.TokensOut = r.beforeIn+l.Stats.In, r.beforeOut+l.Stats.Out
	}
}

func (r *reader) Resumed() {
	r.Transcript.Resumed()
	r.result, r.speaking, r.toldToGoOn = nil, false, 0
	r.beforeIn, r.beforeOut = r.Total.TokensIn, r.Total.TokensOut
}

// Exit codes of its own, below those that are an HTTP status.
const (
	turnLimit   = 53
	firstStatus = 400 - 256
	lastStatus  = 511 - 256
)

func (r *reader) End(code int, at time.Time) agentcli.End {
	return r.Quoted(r.judge(code))
}

func (r *reader) judge(code int) agentcli.End {
	message := ""
	if r.result != nil {
		message = r.result.Error.Message
	}
	failed := r.result != nil && r.result.Status != "success"
	switch {
	case code == turnLimit:
		return agentcli.End{Verdict: agentcli.Unfinished, Reason: "it reached its limit of turns"}
	case failed && code >= firstStatus && code <= lastStatus:
		return agentcli.APIError(code+256, message)
	case failed:
		return agentcli.End{Verdict: agentcli.Unfinished, Reason: fmt.Sprintf("it ended with an error (%s): %s", agentcli.Clip(r.result.Error.Type), agentcli.Clip(message))}
	case code != 0:
		return agentcli.End{}
	case r.result == nil && r.Session() != "":
		return agentcli.End{Verdict: agentcli.Unfinished, Reason: "it ended without a result"}
	case r.result == nil:
		return agentcli.End{}
	case r.toldToGoOn >= agentcli.MaxToldToGoOn:
		return agentcli.WillNotGoOn()
	}
	return agentcli.End{Verdict: agentcli.Finished}
}
