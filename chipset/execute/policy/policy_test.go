package policy

import (
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/state/fault"
)

// TestProbes: a probe of what only the person can mend is a session that fails, most likely, so there are few of them.
func TestProbes(t *testing.T) {
	rules := Pauses(&definition.Definition{})
	for kind, want := range map[fault.Kind][]time.Duration{
		fault.Overloaded: {5 * time.Second, 10 * time.Second, 20 * time.Second},
		fault.WrongKey:   {5 * time.Minute, 10 * time.Minute, 20 * time.Minute},
	} {
		for i, w := range want {
			if got := rules.Wait(kind, i+1); got != w {
				t.Errorf("%s: after %d tries %s, want %s", kind, i+1, got, w)
			}
		}
		if most := rules.Wait(kind, 99); most > time.Hour {
			t.Errorf("%s: waits %s at most", kind, most)
		}
	}
}

// A look over many beads finds the scopes that each would find by itself.
func TestClients(t *testing.T) {
	d := &definition.Definition{Worker: definition.Worker{Default: "claude"}}
	client := Clients(d)
	for _, worker := range []string{"", "codex", "sh -c true", "", "codex", "claude"} {
		if got, want := client(worker), Client(d, worker); got != want {
			t.Errorf("%q: %s, want %s", worker, got, want)
		}
	}
	if client("codex") == client("") {
		t.Error("codex has the scope of claude")
	}
}
