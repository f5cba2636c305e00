package execute

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// pushed is what a kill between the push and the local advance leaves.
func (m *mill) pushed(q mergequeue.Request) {
	m.Helper()
	m.git(m.dir, "push", "-q", "origin", q.Head+":refs/heads/main")
	m.setRequest(q.ID, func(q *mergequeue.Request) {
		q.Status, q.Stage, q.Attempts, q.Onto, q.Candidate, q.Tested = mergequeue.Merging, mergequeue.StagePush, 1, q.Base, q.Head, true
	})
}

// A person commits on the target after the rig was killed between the push and the
// local advance. The work has landed, the queue goes on from the remote's tip, and the
// person is told once how to bring both together.
func TestRefineryPersonCommitsAfterPush(t *testing.T) {
	t.Parallel()
	m, remote, _ := withRemote(t, `test: "true"`)
	first := m.submit("one.txt", "1\n")
	second := m.submit("two.txt", "2\n")
	m.pushed(first)
	mine := m.commit(m.dir, "mine.txt")
	m.write(m.dir, "a.txt", "not committed\n")
	m.restart()
	m.run()
	if got := m.is(first, mergequeue.Merged, bead.Merged); got.MergedSHA != first.Head {
		t.Errorf("merged as %s, pushed was %s", got.MergedSHA, first.Head)
	}
	m.stillAt(mine)
	got := m.is(second, mergequeue.Merged, bead.Merged)
	if there := m.git(remote, "rev-parse", "main"); there != got.MergedSHA || got.Onto != first.Head {
		t.Errorf("the remote holds %s; %+v", there, got)
	}
	m.onlyMail("human", mail.Coordination, "git pull --rebase origin main")

	mine = m.stillAt(m.commit(m.dir, "more.txt"))
	m.restart()
	third := m.submit("three.txt", "3\n")
	m.run()
	m.is(third, mergequeue.Merged, bead.Merged)
	m.stillAt(mine)
	m.onlyMail("human", mail.Coordination, "have diverged") // once, whatever the tips are

	m.git(m.dir, "checkout", "-q", "a.txt")
	m.git(m.dir, "pull", "-q", "--rebase", "origin", "main")
	fourth := m.submit("four.txt", "4\n")
	m.run()
	m.is(fourth, mergequeue.Merged, bead.Merged)
	m.landed("one.txt", "two.txt", "three.txt", "four.txt", "mine.txt", "more.txt")
	if m.git(remote, "rev-parse", "main") != m.tip() {
		t.Error("the branch does not follow the remote again")
	}
}

// stillAt checks that the target is where the person left it.
func (m *mill) stillAt(tip string) string {
	m.Helper()
	if m.tip() != tip {
		m.Fatalf("the person's branch was moved from %s to %s", tip, m.tip())
	}
	return tip
}

// The same without a kill: the push takes its time, and the person commits meanwhile.
func TestRefineryPersonCommitsDuringPush(t *testing.T) {
	t.Parallel()
	m, remote, _ := withRemote(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	m.write(remote, "hooks/pre-receive", "#!/bin/sh\nunset GIT_DIR GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES\n"+
		"cd '"+m.dir+"' && git commit -q --allow-empty -m meanwhile && git rev-parse HEAD >'"+remote+"/person'\n")
	m.must(os.Chmod(filepath.Join(remote, "hooks/pre-receive"), 0o755))
	m.run()
	got := m.is(q, mergequeue.Merged, bead.Merged)
	if got.MergedSHA != q.Head || got.Attempts != 1 || m.git(remote, "rev-parse", "main") != q.Head {
		t.Errorf("%+v", got)
	}
	person, err := os.ReadFile(filepath.Join(remote, "person"))
	m.must(err)
	m.stillAt(strings.TrimSpace(string(person)))
	m.onlyMail("human", mail.Coordination, "git pull --rebase origin main")
}

// A divergence that the rig has no part in stops the queue. It is told once, whatever
// the person and others commit.
func TestRefineryForeignDivergenceIsToldOnce(t *testing.T) {
	t.Parallel()
	m, _, clone := withRemote(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	m.commit(clone, "there.txt")
	m.git(clone, "push", "-q", "origin", "main")
	for _, name := range []string{"a", "b", "c", "d"} {
		m.commit(m.dir, name)
		m.later(max(m.run().After, time.Millisecond))
	}
	m.is(q, mergequeue.Merging, bead.Done)
	m.onlyMail("human", mail.Coordination, "git pull --rebase origin main")
}

// A polecat begins on what has landed, also while the branch can't follow the remote.
func TestTargetTipOfDivergedTarget(t *testing.T) {
	t.Parallel()
	m, _, _ := withRemote(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	m.pushed(q)
	m.commit(m.dir, "mine.txt")
	m.restart()
	m.run()
	m.is(q, mergequeue.Merged, bead.Merged)
	if _, tip, err := carry.TargetTip(m.ctx, m.rig); err != nil || string(tip) != q.Head {
		t.Errorf("work begins on %s, not on %s: %v", tip, q.Head, err)
	}
	// Without the queue nobody knows whose commits these are.
	queue := m.rig.Tree.Abs(mergequeue.Dir)
	m.must(os.Rename(queue, queue+".aside"))
	m.must(os.WriteFile(queue, nil, 0o600))
	if _, tip, err := carry.TargetTip(m.ctx, m.rig); err == nil {
		t.Errorf("work begins on %s though the queue can't be read", tip)
	}
}
