package chipsettest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/state/statetest"
)

// TestKilledSnapshots kills snapshots with -9 wherever they are: no later one is
// stopped by what is left, git finds nothing wrong, and the history is whole.
func TestKilledSnapshots(t *testing.T) {
	if testing.Short() {
		t.Skip("kills real processes")
	}
	t.Parallel() // each snapshot waits for what the killed one before has left
	rnd := seed(t)
	w := chipsettest.New(t, chipsettest.Build(t), chipsettest.Options{Polecats: 2, Test: "true"})
	began := time.Now()
	w.Chipset("audit", "commit")
	usual := time.Since(began)
	acknowledged := map[string]bool{}
	for n := range statetest.Number(t, "CHIPSET_KILLS", 20) {
		w.Chipset("mail", "send", "mayor", "--subject", fmt.Sprint(n), "--body", "b")
		p := w.Start("audit", "commit")
		select {
		case <-p.Done():
		case <-time.After(time.Duration(rnd.Int64N(int64(2 * usual)))):
		}
		if p.KillGroup(); p.Cmd.ProcessState.Success() {
			acknowledged[strings.TrimSpace(p.Output.String())] = true
		}
	}
	w.Chipset("audit", "commit")
	if out := w.Chipset("audit", "verify"); !strings.Contains(out, "everything moved legally") {
		t.Error(out)
	}
	history := w.Git("rev-list", "chipset/audit")
	for hash := range acknowledged {
		if !strings.Contains(history, hash) {
			t.Errorf("acknowledged snapshot %s is not in the history", hash)
		}
	}
	if out := w.Git("fsck", "--strict", "--no-dangling"); out != "" {
		t.Errorf("fsck: %s", out)
	}
	if refs := w.Git("for-each-ref", "refs/chipset/snapshot"); refs != "" {
		t.Errorf("left behind: %s", refs)
	}
	statetest.Figures(t, "%d of the killed snapshots were finished", len(acknowledged))
}
