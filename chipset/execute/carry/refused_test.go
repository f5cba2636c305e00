package carry

import (
	"os"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/retire"
	syscalls "github.com/gastown-chipset/chipset/state/statetest/refused"
)

// What is on a branch or a ref, and what was published, is on the disk before anybody is told: nothing is written after the sync.
func TestSyncComesLast(t *testing.T) {
	for name, c := range map[string]struct {
		gone  bool
		do    func(a *attempt, f *finish) error
		steps []string
	}{
		"branch": {false, func(a *attempt, f *finish) error {
			b, err := a.rig.Beads.Get(string(a.bead))
			if err != nil {
				return err
			}
			return f.commitDone(a.t.Context(), &b)
		}, []string{`open .git/objects/../tmp_obj_.*`, `syncfs .git`, `rename .git/objects/../tmp_obj_.*`, `open .git/refs/heads/polecat/.*`}},
		"worktree": {false, func(a *attempt, _ *finish) error { return done(SaveWork(a.t.Context(), a.rig, alpha, "m")) },
			[]string{`open .git/refs/chipset/salvage/as-.*`, `open .git/objects/../tmp_obj_.*`, `syncfs .git`, `rename .git/objects/../tmp_obj_.*`}},
		"branch of a worktree that is gone": {true, func(a *attempt, _ *finish) error { return done(SaveWork(a.t.Context(), a.rig, alpha, "m")) },
			[]string{`open .git/refs/chipset/salvage/as-.*-branch`, `open .git/objects/../tmp_obj_.*`, `syncfs .git`, `rename .git/objects/../tmp_obj_.*`}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttempt(t, nil)
			a.write("one.txt", "one\n")
			a.git(a.worktree(), "add", "-A")
			a.git(a.worktree(), "commit", "-qm", "one")
			if c.gone {
				a.must(os.RemoveAll(a.worktree()))
			}
			use, _ := ReadWorktree(a.rig, alpha)
			f := &finish{carrier: carrier{Rig: a.rig}, rec: retire.Record{AssignmentID: a.as, AgentID: alpha, BeadID: a.bead, Branch: use.Branch, Outcome: retire.Done}}
			var err error
			calls := syscalls.Calls(t, a.dir, 0, func() { err = c.do(a, f) })
			a.must(err)
			gittest.InOrder(t, calls, append(c.steps, `syncfs .git`, `fsync .git`)...)
			if calls[len(calls)-2].What != "syncfs .git" || calls[len(calls)-1].What != "fsync .git" {
				t.Errorf("the last calls are %q", calls[max(0, len(calls)-4):])
			}
		})
	}
}

// What makes work durable fails with every call on a file that fails: each may be the one without which a power cut takes the
// work. Done again it fails no more.
func TestWhatMakesWorkDurableFails(t *testing.T) {
	a := newAttempt(t, nil)
	a.write("one.txt", "one\n")
	a.git(a.worktree(), "add", "-A")
	a.git(a.worktree(), "commit", "-qm", "one")
	work := git.Hash(a.git(a.worktree(), "rev-parse", "HEAD"))
	use, _ := ReadWorktree(a.rig, alpha)
	rec := retire.Record{AssignmentID: a.as, AgentID: alpha, BeadID: a.bead, Branch: use.Branch, Outcome: retire.Done}
	for name, do := range map[string]func() error{
		"secure": func() error {
			f := &finish{carrier: carrier{Rig: a.rig}, rec: rec}
			return f.secure(t.Context(), work, use.Base)
		},
		"keep":   func() error { return keep(t.Context(), a.rig, work) },
		"settle": func() error { return done(settle(a.rig, &rec)) },
		"settle folders": func() error {
			return (&carrier{Rig: a.rig}).settle(bead.Dir, retire.Dir)
		},
	} {
		var err error
		calls := syscalls.Calls(t, a.dir, 0, func() { err = do() })
		if err != nil || len(calls) == 0 {
			t.Fatalf("%s: %d calls, %v", name, len(calls), err)
		}
		for n, c := range calls {
			if what, file, _ := strings.Cut(c.What, " "); what == "unlink" || what == "stat" || strings.HasPrefix(file, ".git/refs/") {
				continue // what is left behind is no work, and what a ref holds git says as well
			}
			syscalls.Calls(t, a.dir, n+1, func() { err = do() })
			if err == nil {
				t.Errorf("%s: no error although %s fails", name, c.What)
			}
		}
		if err := do(); err != nil {
			t.Errorf("%s, done again: %v", name, err)
		}
	}
}
