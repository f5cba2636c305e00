package agentcli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Figures are what a session has done and cost so far, as its client reports.
type Figures struct {
	// Turns are answers of the model, Tools calls of tools.
	Turns int `json:"turns,omitempty"`
	Tools int `json:"tool_calls,omitempty"`
	// TokensIn counts what was read, from caches too; TokensOut what was written.
	TokensIn  int64   `json:"tokens_in,omitempty"`
	TokensOut int64   `json:"tokens_out,omitempty"`
	CostUSD   float64 `json:"cost_usd,omitempty"`
	// Tool is the one that was called last.
	Tool string `json:"last_tool,omitempty"`
}

// Known reports whether any figure is known.
func (f Figures) Known() bool { return f.Turns > 0 || f.Tools > 0 || f.TokensIn > 0 || f.CostUSD > 0 }

// String is one short phrase for a person.
func (f Figures) String() string {
	var parts []string
	add := func(n int, what string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+what)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, what))
		}
	}
	add(f.Turns, "turn")
	add(f.Tools, "tool call")
	if tokens := f.TokensIn + f.TokensOut; tokens > 0 {
		parts = append(parts, wording.Thousands(tokens)+" tokens")
	}
	if f.CostUSD > 0 {
		parts = append(parts, fmt.Sprintf("$%.2f", f.CostUSD))
	}
	return strings.Join(parts, ", ")
}

// Spent is the tokens and the money as a few characters, "" when neither is known.
func (f Figures) Spent() string {
	var parts []string
	if tokens := f.TokensIn + f.TokensOut; tokens > 0 {
		parts = append(parts, wording.Thousands(tokens))
	}
	if f.CostUSD > 0 {
		parts = append(parts, fmt.Sprintf("$%.2f", f.CostUSD))
	}
	return strings.Join(parts, " ")
}

// Progress is what a running session has done so far, as its client reports it, in
// run/progress/{session}.json. It is for display, may be removed at any time, and
// ends with its session; the totals become an event.
type Progress struct {
	Session state.SessionID `json:"session"`
	// Client is the program, ClientSession its own name for the session.
	Client        string `json:"client"`
	ClientSession string `json:"client_session,omitempty"`
	Figures
	// Resumes is how often the session was continued.
	Resumes int `json:"resumes,omitempty"`
	// Began is where the output of the present run begins in the transcript.
	Began     int64      `json:"began,omitempty"`
	UpdatedAt state.Time `json:"updated_at"`
}

// ProgressDir is the folder of these files.
const ProgressDir = state.RunDir + "/progress"

func progressPath(s state.SessionID) state.Path { return ProgressDir.Join(string(s) + ".json") }

// ReadProgress returns the progress of a session, nil if there is none or it can't be read.
func ReadProgress(t *state.Tree, s state.SessionID) *Progress {
	if s == "" {
		return nil
	}
	var p Progress
	if t.ReadJSON(progressPath(s), &p) != nil || p.Session != s {
		return nil
	}
	return &p
}

// Write replaces the progress of its session. It is not durable.
func (p *Progress) Write(t *state.Tree) error {
	if err := t.MkdirAll(progressPath(p.Session).Dir()); err != nil {
		return err
	}
	return t.ReplaceJSON(progressPath(p.Session), p)
}

// RemoveProgress removes the progress of a session. A missing one is not an error.
func RemoveProgress(t *state.Tree, s state.SessionID) error { return t.Remove(progressPath(s)) }

// String is one short phrase for a person, "" when there is nothing to say.
func (p *Progress) String() string {
	if p == nil || !p.Known() {
		return ""
	}
	text := p.Figures.String()
	switch {
	case p.Resumes == 1:
		text += ", resumed once"
	case p.Resumes > 1:
		text += ", resumed " + strconv.Itoa(p.Resumes) + " times"
	}
	return text
}
