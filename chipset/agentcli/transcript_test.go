package agentcli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gastown-chipset/chipset/state/spend"
)

// Whatever a client claims to have used can be added up and stored, and takes neither time nor memory without end.
func TestUsageIsBounded(t *testing.T) {
	var t1 Transcript
	for i := range 10 * maxModels {
		t1.Use(fmt.Sprint("model ", i), spend.Usage{In: 1})
	}
	if used := t1.Used(); len(used) != maxModels || t1.Figures().TokensIn != 10*maxModels {
		t.Errorf("%d models, %+v", len(used), t1.Figures())
	}

	const most = 1<<63 - 1
	var t2 Transcript
	for range 3 {
		t2.Use("m", spend.Usage{In: most, Cached: most, Written: most, Out: most, CostUSD: most})
		t2.Use("m", spend.Usage{In: -most, Cached: -1, Written: -1, Out: -most, CostUSD: -most})
	}
	t2.Settle(append(t2.Used(), spend.Model{Model: "n", Usage: spend.Usage{In: -1, Out: 2}}))
	want := []spend.Model{{Model: "m", Usage: spend.Usage{In: maxFigure, Cached: maxFigure, Written: maxFigure, Out: maxFigure, CostUSD: spend.USD(maxFigure)}},
		{Model: "n", Usage: spend.Usage{Out: 2}}}
	if diff := cmp.Diff(want, t2.Used()); diff != "" {
		t.Error(diff)
	}
}

// A client that was refused very many tools gives a reason of a few lines.
func TestReasonOfRefusalIsBounded(t *testing.T) {
	var tools []string
	for i := range 100_000 {
		tools = append(tools, fmt.Sprint("tool", i))
	}
	if end := WasRefused(tools); len(end.Reason) > 2*maxSaid || !strings.Contains(end.Reason, "tool0") {
		t.Errorf("%d bytes: %.100s", len(end.Reason), end.Reason)
	}
}

// The name of a session goes on a command line, and clients make file names of it.
func TestSessionIsNoPathAndNoOption(t *testing.T) {
	for name, good := range map[string]bool{"0199-ab_C.d": true, "": false, ".": false, "..": false, "../x": false, "--help": false, "a b": false, "a\n": false} {
		var tr Transcript
		tr.Began(name)
		if got := tr.Session() == name && name != ""; got != good {
			t.Errorf("%q: %t, want %t", name, got, good)
		}
	}
}
