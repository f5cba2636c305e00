package speaker

import (
	"os"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

func TestMain(m *testing.M) {
	restore := gittest.Isolate()
	code := m.Run()
	restore()
	os.Exit(code)
}

// newRig is a rig with two polecats; more is appended to its definition.
func newRig(t *testing.T, more string) *rig.Rig {
	t.Helper()
	dir := gittest.Repo(t)
	gittest.Write(t, dir, ".chipset/chipset.yaml", "agents:\n  agents:\n    - {name: mayor, role: mayor}\n    - {name: witness, role: witness}\n"+
		"    - {name: pool, role: polecat, count: 2}\nrig: {name: r, bead_prefix: tt}\n"+more)
	r, err := rig.Init(t.Context(), rig.InitOptions{Dir: dir, Clock: time.Now})
	must(t, err)
	return r
}

func as(r *rig.Rig, id state.AgentID) *Speaker { return &Speaker{Rig: r, ID: id} }

func add(t *testing.T, r *rig.Rig, title string) bead.Bead {
	t.Helper()
	b, err := as(r, state.Human).AddBead(bead.Bead{Title: title})
	must(t, err)
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
