package gittest

import (
	"os"
	"testing"
)

// A run that asks for every fault plays every fault, and nothing of the caller's rig or repository is seen.
func TestIsolate(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // Isolate sets it
	for name, stays := range map[string]bool{"CHIPSET_FULL": true, "CHIPSET_SEED": true, "CHIPSET_CI": true, "CHIPSET_DIR": false, "GIT_DIR": false, "EMAIL": false} {
		t.Setenv(name, "7")
		Isolate()()
		if got := os.Getenv(name); (got == "7") != stays {
			t.Errorf("%s is %q", name, got)
		}
	}
}
