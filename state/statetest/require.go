// Package statetest holds what tests of durability share: which facilities of
// the machine a test needs, and below it the disks that such tests break.
package statetest

import (
	"os"
	"os/exec"
	"testing"
)

// inCI reports whether a missing facility is a failure: CI promises all of them,
// and a test that is skipped there proves nothing while it looks green.
func inCI() bool { return os.Getenv("CHIPSET_CI") == "1" }

// Missing skips the test because the machine lacks something, or fails it
// where CHIPSET_CI=1 says that nothing may be lacking.
func Missing(t testing.TB, what string) {
	t.Helper()
	if inCI() {
		t.Fatalf("CHIPSET_CI=1, but %s", what)
	}
	t.Skip(what)
}

// RequireRoot is for tests that mount.
func RequireRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, "it mounts file systems and needs root")
	}
}

// RequireFUSE is for tests that serve a file system of their own.
func RequireFUSE(t testing.TB) {
	t.Helper()
	RequireRoot(t)
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		Missing(t, "it needs FUSE: "+err.Error())
	}
	f.Close()
}

// RequireLoop is for tests that mount images.
func RequireLoop(t testing.TB) {
	t.Helper()
	RequireRoot(t)
	f, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		Missing(t, "it needs loop devices: "+err.Error())
	}
	f.Close()
}

// RequireCommands is for tests that run programs which not every machine has.
func RequireCommands(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			Missing(t, "it needs the program "+name)
		}
	}
}
