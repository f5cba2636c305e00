package agentcli

import (
	"fmt"
	"strings"
)

// Figures are what a session has done and cost so far, as far as its client says.
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

// Known tells whether there is anything to say.
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
		parts = append(parts, thousands(tokens)+" tokens")
	}
	if f.CostUSD > 0 {
		parts = append(parts, fmt.Sprintf("$%.2f", f.CostUSD))
	}
	return strings.Join(parts, ", ")
}

func thousands(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
}
