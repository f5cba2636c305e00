package carry

import (
	"os"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
)

func TestMain(m *testing.M) {
	restore := gittest.Isolate()
	code := m.Run()
	restore()
	os.Exit(code)
}
