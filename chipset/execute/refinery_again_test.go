package execute

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// What changed between a decision and its step is seen by the step.
func TestRefineryLooksAgain(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: \"true\"\nbatch: 2")
	first, second := m.submit("one.txt", "1\n"), m.submit("two.txt", "2\n")
	m.half([]mergequeue.Request{first, second}, []state.MergeID{first.ID, second.ID}, 2)
	tip := m.tip()
	land := func() refinery.Result {
		t.Helper()
		a, b := m.request(first), m.request(second)
		stack := refinery.NewStack(refinery.Layer{Request: a.ID, Candidate: a.Candidate}, refinery.Layer{Request: b.ID, Candidate: b.Candidate})
		m.must(m.r.do(m.ctx, refinery.Land{Request: a.ID, Onto: a.Onto, Candidate: b.Candidate, Stack: stack, Tested: true}))
		return m.r.got
	}
	// One of a stack is dropped by the person, or its bead is deleted: nothing lands, and it is named.
	m.setRequest(second.ID, func(q *mergequeue.Request) { m.must(q.Become(mergequeue.Dropped, m.rig.Clock.Now())) })
	if got := land(); got.Kind != refinery.Taken || got.Request != second.ID || m.tip() != tip {
		t.Errorf("beside a dropped one: %+v", got)
	}
	m.setRequest(second.ID, func(q *mergequeue.Request) { q.Status = mergequeue.Merging })
	m.must(os.Remove(m.rig.Tree.Abs(m.rig.Beads.Path(string(second.BeadID)))))
	if got := land(); got.Kind != refinery.Taken || got.Request != second.ID || m.tip() != tip {
		t.Errorf("without a bead: %+v", got)
	}
	// A bead that was taken away is not begun.
	third := m.submit("three.txt", "3\n")
	m.setBead(third.BeadID, func(b *bead.Bead) { m.must(b.Become(bead.Cancelled, "", m.rig.Clock.Now())) })
	m.must(m.r.do(m.ctx, refinery.CheckOut{Request: third.ID}))
	if got := m.is(third, mergequeue.Pending, bead.Cancelled); m.r.got.Kind != refinery.Taken || got.Attempts != 0 {
		t.Errorf("%+v: %+v", m.r.got, got)
	}
}

// A stash of the person's takes a landing back in the moment of the next one: that does not go on without it.
func TestRefineryGuardsBeforeItMoves(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	before := m.tip()
	m.submit("one.txt", "1\n")
	m.run()
	landed := m.tip()
	m.from = before
	second := m.submit("two.txt", "2\n")
	m.takeBack(before)
	m.must(m.r.do(m.ctx, refinery.Land{Request: second.ID, Onto: before, Candidate: second.Head, Tested: true}))
	if m.r.got.Kind != refinery.Moved || landed == before || m.tip() != landed {
		t.Errorf("%+v; main is at %s, want %s", m.r.got, m.tip(), landed)
	}
	m.is(second, mergequeue.Merging, bead.Done)
}

// Somebody deletes objects that have landed: they are restored before the next request is looked at, and the person is told.
func TestRefineryRestoresObjects(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	m.from = m.tip()
	first := m.submit("one.txt", "1\n")
	m.run()
	m.is(first, mergequeue.Merged, bead.Merged)
	second := m.submit("two.txt", "2\n")
	blob := m.git(m.dir, "rev-parse", "main:one.txt")
	m.must(os.Remove(filepath.Join(m.dir, ".git", "objects", blob[:2], blob[2:])))
	m.run()
	m.is(second, mergequeue.Merged, bead.Merged)
	if text := m.git(m.dir, "cat-file", "blob", blob); text != "1" {
		t.Errorf("the object holds %q", text)
	}
	m.onlyMail("human", mail.Coordination, "Objects were deleted from the repository")
}

// A landing that a stash took back while no refinery ran is restored by the next one.
func TestRefineryGuardsForItsPredecessor(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: \"true\"\nbatch: 2")
	before := m.tip()
	m.submit("one.txt", "1\n")
	last := m.submit("two.txt", "2\n")
	m.run()
	m.is(last, mergequeue.Merged, bead.Merged)
	landed := m.tip()
	if left, err := m.rig.Tree.List(testRecords); err != nil || len(left) > 0 {
		t.Errorf("records of tests that are over: %v, %v", left, err)
	}
	m.r.Close()
	m.r = nil // it is gone, and guards nothing any more
	m.later(time.Millisecond)
	m.setRequest(last.ID, func(q *mergequeue.Request) { q.UpdatedAt = m.rig.Clock.Now() })
	m.takeBack(before)
	m.restart()
	m.tick()
	if m.tip() != landed {
		t.Errorf("main is at %s, want %s", m.tip(), landed)
	}
	for file, want := range map[state.Path]bool{m.rig.Beads.Path(string(last.BeadID)): false, m.rig.Queue.Path(string(last.ID)): true} {
		if got := m.r.Wants(file); got != want {
			t.Errorf("%s wakes it: %t", file, got)
		}
	}
	next := m.submit("three.txt", "3\n")
	m.must(m.r.retire(m.ctx, next.ID)) // its bead came back meanwhile
	m.is(next, mergequeue.Pending, bead.Done)
	m.r.await([]mergequeue.Request{next})
	if !m.r.Wants(m.rig.Beads.Path(string(next.BeadID))) {
		t.Error("the bead in turn does not wake it")
	}
}

