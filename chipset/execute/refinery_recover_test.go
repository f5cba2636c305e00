package execute

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// A landing that was killed after its push had written a part of the person's checkout. The start takes that back, or, when a
// lock of the person's keeps it from that, the first tick after it is gone.
func TestRefineryRepairsTheCheckoutAfterAPush(t *testing.T) {
	t.Parallel()
	for _, locked := range []bool{false, true} {
		m, remote, _ := withRemote(t, `test: "false"`)
		q := m.submit("one.txt", "1\n", "two.txt", "2\n")
		m.pushed(q)
		m.write(m.dir, "one.txt", "1\n")
		lock := filepath.Join(m.dir, ".git", "index.lock")
		if locked {
			m.write(m.dir, ".git/index.lock", "")
			long := m.now.Add(-time.Hour)
			m.must(os.Chtimes(lock, long, long))
		}
		m.restart()
		if locked {
			m.must(os.Remove(lock))
		} else if out := m.git(m.dir, "status", "--porcelain"); out != "" {
			t.Errorf("the checkout after the start: %s", out)
		}
		m.run()
		m.is(q, mergequeue.Merged, bead.Merged)
		if out := m.git(m.dir, "status", "--porcelain"); out != "" || m.tip() != m.git(remote, "rev-parse", "main") {
			t.Errorf("the checkout is at %s, and not clean: %s", m.tip(), out)
		}
	}
}

// A lock that stood before the landing began is the person's, and stays.
func TestRefineryLeavesOlderLocks(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	m.setRequest(q.ID, func(q *mergequeue.Request) {
		q.Status, q.Stage, q.Attempts, q.Onto, q.Candidate, q.Tested = mergequeue.Merging, mergequeue.StageMerge, 1, q.Base, q.Head, true
	})
	m.write(m.dir, "one.txt", "1\n")
	m.write(m.dir, ".git/index.lock", "mine")
	lock := filepath.Join(m.dir, ".git", "index.lock")
	long := m.now.Add(-time.Hour)
	m.must(os.Chtimes(lock, long, long))
	m.restart()
	m.run()
	if _, err := os.Stat(lock); err != nil {
		t.Errorf("it is gone: %v", err)
	}
	m.is(q, mergequeue.Merging, bead.Done)
}

// What the remote took has landed once the branch here has followed, and not before: a file of the person's is in its way.
func TestRefineryFollowsThePush(t *testing.T) {
	t.Parallel()
	m, _, _ := withRemote(t, `test: "false"`)
	q := m.submit("one.txt", "1\n")
	m.pushed(q)
	m.write(m.dir, "one.txt", "mine\n")
	m.restart()
	m.run()
	if got := m.is(q, mergequeue.Merging, bead.Done); !strings.Contains(got.Waiting, "is in the way") {
		t.Errorf("waiting %q", got.Waiting)
	}
	m.must(os.Remove(filepath.Join(m.dir, "one.txt")))
	m.later(time.Hour)
	m.run()
	m.is(q, mergequeue.Merged, bead.Merged)
	if m.tip() != q.Head {
		t.Errorf("main is at %s, not at %s", m.tip(), q.Head)
	}
}

// What the target holds has landed, also when its bead was taken away in the moment of the landing.
func TestRefineryTakenButLanded(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	m.tick()
	<-m.r.test.job.Done()
	got := m.request(q)
	m.git(m.dir, "merge", "-q", "--ff-only", got.Candidate) // by a person
	m.setBead(q.BeadID, func(b *bead.Bead) { m.must(b.Become(bead.Cancelled, "", m.rig.Clock.Now())) })
	res, err := m.r.land(m.ctx, &got, refinery.Land{Request: q.ID, Onto: got.Onto, Candidate: got.Candidate, Tested: true})
	m.must(err)
	if res.Kind != refinery.Landed {
		t.Errorf("%+v", res)
	}
	m.is(q, mergequeue.Merged, bead.Cancelled)
	m.warned("although the bead was taken away")
}

// Of a stack of which the first has landed and another was taken away, the rest waits for the tip that there is now.
func TestRefineryStackTakenButHalfLanded(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: \"true\"\nbatch: 3")
	all := []mergequeue.Request{m.submit("1.txt", "x\n"), m.submit("2.txt", "x\n")}
	m.half(all, []state.MergeID{all[0].ID, all[1].ID}, 2)
	var stack []flow.Layer
	for _, q := range all {
		stack = append(stack, flow.Layer{Request: m.request(q), Candidate: m.request(q).Candidate})
	}
	m.git(m.dir, "merge", "-q", "--ff-only", stack[0].Candidate)
	res, err := m.r.takenUnlessLanded(m.ctx, stack, "main", all[1].ID)
	m.must(err)
	if res.Kind != refinery.Moved {
		t.Errorf("%+v", res)
	}
	m.is(all[0], mergequeue.Merged, bead.Merged)
	m.is(all[1], mergequeue.Merging, bead.Done)
}

// A branch of a person's own that has landed stays theirs.
func TestRefineryLeavesForeignBranches(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	m.git(m.dir, "branch", "-m", q.SourceBranch, "mine")
	m.setRequest(q.ID, func(q *mergequeue.Request) { q.SourceBranch = "mine" })
	m.run()
	m.later(spentEvery)
	m.tick()
	m.is(q, mergequeue.Merged, bead.Merged)
	m.git(m.dir, "rev-parse", "--verify", "refs/heads/mine")
}

// A request is ended under the lock of its bead: whoever has that may be about to put both back.
func TestRefineryEndsUnderTheLock(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	m.setBead(q.BeadID, func(b *bead.Bead) { m.must(b.Become(bead.Cancelled, "", m.rig.Clock.Now())) })
	_, err := m.rig.Beads.UpdateThen(m.ctx, string(q.BeadID), func(b *bead.Bead) error { b.Title = "in hand"; return nil }, func() error {
		ctx, cancel := context.WithTimeout(m.ctx, 100*time.Millisecond)
		defer cancel()
		if err := m.r.retire(ctx, q.ID); err == nil {
			t.Error("it did not wait for the lock")
		}
		return nil
	})
	m.must(err)
	m.is(q, mergequeue.Pending, bead.Cancelled)
	m.must(m.r.retire(m.ctx, q.ID))
	m.is(q, mergequeue.Dropped, bead.Cancelled)
}

// A request that was given up meanwhile is not tested.
func TestRefineryTestsNothingThatIsOver(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	m.setRequest(q.ID, func(q *mergequeue.Request) { m.must(q.Become(mergequeue.Dropped, m.rig.Clock.Now())) })
	res, err := m.r.startTest(m.ctx, &q, refinery.RunTest{Request: q.ID, Onto: q.Base, Candidate: q.Head})
	m.must(err)
	if res.Kind != refinery.Taken || m.r.test != nil {
		t.Errorf("%+v", res)
	}
}
