package claude

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/spend"
)

// NewReader returns a reader of stream-json.
func NewReader() agentcli.Reader { return &reader{} }

type reader struct {
	agentcli.Transcript
	// message is the last answer that was counted: it comes in several lines.
	message string
	result  *printed
	// capped is true once the client overrode its hooks; toldToGoOn counts how
	// often in a row they kept the agent from ending.
	capped     bool
	toldToGoOn int
	// category is what the client calls the error that the last answer stands for; retrying is
	// the status of a request that it tries again, nil while none is.
	category string
	retrying *int
	// reset is when the usage limit ends that was last refused, 0 for none, in Unix seconds.
	reset   int64
	limited bool
}

// printed is the part that matters of any line of stream-json.
type printed struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Key     string `json:"key"`
	Session string `json:"session_id"`
	// Parent is set inside a subagent.
	Parent  *string `json:"parent_tool_use_id"`
	Message struct {
		ID      string          `json:"id"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
		Usage   usage           `json:"usage"`
	} `json:"message"`

	// Error is what the client calls an error of the model's interface.
	Error json.RawMessage `json:"error"`
	// Retried is the status of a request that is tried again.
	Retried int `json:"error_status"`
	Limit   struct {
		Status string `json:"status"`
		Resets int64  `json:"resetsAt"`
	} `json:"rate_limit_info"`

	// Cost is that of all models together. Older versions say nothing of each.
	Cost     float64  `json:"total_cost_usd"`
	IsError  bool     `json:"is_error"`
	Status   int      `json:"api_error_status"`
	Terminal string   `json:"terminal_reason"`
	Result   string   `json:"result"`
	Errors   []string `json:"errors"`
	Denials  []struct {
		Tool string `json:"tool_name"`
	} `json:"permission_denials"`
	Models map[string]struct {
		In      int64   `json:"inputTokens"`
		Out     int64   `json:"outputTokens"`
		Read    int64   `json:"cacheReadInputTokens"`
		Created int64   `json:"cacheCreationInputTokens"`
		Cost    float64 `json:"costUSD"`
	} `json:"modelUsage"`
}

type usage struct {
	In      int64 `json:"input_tokens"`
	Out     int64 `json:"output_tokens"`
	Read    int64 `json:"cache_read_input_tokens"`
	Created int64 `json:"cache_creation_input_tokens"`
}

func (r *reader) Line(line []byte) {
	var l printed
	if !r.Decode(line, &l) {
		return
	}
	if l.Type == "assistant" || l.Type == "user" || l.Type == "result" {
		r.retrying = nil // it got through, or gave up
	}
	switch {
	case l.Type == "system" && l.Subtype == "api_retry":
		r.retrying = &l.Retried
	case l.Type == "rate_limit_event":
		r.limited, r.reset = l.Limit.Status == "rejected", l.Limit.Resets
	case l.Type == "system" && l.Subtype == "init":
		r.Began(l.Session)
	case l.Type == "system" && l.Key == "stop-hook-block-cap":
		r.capped = true
	case l.Type == "user":
		r.user(&l)
	case l.Type == "assistant":
		r.assistant(&l)
	case l.Type == "result":
		r.end(&l)
	}
}

func (r *reader) assistant(l *printed) {
	r.category = ""
	_ = json.Unmarshal(l.Error, &r.category) // anything but a word is none
	if l.Message.ID != r.message {
		r.message = l.Message.ID
		u := l.Message.Usage
		r.Use(l.Message.Model, usedTokens(u.In, u.Read, u.Created, u.Out))
		if l.Parent == nil {
			r.Total.Turns++
		}
	}
	for _, block := range blocksOf(l.Message.Content) {
		switch block.Type {
		case "tool_use":
			r.toldToGoOn = 0
			r.Called(block.Name)
			r.CallBegan(block.ID)
		case "text":
			r.Say(block.Text)
		}
	}
}

// user takes what hooks and tools have to say to the agent.
func (r *reader) user(l *printed) {
	for i, b := range blocksOf(l.Message.Content) {
		switch {
		case b.Type == "tool_result":
			r.CallEnded(b.Of)
		case i == 0 && b.Type == "text" && strings.HasPrefix(b.Text, "Stop hook feedback:"):
			r.toldToGoOn++
		}
	}
}

// block is a part of a message.
type block struct {
	Type, ID, Name, Text string
	// Of is the call that a result is of.
	Of string `json:"tool_use_id"`
}

// blocksOf returns the parts of a message, none of one that is plain text.
func blocksOf(content json.RawMessage) []block {
	var blocks []block
	if json.Unmarshal(content, &blocks) != nil {
		return nil
	}
	return blocks
}

// usedTokens is a usage as the client counts it: what came from a cache or was put into one apart.
func usedTokens(in, read, created, out int64) spend.Usage {
	return spend.Usage{In: in + read + created, Cached: read, Written: created, Out: out}
}

// end takes the totals. They are those of the whole session, unless the run before was killed: then
// they are those of this run, and less than what was counted before it.
func (r *reader) end(l *printed) {
	r.result = l
	r.Say(l.Result)
	var in int64
	var said []spend.Model
	for _, name := range slices.Sorted(maps.Keys(l.Models)) {
		m := l.Models[name]
		u := usedTokens(m.In, m.Read, m.Created, m.Out)
		u.CostUSD = spend.Dollars(m.Cost)
		in += u.In
		said = append(said, spend.Model{Model: name, Usage: u})
	}
	if len(said) == 1 && said[0].CostUSD == 0 {
		said[0].CostUSD = spend.Dollars(l.Cost)
	}
	switch {
	case in == 0:
	case in < r.ReadBefore():
		r.SettleRun(said)
	default:
		r.Settle(said)
	}
}

func (r *reader) Resumed() {
	r.Transcript.Resumed()
	r.result, r.capped, r.toldToGoOn = nil, false, 0
	r.category, r.retrying, r.limited, r.reset = "", nil, false, 0
}

// Trying implements agentcli.Reader.
func (r *reader) Trying() fault.Fault {
	switch {
	case r.result != nil:
		return r.judge(1, time.Time{}).Fault // it has failed, and should have ended
	case r.retrying != nil:
		return agentcli.APIError{Status: *r.retrying}.End().Fault
	}
	return fault.Fault{}
}

// Waits implements agentcli.Reader.
func (r *reader) Waits() bool { return r.result == nil && !r.Calls() }

func (r *reader) End(code int, at time.Time) agentcli.End {
	return r.Quoted(r.judge(code, at))
}

func (r *reader) judge(code int, at time.Time) agentcli.End {
	l := r.result
	switch {
	case l == nil && r.retrying != nil:
		return agentcli.APIError{Status: *r.retrying}.End()
	case l == nil && code == 0 && r.Session() != "":
		return agentcli.End{Verdict: agentcli.Unfinished, Reason: "it ended without a result, as after an interrupt"}
	case l == nil:
		if usage := r.Complaint("error: unknown option ", "error: option "); usage != "" && code != 0 {
			return agentcli.RefusedFlags(usage)
		}
		return agentcli.End{}
	case l.IsError && (l.Status != 0 || l.Terminal == "api_error" || l.Terminal == "prompt_too_long"):
		return r.apiError(l, at).End()
	case l.IsError && slices.ContainsFunc(l.Errors, isGone):
		return agentcli.SessionGone(l.Errors[0])
	case l.IsError && l.Subtype == "error_max_turns":
		return agentcli.End{Verdict: agentcli.Unfinished, Reason: "it reached its limit of turns"}
	case l.IsError:
		return agentcli.End{Verdict: agentcli.Unfinished, Reason: strings.TrimSpace("it ended with an error: " + agentcli.Clip(l.Subtype+" "+l.Result+strings.Join(l.Errors, "; ")))}
	case len(l.Denials) > 0:
		var tools []string
		for _, d := range l.Denials {
			tools = append(tools, agentcli.Clip(d.Tool))
		}
		return agentcli.WasRefused(tools)
	case r.capped || r.toldToGoOn >= agentcli.MaxToldToGoOn:
		return r.WillNotGoOn()
	case code != 0:
		return agentcli.End{}
	}
	return agentcli.End{Verdict: agentcli.Finished}
}

// isGone reports whether an error of the client is that it does not know the session.
func isGone(message string) bool {
	return strings.HasPrefix(message, "No conversation found with session ID")
}

// apiError reads an error of the model's interface. What the client calls it says more
// than the status.
func (r *reader) apiError(l *printed, at time.Time) agentcli.APIError {
	e := agentcli.APIError{Status: l.Status, Message: l.Result}
	limited, until := r.usageLimit(l.Result, at)
	switch {
	case l.Terminal == "prompt_too_long":
		e.Kind = fault.ContextTooLong
	case r.category == "billing_error":
		e.Kind = fault.Credit
	case r.category == "model_not_found":
		e.Kind = fault.ModelUnknown
	case limited && (l.Status == 0 || l.Status == http.StatusTooManyRequests):
		e.Kind, e.Until = fault.UsageLimit, until
	case l.Status == 0 && r.category == "authentication_failed":
		e.Kind = fault.NotLoggedIn
	}
	// It repeats what the phrase of the kind says.
	e.Message = strings.TrimPrefix(e.Message, fmt.Sprintf("API Error: Request rejected (%d) · ", l.Status))
	e.Message = strings.TrimPrefix(strings.TrimPrefix(e.Message, "API Error: "), fmt.Sprintf("%d ", l.Status))
	return e
}

// usageLimit reports whether the limit of the account is reached, and when that ends where
// the client says so: in an event of its own, or in words.
func (r *reader) usageLimit(text string, at time.Time) (bool, time.Time) {
	if r.limited {
		return true, agentcli.Plausible(time.Unix(r.reset, 0), at)
	}
	before, seconds, found := strings.Cut(text, " usage limit reached|")
	if found && !strings.Contains(before, "\n") {
		n, _ := strconv.ParseInt(strings.TrimSpace(seconds), 10, 64)
		return true, agentcli.Plausible(time.Unix(n, 0), at)
	}
	if strings.HasPrefix(text, "You've hit your ") || strings.HasPrefix(text, "Claude usage limit reached") {
		return true, agentcli.ResetTime(text, at)
	}
	return false, time.Time{}
}
