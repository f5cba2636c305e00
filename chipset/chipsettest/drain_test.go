package chipsettest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/state/bead"
)

// TestInterruptDrains: after one Ctrl-C what runs may finish, and nothing new is begun.
func TestInterruptDrains(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"up"}, {"polecat", "polecat-alpha"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			w := chipsettest.New(t, chipsettest.Build(t), chipsettest.Options{Polecats: 1, Test: "true"})
			w.Write(".chipset/chipset.yaml", strings.Replace(w.Read(".chipset/chipset.yaml"), "sandbox: auto", "sandbox: off", 1)) // its marks lie outside
			flag := filepath.Join(t.TempDir(), "go")
			id := w.Chipset("work", "add", "slow", "-d", fmt.Sprintf("touch %s.seen; while [ ! -f %s ]; do sleep 0.05; done; echo slow > slow", flag, flag))
			next := w.Chipset("work", "add", "next", "-d", "echo next > next")
			if args[0] == "polecat" {
				w.Chipset("sling", id, "polecat-alpha")
			}
			p := w.Start(args...)
			w.Eventually(patience, "the worker runs", func() bool { _, err := os.Stat(flag + ".seen"); return err == nil })
			p.Cmd.Process.Signal(syscall.SIGINT)
			w.Eventually(patience, "it says that it drains", func() bool { return strings.Contains(p.Output.String(), "a second interrupt stops them") })
			if args[0] == "up" {
				w.Eventually(patience, "the mayor has ended", func() bool {
					out, _ := w.Try("log", "--type", "mail.sent")
					return strings.Contains(out, "please finish")
				})
			}
			if err := os.WriteFile(flag, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			select {
			case <-p.Done():
			case <-time.After(patience):
				t.Fatalf("it does not end\n%s", p.Output)
			}
			if code := p.Cmd.ProcessState.ExitCode(); code != 130 {
				t.Errorf("exit %d, want 130\n%s", code, p.Output)
			}
			for _, want := range []string{"still at work: polecat-alpha with " + id, "a second interrupt stops them now", "0 attempts failed, nothing waits for you"} {
				if !strings.Contains(p.Output.String(), want) {
					t.Errorf("it does not say %q\n%s", want, p.Output)
				}
			}
			for _, b := range w.Beads() {
				switch {
				case string(b.ID) == id && b.Status != bead.Done && b.Status != bead.Merged:
					t.Errorf("what ran is %s", b.Status)
				case string(b.ID) == next && b.Status != bead.Open:
					t.Errorf("what came next is %s", b.Status)
				}
			}
			checkClean(t, w)
		})
	}
}
