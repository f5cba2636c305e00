package opencode

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/spend"
)

type reader struct {
	agentcli.Transcript
	// finish is how the last step ended, within is true until it has; failure is the line of an error, retrying that
	// of an error after which it tries again.
	finish            string
	within            bool
	failure, retrying *printed
	refused           []string
	// noted is true once the plugin has spoken: it says which tools run.
	noted bool
}

type printed struct {
	Type    string `json:"type"`
	Session string `json:"sessionID"`
	Part    struct {
		Text   string  `json:"text"`
		Call   string  `json:"callID"`
		Tool   string  `json:"tool"`
		Reason string  `json:"reason"`
		Cost   float64 `json:"cost"`
		Tokens struct {
			In        int64 `json:"input"`
			Out       int64 `json:"output"`
			Reasoning int64 `json:"reasoning"`
			Cache     struct {
				Read  int64 `json:"read"`
				Write int64 `json:"write"`
			} `json:"cache"`
		} `json:"tokens"`
		State struct {
			Status string `json:"status"`
			Error  string `json:"error"`
		} `json:"state"`
	} `json:"part"`
	// Status is what the plugin reports of the session.
	Status struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Attempt int    `json:"attempt"`
		// Next is when it tries again, in Unix milliseconds.
		Next int64 `json:"next"`
	} `json:"status"`
	Error struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
			Status  int    `json:"statusCode"`
			// Body is the answer of the service, Headers are those of it.
			Body    string            `json:"responseBody"`
			Headers map[string]string `json:"responseHeaders"`
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
	case "chipset.status":
		if r.noted = true; l.Status.Type == "retry" {
			r.retrying = &l
		}
	case "chipset.tool":
		r.noted = true
		r.CallBegan(l.Part.Call)
	case "step_start":
		r.Total.Turns++
		r.finish, r.failure, r.within = "", nil, true
		if r.retrying != nil && r.retrying.Status.Attempt < brokenOff {
			r.retrying = nil
		}
	case "text":
		r.retrying = nil
		r.Say(l.Part.Text)
	case "tool_use":
		r.retrying = nil
		r.CallEnded(l.Part.Call)
		r.Called(l.Part.Tool)
		if l.Part.State.Status == "error" && refusal(l.Part.State.Error) {
			r.refused = append(r.refused, agentcli.Clip(l.Part.Tool))
		}
	case "step_finish":
		r.finish, r.within, r.retrying = l.Part.Reason, false, nil
		k := l.Part.Tokens
		r.Use("", spend.Usage{In: k.In + k.Cache.Read + k.Cache.Write, Cached: k.Cache.Read, Written: k.Cache.Write, Out: k.Out + k.Reasoning, CostUSD: spend.Dollars(l.Part.Cost)})
	case "error":
		r.failure = &l
	}
}

// brokenOff is after how many tries an answer that begins is most likely to break off again.
const brokenOff = 5

// refusal reports whether a tool was not permitted, and not merely failed. The client
// says it in words alone.
func refusal(message string) bool {
	return strings.Contains(message, "rejected permission") || strings.Contains(message, "rule which prevents you")
}

func (r *reader) Resumed() {
	r.Transcript.Resumed()
	r.finish, r.failure, r.retrying, r.refused, r.within, r.noted = "", nil, nil, nil, false, false
}

// Trying implements agentcli.Reader. A run that has failed should have ended.
func (r *reader) Trying() fault.Fault {
	switch {
	case r.failure != nil:
		return r.failure.end(time.Time{}).Fault
	case r.retrying != nil:
		return r.retrying.again(time.Time{}).Fault
	}
	return fault.Fault{}
}

// Waits implements agentcli.Reader. A step begins with the first word of the model and ends after its tools; which of
// them run only the plugin says.
func (r *reader) Waits() bool {
	return r.finish != "stop" && r.failure == nil && !r.Calls() && (r.noted || !r.within)
}

func (r *reader) End(code int, at time.Time) agentcli.End {
	return r.Quoted(r.judge(code, at))
}

func (r *reader) judge(code int, at time.Time) agentcli.End {
	switch {
	case r.failure != nil && code != 0:
		return r.failure.end(at)
	case r.failure != nil:
		return agentcli.End{Verdict: agentcli.Unfinished, Reason: r.failure.reason()}
	case r.retrying != nil && code != 0:
		return r.retrying.again(at)
	case code != 0 && r.Complaint("opencode run [") != "":
		return agentcli.RefusedFlags("it prints its usage and ends")
	case code != 0 && r.Complaint("Error: Session not found", "\x1b[91m\x1b[1mError: \x1b[0mSession not found") != "":
		return agentcli.SessionGone("session not found")
	case code != 0 || r.Session() == "":
		return agentcli.End{}
	case len(r.refused) > 0:
		return agentcli.WasRefused(r.refused)
	case r.finish != "stop":
		return agentcli.End{Verdict: agentcli.Unfinished, Reason: strings.TrimSpace("it ended in the middle of its turn " + agentcli.Clip(r.finish))}
	}
	return agentcli.End{Verdict: agentcli.Finished}
}

// longWait is above what it waits of its own accord before it tries again.
const longWait = time.Minute

// again judges an error after which it tries again. What it says of that is the message alone.
func (l *printed) again(at time.Time) agentcli.End {
	e := agentcli.APIError{Kind: fault.ServerError, Message: l.Status.Message}
	for _, known := range []struct {
		says string
		kind fault.Kind
	}{
		{"overloaded", fault.Overloaded}, {"rate limit", fault.RateLimit}, {"too many requests", fault.RateLimit}, {"connect", fault.Network},
	} {
		if strings.Contains(strings.ToLower(l.Status.Message), known.says) {
			e.Kind = known.kind
			break
		}
	}
	if next := time.UnixMilli(l.Status.Next); next.Sub(at) > longWait {
		e.Until = agentcli.Plausible(next, at)
	}
	return e.End()
}

func (l *printed) reason() string {
	return "it ended with an error: " + agentcli.Clip(l.Error.Name+" "+agentcli.PlainMessage(l.Error.Data.Message))
}

// end judges the line of an error.
func (l *printed) end(at time.Time) agentcli.End {
	e := agentcli.APIError{Status: l.Error.Data.Status, Message: l.Error.Data.Message}
	var body struct {
		Error struct {
			Code json.RawMessage `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal([]byte(l.Error.Data.Body), &body) // another form says nothing here
	switch l.Error.Name {
	case "ContextOverflowError":
		e.Kind = fault.ContextTooLong
	case "ProviderAuthError":
		e.Kind = fault.NotLoggedIn
	case "ProviderModelNotFoundError":
		e.Kind = fault.ModelUnknown
	case "APIError":
		if string(body.Error.Code) == `"insufficient_quota"` {
			e.Kind = fault.Credit
		}
		e.Until = agentcli.RetryAfter(l.Error.Data.Headers["retry-after"], at)
	default:
		return agentcli.End{Verdict: agentcli.Unfinished, Reason: l.reason()}
	}
	return e.End()
}
