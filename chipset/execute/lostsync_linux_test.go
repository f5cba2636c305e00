package execute

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/statetest/lostsync"
)

// TestLostSyncOfALanding: nothing is merged before the target that moved is on the disk, in the process that moved it and
// in the one that finds it moved.
func TestLostSyncOfALanding(t *testing.T) {
	lostsync.Run(t, func(fail func()) {
		m := newMill(t, "test: \"true\"")
		q := m.submit("one.txt", "1\n")
		onto := m.git(m.dir, "rev-parse", "main")
		_, err := m.r.change(m.ctx, flow.Begin{MR: q.ID, Onto: onto})
		m.must(err)
		fail()
		land := refinery.Land{Request: q.ID, Onto: onto, Candidate: q.Head, Tested: true}
		if _, err := m.r.land(m.ctx, &q, land); !errors.Is(err, unix.EIO) {
			t.Errorf("land: %v", err)
		}
		m.is(q, mergequeue.Merging, bead.Done)
		if tip := m.git(m.dir, "rev-parse", "main"); tip != q.Head {
			t.Fatalf("the target is at %s", tip)
		}
		q = m.request(q)
		for range 2 {
			if _, err := m.r.finishInterrupted(m.ctx, &q, "main"); !errors.Is(err, unix.EIO) {
				t.Errorf("finish: %v", err)
			}
			m.is(q, mergequeue.Merging, bead.Done)
		}
	})
}

// TestLostSyncOfARestoredLanding: a landing that a stash had taken back is restored once it is on the disk again.
func TestLostSyncOfARestoredLanding(t *testing.T) {
	lostsync.Run(t, func(fail func()) {
		m := newMill(t, "test: \"true\"")
		before := m.tip()
		m.submit("one.txt", "1\n")
		m.run()
		m.takeBack(before)
		fail()
		if err := m.r.guard(m.ctx); !errors.Is(err, unix.EIO) {
			t.Errorf("guard: %v", err)
		}
	})
}
