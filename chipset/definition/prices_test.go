package definition

import (
	"math"
	"testing"
)

// TestPrices: the longest name counts, the file's before the built-in one, the client's where there is no other.
func TestPrices(t *testing.T) {
	def := mustParse(t, minimal+"prices: {gpt-5: {in: 1, out: 2}, mine: {in: 3, out: 4}, aider: {in: 5, out: 6}}\n")
	for _, c := range []struct {
		model, client string
		in            float64
	}{
		{"gpt-5-pro", "codex", 1},
		{"gpt-5-mini-2026", "codex", 0.25},
		{"openai/gpt-5", "opencode", 1},
		{"claude-opus-4-1-20250805", "claude", 15},
		{"claude-opus-4-6", "claude", 5},
		{"", "codex", 1.25},
		{"strange", "aider", 5},
		{"strange", "", -1},
		{"", "", -1},
	} {
		price, known := def.Price(c.model, c.client)
		if known != (c.in >= 0) || known && price.In != c.in {
			t.Errorf("%s of %s: %+v, %t", c.model, c.client, price, known)
		}
	}
}

// TestCost: each kind of token has its price; one that is not set is that of in.
func TestCost(t *testing.T) {
	tokens := Tokens{In: 1_000_000, Cached: 600_000, CacheWritten: 100_000, Out: 200_000}
	for want, p := range map[float64]Price{
		1*0.3 + 0.1*0.6 + 2*0.1 + 10*0.2: {In: 1, Out: 10, Cached: new(0.1), CacheWritten: new(2.0)},
		1 + 10*0.2:                       {In: 1, Out: 10},
	} {
		if got := p.Cost(tokens); math.Abs(got-want) > 1e-9 {
			t.Errorf("%+v: %v, not %v", p, got, want)
		}
	}
}
