package blockcut_test

import (
	"fmt"
	"os"
	"testing"
)

const actorVar = "CHIPSET_BLOCKCUT_ACTOR"

// TestMain lets the test binary be the program that writes to the disk: the
// process that serves a disk must not wait for it.
func TestMain(m *testing.M) {
	if steps := os.Getenv(actorVar); steps != "" {
		if err := act(steps, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
