package refused_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gastown-chipset/chipset/state/statetest/refused"
)

// TestCalls: exactly the call that is asked for fails, and none of a program that is started.
func TestCalls(t *testing.T) {
	dir := t.TempDir()
	do := func() error {
		f := filepath.Join(dir, "f")
		return errors.Join(os.WriteFile(f, nil, 0o600), os.Rename(f, f+"2"), os.Remove(f+"2"), exec.Command("ls", dir).Run(),
			os.Mkdir(dir+"/d", 0o700), os.Remove(dir+"/d"))
	}
	var got error
	var made []string
	for _, c := range refused.Calls(t, dir, 0, func() { got = do() }) {
		made = append(made, c.What)
		if !strings.Contains(c.From, "refused_test.go:2") {
			t.Errorf("%s is called from %s", c.What, c.From)
		}
	}
	if want := []string{"open f", "stat f2", "rename f", "unlink f2", "mkdir d", "unlink d", "unlink d"}; !slices.Equal(made, want) || got != nil {
		t.Fatalf("%q, %v", made, got)
	}
	for _, n := range []int{1, 3, 4, 5} {
		made := refused.Calls(t, dir, n, func() { got = do() })
		if !errors.Is(got, syscall.EIO) {
			t.Errorf("of %q the call %d fails: %v", made, n, got)
		}
	}
}
