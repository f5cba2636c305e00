package gemini

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/spend"
)

type reader struct {
	agentcli.Transcript
	result *printed
	// speaking is true while the parts of one answer come.
	speaking bool
	// toldToGoOn counts how often in a row hooks kept the agent from ending.
	toldToGoOn int
}

type printed struct {
	Type    string `json:"type"`
	Session string `json:"session_id"`
	Role    string `json:"role"`
	Content string `json:"content"`
	Tool    string `json:"tool_name"`
	Call    string `json:"tool_id"`
	Status  string `json:"status"`
	// Message is that of a warning.
	Message string `json:"message"`
	Error   struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	Stats struct {
		stats
		Models map[string]stats `json:"models"`
	} `json:"stats"`
}

// stats are those of one run. In includes what came from a cache.
type stats struct {
	In     int64 `json:"input_tokens"`
	Cached int64 `json:"cached"`
	Out    int64 `json:"output_tokens"`
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
		r.CallBegan(l.Call)
	case "tool_result":
		r.CallEnded(l.Call)
	case "result":
		r.result = &l
		if len(l.Stats.Models) == 0 {
			l.Stats.Models = map[string]stats{"": l.Stats.stats}
		}
		var run []spend.Model
		for _, name := range slices.Sorted(maps.Keys(l.Stats.Models)) {
			s := l.Stats.Models[name]
			run = append(run, spend.Model{Model: name, Usage: spend.Usage{In: s.In, Cached: s.Cached, Out: s.Out}})
		}
		r.SettleRun(run)
	}
}

func (r *reader) Resumed() {
	r.Transcript.Resumed()
	r.result, r.speaking, r.toldToGoOn = nil, false, 0
}

// cannotResume begins its words about a session that it can't load.
const cannotResume = "Error resuming session: "

// Exit codes of its own, below those that are an HTTP status.
const (
	noCredentials = 41
	turnLimit     = 53
)

// statusOf is the HTTP status of an error, 0 without one. It stands in the answer that the
// client quotes, or is the exit code, which keeps eight bits of it.
func statusOf(code int, message string) int {
	var answer struct {
		Error struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(message), &answer) == nil && answer.Error.Code > 0 {
		return answer.Error.Code
	}
	const (
		bits       = 256
		overloaded = 529
	)
	switch {
	case code == overloaded-2*bits:
		return overloaded
	case code >= http.StatusBadRequest-bits:
		return code + bits
	}
	return 0
}

// Trying implements agentcli.Reader: a run that has failed should have ended.
func (r *reader) Trying() fault.Fault {
	if r.result == nil {
		return fault.Fault{}
	}
	return r.judge(1, time.Time{}).Fault
}

// Waits implements agentcli.Reader.
func (r *reader) Waits() bool { return r.result == nil && !r.Calls() }

func (r *reader) End(code int, at time.Time) agentcli.End {
	return r.Quoted(r.judge(code, at))
}

func (r *reader) judge(code int, at time.Time) agentcli.End {
	message := ""
	if r.result != nil {
		message = r.result.Error.Message
	}
	failed := r.result != nil && r.result.Status != "success"
	answer, api := strings.CutPrefix(message, "[API Error: ")
	switch {
	case code == turnLimit:
		return agentcli.End{Verdict: agentcli.Unfinished, Reason: "it reached its limit of turns"}
	case failed && api && code != 0:
		answer, _, _ = strings.Cut(answer, "]\n")
		return apiError(code, strings.TrimSuffix(answer, "]"), at).End()
	case failed:
		return agentcli.End{Verdict: agentcli.Unfinished, Reason: fmt.Sprintf("it ended with an error (%s): %s", agentcli.Clip(r.result.Error.Type), agentcli.PlainMessage(message))}
	case code == noCredentials && r.Complaint("When using ", "Please set an Auth method") != "":
		return agentcli.Failed(fault.NotLoggedIn, ": "+r.Complaint("When using ", "Please set an Auth method"))
	case code != 0 && r.Complaint("Unknown argument") != "":
		return agentcli.RefusedFlags(r.Complaint("Unknown argument"))
	case code != 0 && r.Complaint(cannotResume) != "":
		return agentcli.SessionGone(strings.TrimPrefix(r.Complaint(cannotResume), cannotResume))
	case code != 0:
		return agentcli.End{}
	case r.result == nil && r.Session() != "":
		return agentcli.End{Verdict: agentcli.Unfinished, Reason: "it ended without a result"}
	case r.result == nil:
		return agentcli.End{}
	case r.toldToGoOn >= agentcli.MaxToldToGoOn:
		return r.WillNotGoOn()
	}
	return agentcli.End{Verdict: agentcli.Finished}
}

// apiError reads an error of the model's interface; some statuses stand for several.
func apiError(code int, message string, at time.Time) agentcli.APIError {
	e := agentcli.APIError{Status: statusOf(code, message), Message: message, Until: agentcli.WaitTime(message, at)}
	switch {
	case e.Status == http.StatusBadRequest && strings.Contains(message, `"API_KEY_INVALID"`):
		e.Kind = fault.WrongKey
	case e.Status == http.StatusBadRequest && strings.Contains(message, "exceeds the maximum number of tokens"):
		e.Kind = fault.ContextTooLong
	case e.Status == http.StatusTooManyRequests && strings.HasPrefix(message, "You have exhausted your "):
		e.Kind = fault.UsageLimit
	}
	return e
}