// A remote that loses the first push is pushed to once more, and nothing is tested again.
func TestRefineryPushesAgain(t *testing.T) {
	t.Parallel()
	merge, runs := counted(t, "")
	m, remote, _ := withRemote(t, merge)
	m.write(remote, "hooks/post-receive", "#!/bin/sh\n[ -e lost ] && exit 0\ntouch lost\nexec git update-ref refs/heads/main "+m.tip()+"\n")
	m.must(os.Chmod(filepath.Join(remote, "hooks/post-receive"), 0o755))
	q := m.submit("one.txt", "1\n")
	m.run()
	m.is(q, mergequeue.Merged, bead.Merged)
	if m.git(remote, "rev-parse", "main") != m.tip() || runs() != 1 {
		t.Errorf("%d tests; the remote is at %s, not at %s", runs(), m.git(remote, "rev-parse", "main"), m.tip())
	}
}

// A remote that does not have the target yet gets it with the first landing.
func TestRefineryFirstPush(t *testing.T) {
	t.Parallel()
	m := newMill(t, "remote: origin\ntest: \"true\"")
	remote := filepath.Join(t.TempDir(), "remote.git")
	m.git(m.dir, "init", "-q", "--bare", "-b", "main", remote)
	m.git(m.dir, "remote", "add", "origin", remote)
	q := m.submit("one.txt", "1\n")
	m.run()
	m.is(q, mergequeue.Merged, bead.Merged)
	if m.git(remote, "rev-parse", "main") != m.tip() {
		t.Error("the remote holds something else")
	}
}

// Whether a push arrived that was cut short is not decided while the remote can't be asked.
func TestRefineryWaitsForTheRemote(t *testing.T) {
	t.Parallel()
	m, remote, _ := withRemote(t, `test: "false"`)
	q := m.submit("one.txt", "1\n")
	m.pushed(q)
	m.must(os.Rename(remote, remote+".away"))
	m.restart()
	m.run()
	if got := m.is(q, mergequeue.Merging, bead.Done); got.Stage != mergequeue.StagePush || got.Candidate != q.Head {
		t.Errorf("it was begun again: %+v", got)
	}
	m.must(os.Rename(remote+".away", remote))
	m.later(time.Hour)
	m.run()
	if got := m.is(q, mergequeue.Merged, bead.Merged); got.MergedSHA != q.Head || got.Attempts != 1 {
		t.Errorf("%+v", got)
	}
}

// Files that look like those of an interrupted landing are the person's once they have committed past it.
func TestRefineryLeavesThePersonsFiles(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n", "two.txt", "2\n")
	m.setRequest(q.ID, func(q *mergequeue.Request) {
		q.Status, q.Stage, q.Attempts, q.Onto, q.Candidate, q.Tested = mergequeue.Merging, mergequeue.StageMerge, 1, q.Base, q.Head, true
	})
	m.commit(m.dir, "mine.txt")
	m.write(m.dir, "one.txt", "1\n")
	m.restart()
	if text, err := os.ReadFile(filepath.Join(m.dir, "one.txt")); err != nil || string(text) != "1\n" {
		t.Errorf("the person's file: %q, %v", text, err)
	}
}

// The files of a stack's top are taken back from the checkout, whichever of its requests is looked at.
func TestRefineryRepairsAStackByItsTop(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: \"true\"\nbatch: 2")
	all := []mergequeue.Request{m.submit("1.txt", "x\n"), m.submit("2.txt", "x\n")}
	m.half(all, []state.MergeID{all[0].ID, all[1].ID}, 1)
	m.write(m.dir, "1.txt", "x\n")
	m.write(m.dir, "2.txt", "x\n")
	m.restart()
	if out := m.git(m.dir, "status", "--porcelain"); out != "" {
		t.Errorf("the checkout after the start: %s", out)
	}
	m.warned("restored 2 files in " + m.dir)
}

// warned checks that the log tells something odd about a request, once.
func (m *mill) warned(text string) {
	m.Helper()
	if n := strings.Count(strings.Join(m.story(), "\n"), text); n != 1 {
		m.Errorf("%q is told %d times", text, n)
	}
}
