package carry

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/statetest/lostsync"
)

// TestLostSyncs: where git's repository can't be synced, no attempt comes to its end, and nothing counts as saved.
func TestLostSyncs(t *testing.T) {
	for name, outcome := range map[string]retire.Outcome{"done": retire.Done, "failed": retire.Fail} {
		t.Run(name, func(t *testing.T) {
			lostsync.Run(t, func(fail func()) {
				a := newAttempt(t, nil)
				a.write("one.txt", "one\n")
				if outcome == retire.Done { // with nothing left to commit, and all of it in a pack
					a.git(a.worktree(), "add", "-A")
					a.git(a.worktree(), "commit", "-qm", "one")
					a.git(a.dir, "gc", "-q")
				}
				rec := a.publish(outcome, "no luck")
				fail()
				if _, err := Finish(t.Context(), RetireDeps{Rig: a.rig}, rec); !errors.Is(err, unix.EIO) {
					t.Errorf("Finish: %v", err)
				}
				b, err := a.rig.Beads.Get(string(a.bead))
				a.must(err)
				now, err := a.rig.Retire.Get(string(a.as))
				a.must(err)
				if b.Status != bead.InProgress || now.Stage != retire.Published {
					t.Errorf("the bead is %s, its end %s", b.Status, now.Stage)
				}
			})
		})
	}
}

// TestLostSyncOfSavedWork: what a worktree held is not saved where that can't be made durable, also when its folder is gone.
func TestLostSyncOfSavedWork(t *testing.T) {
	for name, gone := range map[string]bool{"worktree": false, "branch": true} {
		t.Run(name, func(t *testing.T) {
			lostsync.Run(t, func(fail func()) {
				a := newAttempt(t, nil)
				a.write("one.txt", "one\n")
				a.git(a.worktree(), "add", "-A")
				a.git(a.worktree(), "commit", "-qm", "one")
				a.git(a.dir, "gc", "-q")
				if gone {
					a.must(os.RemoveAll(a.worktree()))
				}
				fail()
				if ref, err := SaveWork(t.Context(), a.rig, alpha, "m"); !errors.Is(err, unix.EIO) {
					t.Errorf("saved on %q, %v", ref, err)
				}
			})
		})
	}
}

// TestLostSyncOfAnEnd: work is not published as done where what the worker wrote may not be on the disk.
func TestLostSyncOfAnEnd(t *testing.T) {
	lostsync.Run(t, func(fail func()) {
		a := newAttempt(t, nil)
		a.write("one.txt", "one\n")
		fail()
		if _, won, err := Publish(t.Context(), a.rig, retire.Record{AssignmentID: a.as, AgentID: alpha, Session: "ses-one", Outcome: retire.Done}); won || !errors.Is(err, unix.EIO) {
			t.Errorf("published %v, %v", won, err)
		}
		if rec, err := a.rig.Retire.Get(string(a.as)); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("it is published all the same: %+v, %v", rec, err)
		}
	})
}
