package doctor

import (
	"os"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/state"
)

const alpha, bravo state.AgentID = rigtest.Alpha, "polecat-bravo"

// fixture is a rig that a test damages.
type fixture struct{ *rigtest.Yard }

// errSpoiled is what a damage that can't be done any more panics with.
type errSpoiled struct{ error }

// try does a damage if it can still be done.
func (f *fixture) try(spoil func(f *fixture)) (done bool) {
	f.OnError = func(err error) { panic(errSpoiled{err}) }
	defer func() {
		f.OnError = nil
		if e := recover(); e != nil {
			if _, expected := e.(errSpoiled); !expected {
				panic(e)
			}
			done = false
		}
	}()
	spoil(f)
	return true
}

func TestMain(m *testing.M) {
	restore := gittest.Isolate()
	code := m.Run()
	os.RemoveAll(inMidflight.dir)
	os.RemoveAll(inOrder.dir)
	restore()
	os.Exit(code)
}

func must(t testing.TB, err error) { t.Helper(); rigtest.Must(t, err) }
