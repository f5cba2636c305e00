package execute

import (
	"os"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/process"
)

// TestMain makes this binary the supervisor and the sandbox that runners start, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case process.SuperviseArg:
			os.Exit(process.Supervise(os.Stdin))
		case process.BoxArg:
			os.Exit(process.Box(os.Args[2:]))
		case attachArg:
			os.Exit(beAttach(os.Args[2]))
		}
	}
	restore := gittest.Isolate()
	// Or every supervisor under the race detector takes a second to exit.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	code := m.Run()
	restore()
	os.Exit(code)
}
