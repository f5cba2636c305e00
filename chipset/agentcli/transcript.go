package agentcli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/spend"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Transcript is what the readers of JSON lines keep.
type Transcript struct {
	// Total has the turns and the calls of tools that Figures returns; its tokens and its cost are those of used.
	Total Figures
	// used is what Used returns, before what it was when the present run began.
	used, before []spend.Model
	session      string
	// said is the last text of the agent, noise the last lines of this run that are not JSON.
	said  string
	noise []string
	// head are the first lines of noise, spoke is true once a line of JSON came in this run.
	head  []string
	spoke bool
	// running are the calls of tools that have begun and not ended.
	running map[string]bool
}

// Figures implements Reader.
func (t *Transcript) Figures() Figures {
	f := t.Total
	for i := range t.used {
		f.TokensIn, f.TokensOut, f.CostUSD = f.TokensIn+t.used[i].In, f.TokensOut+t.used[i].Out, f.CostUSD+t.used[i].CostUSD.Dollars()
	}
	return f
}

// Used implements Reader.
func (t *Transcript) Used() []spend.Model { return slices.Clone(t.used) }

// Use adds what was used of a model.
func (t *Transcript) Use(model string, u spend.Usage) {
	t.used = add(t.used, spend.Model{Model: model, Usage: u})
}

// Limits of what a client is believed to have used: an agent may have a say in its output.
const (
	// maxModels bounds the entries of a session; what exceeds it counts for the last one.
	maxModels = 64
	// maxFigure bounds tokens and millionths of a dollar, far above what any session uses and far below an overflow.
	maxFigure = int64(1e15)
)

// add keeps what has no cost yet apart from what has one.
func add(all []spend.Model, m spend.Model) []spend.Model {
	m.Usage = believed(m.Usage)
	if m.Usage == (spend.Usage{}) {
		return all
	}
	m.Model = Clip(m.Model)
	at := slices.IndexFunc(all, func(o spend.Model) bool { return o.Model == m.Model && (o.CostUSD > 0) == (m.CostUSD > 0) })
	if at < 0 && len(all) < maxModels {
		return append(all, m)
	}
	if at < 0 {
		at = maxModels - 1
	}
	all[at].Add(m.Usage)
	all[at].Usage = believed(all[at].Usage)
	return all
}

// believed returns a usage with each figure from 0 to maxFigure.
func believed(u spend.Usage) spend.Usage {
	figure := func(n int64) int64 { return min(max(n, 0), maxFigure) }
	return spend.Usage{In: figure(u.In), Cached: figure(u.Cached), Written: figure(u.Written), Out: figure(u.Out), CostUSD: spend.USD(figure(int64(u.CostUSD)))}
}

// Settle takes what a client says in place of what was counted: all that the session has used.
func (t *Transcript) Settle(all []spend.Model) { t.settle(nil, all) }

// SettleRun takes it in place of what was counted in the present run.
func (t *Transcript) SettleRun(run []spend.Model) { t.settle(slices.Clone(t.before), run) }

func (t *Transcript) settle(all, said []spend.Model) {
	for _, m := range said {
		all = add(all, m)
	}
	t.used = all
}

// ReadBefore is how many tokens were read before the present run began.
func (t *Transcript) ReadBefore() (tokens int64) {
	for i := range t.before {
		tokens += t.before[i].In
	}
	return tokens
}

// Session implements Reader.
func (t *Transcript) Session() string { return t.session }

// Trying implements Reader, for a client that does not say that it tries again.
func (t *Transcript) Trying() fault.Fault { return fault.Fault{} }

// Waits implements Reader, for a client that does not tell when a tool runs.
func (t *Transcript) Waits() bool { return false }

// Resumed implements Reader.
func (t *Transcript) Resumed() {
	t.noise, t.head, t.spoke, t.before, t.running = nil, nil, false, slices.Clone(t.used), nil
}

// maxRunning bounds the calls that are remembered; no agent makes as many at once.
const maxRunning = 1 << 10

