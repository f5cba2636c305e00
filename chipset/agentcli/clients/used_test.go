package clients

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/state/spend"
)

// play lets a reader read the transcript of a client, without its last lines.
func play(t *testing.T, r agentcli.Reader, name, transcript string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", name, "testdata", transcript+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := agentcli.Lines{To: r.Line}
	if _, err := lines.Write(data); err != nil {
		t.Fatal(err)
	}
	lines.Flush()
	r.End(0, time.Time{})
}

// TestUsed: what each client says that a session has used, and what it cost where it says so.
func TestUsed(t *testing.T) {
	for name, want := range map[string][]spend.Model{
		"claude":   {{Model: "claude-opus-5-5", Usage: spend.Usage{In: 25095, Out: 14, CostUSD: 100_660}}},
		"codex":    {{Usage: spend.Usage{In: 0, Out: 14}}},
		"gemini":   {{Model: "gemini-2.5-pro", Usage: spend.Usage{In: 24520, Out: 14}}},
		"opencode": {{Usage: spend.Usage{In: 0, Out: 14}}},
	} {
		r := Named(name).Reader()
		play(t, r, name, "finished")
		got := r.Used()
		for i := range got {
			if want[i].In == 0 && got[i].In > 0 {
				got[i].In = 0 // it differs with each recording
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestUsedAfterKill: what a client says after a run that was killed is less than what was counted: then it is what the last
// run used.
func TestUsedAfterKill(t *testing.T) {
	said := func(in, cost string) []byte {
		return []byte(`{"type":"result","total_cost_usd":` + cost + `,"modelUsage":{"m":{"inputTokens":` + in + `,"outputTokens":1}}}`)
	}
	answer := func(id string) []byte {
		return []byte(`{"type":"assistant","message":{"id":"` + id + `","model":"m","usage":{"input_tokens":1000,"cache_read_input_tokens":500,"output_tokens":5}}}`)
	}
	r := Named("claude").Reader()
	r.Line(answer("m1"))
	r.Line(answer("m2"))
	r.Resumed()
	r.Line(answer("m3"))
	r.Line(said("1600", "0.25"))
	killed := spend.Model{Model: "m", Usage: spend.Usage{In: 3000, Cached: 1000, Out: 10}}
	if diff := cmp.Diff([]spend.Model{killed, {Model: "m", Usage: spend.Usage{In: 1600, Out: 1, CostUSD: 250_000}}}, r.Used()); diff != "" {
		t.Errorf("after a run that was killed:\n%s", diff)
	}
	r.Resumed()
	r.Line(said("9000", "2"))
	if diff := cmp.Diff([]spend.Model{{Model: "m", Usage: spend.Usage{In: 9000, Out: 1, CostUSD: 2_000_000}}}, r.Used()); diff != "" {
		t.Errorf("after the totals:\n%s", diff)
	}
	if f := r.Figures(); f.TokensIn != 9000 || f.CostUSD != 2 {
		t.Errorf("the figures are %+v", f)
	}
}

func TestModelOf(t *testing.T) {
	for want, argv := range map[string][]string{"": {"codex", "exec"}, "a": {"codex", "--model", "a"}, "b": {"x", "--model=b"}, "c": {"codex", "-m", "c"}} {
		if got := agentcli.ModelOf(argv); got != want {
			t.Errorf("%v: %q", argv, got)
		}
	}
}
