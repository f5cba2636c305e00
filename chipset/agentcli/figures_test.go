package agentcli

import "testing"

func TestFiguresInWords(t *testing.T) {
	for want, f := range map[string]Figures{
		"": {}, "1 turn": {Turns: 1}, "2 turns, 1 tool call, 12.3k tokens, $0.05": {Turns: 2, Tools: 1, TokensIn: 12000, TokensOut: 345, CostUSD: 0.05},
		"999 tokens": {TokensIn: 999}, "1.5M tokens": {TokensOut: 1_500_000},
	} {
		if got := f.String(); got != want {
			t.Errorf("%+v is %q, want %q", f, got, want)
		}
	}
}
