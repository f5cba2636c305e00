package execute

import (
	"slices"
	"strings"
	"testing"

	syscalls "github.com/gastown-chipset/chipset/state/statetest/refused"
)

// readOrder tells at which call of do something below each folder of the state is looked at first.
func readOrder(t *testing.T, dir string, do func() error, folders ...string) []int {
	t.Helper()
	var err error
	calls := syscalls.Calls(t, dir, 0, func() { err = do() })
	if err != nil {
		t.Fatal(err)
	}
	var order []int
	for _, f := range folders {
		at := slices.IndexFunc(calls, func(c syscalls.Call) bool { return strings.Contains(c.What, f) })
		if at < 0 {
			t.Fatalf("%s is not read", f)
		}
		order = append(order, at)
	}
	return order
}

// A hook is set before its mail is sent, and a bead before its hook. Who looks at them the other way round finds stale what
// is newer than what was read before.
func TestWhatFollowsIsReadFirst(t *testing.T) {
	k := newKennel(t, "")
	k.sling("true")
	got := readOrder(t, k.dir, func() error { _, err := k.p.fetch(t.Context()); return err }, "/mail/polecat-alpha", "/hooks/polecat-alpha.json", "/work/")
	if !slices.IsSorted(got) {
		t.Errorf("a polecat reads mail, hook and bead at %v", got)
	}
	m := NewMayor(Agent{Rig: k.rig, ID: "mayor", Session: "se-now", Say: t.Logf})
	got = readOrder(t, k.dir, func() error { _, err := m.fetch(t.Context()); return err }, "/state/hooks", "/state/work")
	if !slices.IsSorted(got) {
		t.Errorf("the mayor reads hooks and beads at %v", got)
	}
}
