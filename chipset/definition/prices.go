package definition

import "strings"

// Price is what a million tokens of a model cost, in US dollars.
type Price struct {
	In, Out float64
	// Cached is the price of what was read from a cache, CacheWritten of what was put into one; nil is that of In.
	Cached       *float64
	CacheWritten *float64 `yaml:"cache_written"`
}

// Tokens are numbers of tokens. In counts Cached and CacheWritten, too.
type Tokens struct{ In, Cached, CacheWritten, Out int64 }

// Cost returns what tokens cost, in US dollars.
func (p Price) Cost(t Tokens) float64 {
	cached, written := p.In, p.In
	if p.Cached != nil {
		cached = *p.Cached
	}
	if p.CacheWritten != nil {
		written = *p.CacheWritten
	}
	const million = 1e6
	plain := max(0, t.In-t.Cached-t.CacheWritten)
	return (float64(plain)*p.In + float64(t.Cached)*cached + float64(t.CacheWritten)*written + float64(t.Out)*p.Out) / million
}

// Price returns the price of a model, or where there is none that of a client. The longest name that the model's
// begins with counts; a name of the file goes before one of the built-in table. The name of a provider and a
// slash before the model's say nothing.
func (d *Definition) Price(model, client string) (Price, bool) {
	for _, name := range []string{model, model[strings.LastIndexByte(model, '/')+1:], client} {
		var found Price
		longest := 0
		for _, table := range []map[string]Price{d.Prices, builtinPrices()} {
			for begins, price := range table {
				if len(begins) > longest && strings.HasPrefix(name, begins) {
					found, longest = price, len(begins)
				}
			}
		}
		if longest > 0 {
			return found, true
		}
	}
	return Price{}, false
}

// builtinPrices are the list prices of models' own services for one request, without discounts, surcharges and the
// steps for long prompts: Claude's as platform.claude.com/docs/en/about-claude/pricing had them in October 2026, those of
// OpenAI (developers.openai.com/api/docs/pricing) and Gemini (ai.google.dev/gemini-api/docs/pricing) as others
// reported them between June and September 2026. Codex does not say which model answers; a rig that names none
// counts with those of gpt-5-codex.
func builtinPrices() map[string]Price {
	price := func(in, cached, written, out float64) Price {
		return Price{In: in, Out: out, Cached: &cached, CacheWritten: &written}
	}
	return map[string]Price{
		"claude-fable-5":    price(10, 1, 12.5, 50),
		"claude-fable-5-1":  price(10, 0.25, 12.5, 50),
		"claude-opus-5-5":   price(4, 0.2, 5, 20),
		"claude-opus-5":     price(5, 0.5, 6.25, 25),
		"claude-opus-4":     price(5, 0.5, 6.25, 25),
		"claude-opus-4-0":   price(15, 1.5, 18.75, 75),
		"claude-opus-4-1":   price(15, 1.5, 18.75, 75),
		"claude-opus-4-202": price(15, 1.5, 18.75, 75),
		"claude-sonnet-5-5": price(2, 0.1, 2.5, 10),
		"claude-sonnet-5":   price(2, 0.2, 2.5, 10),
		"claude-sonnet-4":   price(3, 0.3, 3.75, 15),
		"claude-3-7-sonnet": price(3, 0.3, 3.75, 15),
		"claude-haiku-5-5":  price(0.1, 0.01, 0.125, 0.5),
		"claude-haiku-4":    price(1, 0.1, 1.25, 5),
		"claude-3-5-haiku":  price(0.8, 0.08, 1, 4),
		"gpt-6.1-sol":       price(2, 0.1, 2, 10),
		"gpt-6-sol":         price(2, 0.2, 2, 10),
		"gpt-5.5":           price(5, 0.5, 5, 30),
		"gpt-5.5-pro":       price(30, 30, 30, 180),
		"gpt-5.4-pro":       price(30, 30, 30, 180),
		"gpt-5.4":           price(2.5, 0.25, 2.5, 15),
		"gpt-5.4-mini":      price(0.75, 0.075, 0.75, 4.5),
		"gpt-5.4-nano":      price(0.2, 0.02, 0.2, 1.25),
		"gpt-5.3":           price(1.75, 0.175, 1.75, 14),
		"gpt-5.2":           price(1.75, 0.175, 1.75, 14),
		"gpt-5":             price(1.25, 0.125, 1.25, 10),
		"gpt-5-mini":        price(0.25, 0.025, 0.25, 2),
		"gpt-5-nano":        price(0.05, 0.005, 0.05, 0.4),
		"codex":             price(1.25, 0.125, 1.25, 10),
		"gemini-2.5-pro":    price(1.25, 0.125, 1.25, 10),
		"gemini-2.5-flash":  price(0.3, 0.03, 0.3, 2.5),
	}
}
