package execute

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// Nothing is pushed once the person has committed on the target: their branch could not follow.
func TestRefineryPushesNothingPastThePerson(t *testing.T) {
	t.Parallel()
	m, remote, _ := withRemote(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	onto := m.tip()
	_, err := m.r.change(m.ctx, flow.Begin{MR: q.ID, Onto: onto})
	m.must(err)
	m.commit(m.dir, "mine.txt")
	mine := m.tip()
	res, err := m.r.land(m.ctx, &q, refinery.Land{Request: q.ID, Onto: onto, Candidate: q.Head, Tested: true, Push: true})
	if err != nil || res.Kind != refinery.Moved || m.git(remote, "rev-parse", "main") != onto {
		t.Errorf("%+v, %v; the remote is at %s", res, err, m.git(remote, "rev-parse", "main"))
	}
	m.stillAt(mine)
	m.is(q, mergequeue.Merging, bead.Done)
}

// A lock in the checkout is nobody's to break while a git lives there, however young it is.
func TestRefineryBreaksNoLockOfALivingGit(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: \"true\"")
	q := m.submit("one.txt", "1\n")
	m.setRequest(q.ID, func(q *mergequeue.Request) {
		q.Status, q.Stage, q.Attempts, q.Onto, q.Candidate, q.Tested = mergequeue.Merging, mergequeue.StageMerge, 1, q.Base, q.Head, true
	})
	m.write(m.dir, "one.txt", "1\n")
	lock := filepath.Join(m.dir, ".git/index.lock")
	m.write(m.dir, ".git/index.lock", "")
	living := exec.CommandContext(m.ctx, "git", "cat-file", "--batch")
	living.Dir = m.dir
	in, err := living.StdinPipe()
	m.must(err)
	m.must(living.Start())
	m.must(m.r.repairCheckouts(m.ctx))
	if _, err := os.Stat(lock); err != nil {
		t.Errorf("the lock of a git that lives: %v", err)
	}
	m.must(in.Close())
	m.must(living.Wait())
	m.must(m.r.repairCheckouts(m.ctx))
	if _, err := os.Stat(lock); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock of a git that is gone: %v", err)
	}
}

// Worktrees of one repository are made one at a time.
func TestRefineryMakesWorktreesInTurn(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: \"true\"")
	held, err := m.rig.Tree.Lock(m.ctx, state.LockGit, "worktrees")
	m.must(err)
	defer held.Unlock()
	ctx, cancel := context.WithTimeout(m.ctx, 10*time.Millisecond)
	defer cancel()
	m.r.prepared = false
	if err := m.r.prepare(ctx, git.Hash(m.tip())); !errors.Is(err, state.ErrLockTimeout) || m.r.prepared {
		t.Errorf("beside another: %v", err)
	}
}

// After trouble the refinery makes sure of its worktree again: somebody may have taken it away.
func TestRefineryMakesItsWorktreeAgain(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: \"true\"")
	m.submit("one.txt", "1\n")
	m.run()
	m.must(os.RemoveAll(m.r.worktree))
	q := m.submit("two.txt", "2\n")
	for range 20 {
		m.later(max(m.run().After, time.Millisecond))
	}
	m.is(q, mergequeue.Merged, bead.Merged)
}