// CallBegan remembers that a call of a tool runs, CallEnded that it does no more.
func (t *Transcript) CallBegan(id string) {
	if t.running == nil {
		t.running = map[string]bool{}
	}
	if len(t.running) < maxRunning {
		t.running[Clip(id)] = true
	}
}

// CallEnded is the other end of CallBegan.
func (t *Transcript) CallEnded(id string) { delete(t.running, Clip(id)) }

// Calls reports whether a call of a tool runs.
func (t *Transcript) Calls() bool { return len(t.running) > 0 }

// Decode reads a line into v, and keeps what is not a JSON object as noise.
func (t *Transcript) Decode(line []byte, v any) bool {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return false
	}
	if line[0] == '{' && json.Unmarshal(line, v) == nil {
		t.spoke = true
		return true
	}
	if line[0] != '{' {
		if len(t.head) < maxNoise {
			t.head = append(t.head, Clip(string(line)))
		}
		t.noise = append(t.noise, Clip(string(line)))
		if len(t.noise) > maxNoise {
			t.noise = slices.Delete(t.noise, 0, 1)
		}
	}
	return false
}

// Complaint returns the line that begins with one of these, of a run that ended before its
// client printed any JSON, and "" for every other run: no agent or tool has run by then,
// so the client itself wrote it. Warnings may stand before it.
func (t *Transcript) Complaint(begins ...string) string {
	if t.spoke {
		return ""
	}
	for _, line := range t.head {
		if slices.ContainsFunc(begins, func(b string) bool { return strings.HasPrefix(line, b) }) {
			return line
		}
	}
	return ""
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

// Quoted adds to an end what a failed run leaves to quote, where nothing is quoted yet.
func (t *Transcript) Quoted(end End) End {
	switch {
	case end.Said != "":
	case len(t.noise) > 0:
		end.Said = strings.Join(t.noise, "\n")
	default:
		end.Said = t.said
	}
	return end
}

// plausible reports whether an ID may be put on a command line, and is no way to another folder.
func plausible(id string) bool {
	if id == "" || len(id) > 128 || id[0] == '-' || id[0] == '.' {
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

// PlainText is the reader of clients that print for people: it keeps the last line. Judge,
// if there is one, says what an exit code means after this first and last line.
type PlainText struct {
	Transcript
	Judge func(code int, first, last string) End
}

// Line implements Reader.
func (p *PlainText) Line(line []byte) {
	p.Say(string(line))
	if len(p.head) == 0 && p.said != "" {
		p.head = []string{p.said}
	}
}

// End implements Reader.
func (p *PlainText) End(code int, _ time.Time) End {
	var end End
	if p.Judge != nil {
		end = p.Judge(code, strings.Join(p.head, ""), p.said)
	}
	end.Said = p.said
	return end
}

// NewPlainText returns a PlainText to which every exit code speaks for itself.
func NewPlainText() Reader { return &PlainText{} }

// MaxToldToGoOn is how often in a row, without a tool call between, an agent that ends
// its turn must have been told to go on to count as one that will not. Hooks of a
// project's own ask once or twice.
const MaxToldToGoOn = 3

// WillNotGoOn is the end of a run whose agent was told to go on that often. It quotes the agent: its client has no part in it.
func (t *Transcript) WillNotGoOn() End {
	return End{Verdict: Unfinished, Reason: "it ended its turn again and again without reporting an end", Said: t.said}
}

// SessionGone is the end of a run whose client could not load the session that it was to go on
// with, in its own words.
func SessionGone(complaint string) End {
	return End{Verdict: Gone, Reason: "its client can't load the session any more: " + Clip(complaint)}
}

// WasRefused is the end of a run that asked for these tools in vain.
func WasRefused(tools []string) End {
	slices.Sort(tools)
	return End{Verdict: Refused, Reason: "it was refused what it asked for: " + Clip(strings.Join(slices.Compact(tools), ", "))}
}
