package codex

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/spend"
)

type reader struct {
	agentcli.Transcript
	// completed is true once the turn is through, failed once it can't be; failure is why, or what keeps it.
	completed, failed bool
	failure           string
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
		ID      string `json:"id"`
		Type    string `json:"type"`
		Text    string `json:"text"`
		Tool    string `json:"tool"`
		Message string `json:"message"`
	} `json:"item"`
	Usage struct {
		In     int64 `json:"input_tokens"`
		Cached int64 `json:"cached_input_tokens"`
		Out    int64 `json:"output_tokens"`
	} `json:"usage"`
}

func (r *reader) Line(line []byte) {
	var l printed
	if !r.Decode(line, &l) {
		return
	}
	if strings.HasPrefix(l.Type, "item.") && l.Item.Type != "error" {
		r.failure = "" // it goes on
	}
	switch l.Type {
	case "thread.started":
		r.Began(l.Thread)
	case "turn.started":
		r.completed, r.failed = false, false
	case "item.started":
		if l.Item.Type != "todo_list" { // which is completed with the turn
			r.CallBegan(l.Item.ID)
		}
	case "item.completed":
		r.CallEnded(l.Item.ID)
		r.item(&l)
	case "error":
		r.failure = agentcli.Clip(l.Message)
	case "turn.failed":
		r.completed, r.failed, r.failure = false, true, agentcli.Clip(l.Error.Message)
	case "turn.completed":
		r.completed, r.failure = true, ""
		// The totals of the whole thread, earlier runs included.
		r.Settle([]spend.Model{{Usage: spend.Usage{In: l.Usage.In, Cached: l.Usage.Cached, Out: l.Usage.Out}}})
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
	r.completed, r.failed, r.failure = false, false, ""
}

// Trying implements agentcli.Reader.
func (r *reader) Trying() fault.Fault {
	if r.completed || !r.failed && !strings.HasPrefix(r.failure, reconnecting) {
		return fault.Fault{}
	}
	return failed(r.failure, time.Time{}).Fault
}

// Waits implements agentcli.Reader.
func (r *reader) Waits() bool { return !r.completed && !r.failed && !r.Calls() }

func (r *reader) End(code int, at time.Time) agentcli.End {
	var end agentcli.End
	switch {
	case r.failure != "" && !r.completed && code == 0:
		end.Verdict, end.Reason = agentcli.Unfinished, "its turn failed: "+agentcli.PlainMessage(r.failure)
	case r.failure != "" && !r.completed:
		end = failed(r.failure, at)
	case code == usageError && r.Complaint("error: ") != "":
		end = agentcli.RefusedFlags(r.Complaint("error: "))
	case code != 0 && r.Complaint(cannotResume) != "":
		end = agentcli.SessionGone(strings.TrimPrefix(r.Complaint(cannotResume), "Error: "))
	case code != 0:
	case r.completed:
		end.Verdict = agentcli.Finished
	case r.Session() != "":
		end.Verdict, end.Reason = agentcli.Unfinished, "it ended in the middle of its turn"
	}
	return r.Quoted(end)
}

// reconnecting begins its words about an error after which it tries again; the error stands
// in parentheses behind them.
const reconnecting = "Reconnecting... "

// cannotResume begins its words about a session that it can't load.
const cannotResume = "Error: thread/resume: "

// usageError is its exit code for a command line that it does not understand.
const usageError = 2

// statusPattern matches the status in its words for an answer of the model's interface.
const statusPattern = `^(?:unexpected status|exceeded retry limit, last status:) (\d{3})\b[^:]*(?:: (.*?))?(?:, url: .*)?$`

// failed judges the message of a turn that failed, or of one that ended from outside while
// the client tried again. The message is all there is.
func failed(message string, at time.Time) agentcli.End {
	if inner, found := strings.CutPrefix(message, reconnecting); found {
		if _, reason, ok := strings.Cut(strings.TrimSuffix(inner, ")"), " ("); ok {
			message = reason
		}
	}
	e := agentcli.APIError{Message: message}
	if m := regexp.MustCompile(statusPattern).FindStringSubmatch(message); m != nil {
		e.Status, _ = strconv.Atoi(m[1])
		e.Message = m[2]
		return e.End()
	}
	for _, known := range []struct {
		begins string
		kind   fault.Kind
	}{
		{"You’ve hit your usage limit", fault.UsageLimit},
		{"You've hit your usage limit", fault.UsageLimit},
		{"Quota exceeded.", fault.Credit},
		{"Codex ran out of room in the model's context window", fault.ContextTooLong},
		{"We’re currently experiencing high demand", fault.ServerError},
		{"Selected model is at capacity", fault.Overloaded},
		{"Missing environment variable: ", fault.NotLoggedIn},
		{"Connection failed: ", fault.Network},
		{"stream disconnected before completion", fault.Network},
	} {
		if strings.HasPrefix(message, known.begins) {
			e.Kind = known.kind
			if e.Kind == fault.UsageLimit {
				e.Until = agentcli.ResetTime(message, at)
			}
			return e.End()
		}
	}
	// Whether another try helps is not in it.
	return agentcli.End{Verdict: agentcli.Unfinished, Reason: "its turn failed: " + agentcli.PlainMessage(message)}
}
