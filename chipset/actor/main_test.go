package actor

import (
	"os"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

func TestMain(m *testing.M) { os.Exit(rigtest.Main(m)) }

func as(r *rig.Rig, id state.AgentID) *Actor { return &Actor{Rig: r, ID: id} }

func add(t *testing.T, r *rig.Rig, title string) bead.Bead {
	t.Helper()
	b, err := as(r, state.Human).AddBead(t.Context(), bead.Bead{Title: title})
	rigtest.Must(t, err)
	return b
}
