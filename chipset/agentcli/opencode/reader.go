package opencode

import (
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

type reader struct {
	agentcli.Transcript
	// finish is how the last step ended; failure is the line of an error.
	finish  string
	failure *printed
	refused []string
}

type printed struct {
	Type    string `json:"type"`
	Session string `json:"sessionID"`
	Part    struct {
		Text   string  `json:"text"`
		Tool   string  `json:"tool"`
		Reason string  `json:"reason"`
		Cost   float64 `json:"cost"`
		Tokens struct {
			In    int64 `json:"input"`
			Out   int64 `json:"output"`
			Cache struct {
				Read  int64 `json:"read"`
				Write int64 `json:"write"`
			} `json:"cache"`
		} `json:"tokens"`
		State struct {
			Status string `json:"status"`
			Error  string `json:"error"`
		} `json:"state"`
	} `json:"part"`
	Error struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
			Status  int    `json:"statusCode"`
		} `json:"data"`
	} `json:"error"`
}

func (r *reader) Line(line []byte) {
	var l printed
	if !r.Decode(line, &l) {
		return
	}
	r.Began(l.Session)
	switch l.Type {
	case "step_start":
		r.Total.Turns++
		r.finish, r.failure = "", nil
	case "text":
		r.Say(l.Part.Text)
	case "tool_use":
		r.Called(l.Part.Tool)
		if l.Part.State.Status == "error" && refusal(l.Part.State.Error) {
			r.refused = append(r.refused, agentcli.Clip(l.Part.Tool))
		}
	case "step_finish":
		r.finish = l.Part.Reason
		r.Total.TokensIn += l.Part.Tokens.In + l.Part.Tokens.Cache.Read + l.Part.Tokens.Cache.Write
		r.Total.TokensOut += l.Part.Tokens.Out
		r.Total.CostUSD += l.Part.Cost
	case "error":
		r.failure = &l
	}
}

// refusal reports whether a tool was not permitted, and not merely failed. The client
// says it in words alone.
func refusal(message string) bool {
	return strings.Contains(message, "rejected permission") || strings.Contains(message, "rule which prevents you")
}

func (r *reader) Resumed() {
	r.Transcript.Resumed()
	r.finish, r.failure, r.refused = "", nil, nil
}

func (r *reader) End(code int, at time.Time) agentcli.End {
	return r.Quoted(r.judge(code))
}

func (r *reader) judge(code int) agentcli.End {
	switch {
	case r.failure != nil && r.failure.Error.Name == "APIError":
		return agentcli.APIError(r.failure.Error.Data.Status, r.failure.Error.Data.Message)
	case r.failure != nil:
		return agentcli.End{Verdict: agentcli.Unfinished, Reason: "it ended with an error: " + agentcli.Clip(r.failure.Error.Name+" "+r.failure.Error.Data.Message)}
	case code != 0 || r.Session() == "":
		return agentcli.End{}
	case len(r.refused) > 0:
		return agentcli.WasRefused(r.refused)
	case r.finish != "stop":
		return agentcli.End{Verdict: agentcli.Unfinished, Reason: strings.TrimSpace("it ended in the middle of its turn " + agentcli.Clip(r.finish))}
	}
	return agentcli.End{Verdict: agentcli.Finished}
}
