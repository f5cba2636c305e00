package agentcli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/state/wording"
)

// Transcript is what the readers of JSON lines keep.
type Transcript struct {
	// Total is what Figures returns.
	Total   Figures
	session string
	// said is the last text of the agent, noise the last lines that are not JSON.
	said  string
	noise []string
}

// Figures implements Reader.
func (t *Transcript) Figures() Figures { return t.Total }

// Session implements Reader.
func (t *Transcript) Session() string { return t.session }

// Resumed implements Reader.
func (t *Transcript) Resumed() { t.noise = nil }

// Decode reads a line into v, and keeps what is not a JSON object as noise.
func (t *Transcript) Decode(line []byte, v any) bool {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return false
	}
	if line[0] == '{' && json.Unmarshal(line, v) == nil {
		return true
	}
	if line[0] != '{' {
		t.noise = append(t.noise, Clip(string(line)))
		if len(t.noise) > maxNoise {
			t.noise = slices.Delete(t.noise, 0, 1)
		}
	}
	return false
}

// Say remembers a text of the agent.
func (t *Transcript) Say(text string) {
	if text = strings.TrimSpace(text); text != "" {
		t.said = Clip(text)
	}
}

// Began remembers the session, once: what an agent prints later can't change it.
func (t *Transcript) Began(session string) {
	if t.session == "" && plausible(session) {
		t.session = session
	}
}

// Called counts a call of a tool.
func (t *Transcript) Called(tool string) {
	t.Total.Tools++
	if tool != "" {
		t.Total.Tool = Clip(tool)
	}
}

// Quoted adds to an end what a failed run leaves to quote.
func (t *Transcript) Quoted(end End) End {
	if end.Said = t.said; len(t.noise) > 0 {
		end.Said = strings.Join(t.noise, "\n")
	}
	return end
}

// plausible reports whether an ID may be put on a command line.
func plausible(id string) bool {
	if id == "" || len(id) > 128 || id[0] == '-' {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && r != '-' && r != '_' && r != '.'
	})
}

// Clip bounds a quotation, and makes it valid UTF-8.
func Clip(s string) string {
	return wording.Clip(s, maxSaid)
}

// PlainText is the reader of clients that print for people: it keeps the last line.
type PlainText struct{ Transcript }

// Line implements Reader.
func (p *PlainText) Line(line []byte) { p.Say(string(line)) }

// End implements Reader.
func (p *PlainText) End(int, time.Time) End { return End{Said: p.said} }

// NewPlainText returns a PlainText.
func NewPlainText() Reader { return &PlainText{} }

// MaxToldToGoOn is how often in a row, without a tool call between, an agent that ends
// its turn must have been told to go on to count as one that will not. Hooks of a
// project's own ask once or twice.
const MaxToldToGoOn = 3

// WillNotGoOn is the end of a run whose agent was told to go on that often.
func WillNotGoOn() End {
	return End{Verdict: Unfinished, Reason: "it was told again and again to go on, and ended all the same"}
}

// WasRefused is the end of a run that asked for these tools in vain.
func WasRefused(tools []string) End {
	slices.Sort(tools)
	return End{Verdict: Refused, Reason: "it was refused what it asked for: " + strings.Join(slices.Compact(tools), ", ")}
}

// APIError judges an error of the model's interface by its HTTP status, 0 where
// there was no answer at all. The client has tried several times already.
func APIError(status int, message string) End {
	what := "the model's API could not be reached"
	if status > 0 {
		what = fmt.Sprintf("API error %d", status)
	}
	end := End{Verdict: Unfinished, Reason: strings.TrimSpace(what + ": " + Clip(message))}
	transient := status == 0 || status == 408 || status == 409 || status == 425 || status == 429 || status >= 500
	if !transient {
		end.Verdict = Broken
	}
	return end
}
