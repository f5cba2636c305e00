package execute

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

func TestRefineryCheckoutInTheWay(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("a.txt", "one\ntwo\nthree\nfour\n")
	tip := m.tip()
	m.write(m.dir, "a.txt", "mine\n")
	if next := m.run(); next.After <= 0 || next.After > retryLimit {
		t.Errorf("tried again after %s", next.After)
	}
	got := m.is(q, mergequeue.Merging, bead.Done)
	if !strings.HasPrefix(got.Waiting, "a checkout of the target is in the way: "+m.dir+": your changes to a.txt would be overwritten: commit or stash them\n") || m.tip() != tip {
		t.Errorf("waiting %q", got.Waiting)
	}
	if text, err := os.ReadFile(filepath.Join(m.dir, "a.txt")); err != nil || string(text) != "mine\n" {
		t.Errorf("the person's file: %q, %v", text, err)
	}
	m.later(refinery.RetryCheckout)
	m.run()
	m.later(refinery.RetryCheckout)
	m.run()
	m.onlyMail("human", mail.Coordination, "can't land")
	m.git(m.dir, "checkout", "-q", "a.txt")
	m.later(refinery.RetryCheckout)
	m.run()
	if got := m.is(q, mergequeue.Merged, bead.Merged); got.Waiting != "" {
		t.Errorf("waiting %q", got.Waiting)
	}
}

// retryLimit is how soon a person who made way sees the work land.
const retryLimit = 5 * time.Second

func TestRefineryWaitingRequestGoesBackAtShutdown(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("a.txt", "four\n")
	m.write(m.dir, "a.txt", "mine\n")
	m.run()
	_, err := m.rig.Sender.Send(m.ctx, mail.Message{From: state.Human, To: "refinery", Type: mail.ShutdownRequest, Subject: "end",
		Ref: &mail.Ref{Session: m.r.Session}})
	m.must(err)
	if next := m.run(); !next.Finished {
		t.Error("it does not end")
	}
	if got := m.is(q, mergequeue.Pending, bead.Done); !strings.Contains(got.Waiting, "in the way") {
		t.Errorf("waiting %q", got.Waiting)
	}
}

func TestRefineryCheckouts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		set  func(m *mill)
	}{
		{"changes elsewhere", func(m *mill) { m.write(m.dir, "a.txt", "mine\n") }},
		{"nowhere", func(m *mill) { m.git(m.dir, "checkout", "-q", "--detach") }},
		{"linked worktree", func(m *mill) {
			m.git(m.dir, "checkout", "-q", "-b", "other")
			m.git(m.dir, "worktree", "add", "-q", filepath.Join(m.dir, "..", "linked"), "main")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMill(t, `test: "true"`)
			q := m.submit("one.txt", "1\n")
			c.set(m)
			m.run()
			m.is(q, mergequeue.Merged, bead.Merged)
			m.landed("one.txt")
			linked := filepath.Join(m.dir, "..", "linked")
			if _, err := os.Stat(linked); err == nil && m.git(linked, "status", "--porcelain") != "" {
				t.Error("the linked checkout did not follow")
			}
		})
	}
}

// withRemote gives a mill a bare remote that holds main, and a second clone.
func withRemote(t *testing.T, merge string) (m *mill, remote, clone string) {
	t.Helper()
	m = newMill(t, "remote: origin\n"+merge)
	remote = filepath.Join(t.TempDir(), "remote.git")
	m.git(m.dir, "init", "-q", "--bare", "-b", "main", remote)
	m.git(m.dir, "remote", "add", "origin", remote)
	m.git(m.dir, "push", "-q", "origin", "main")
	clone = filepath.Join(t.TempDir(), "clone")
	m.git(m.dir, "clone", "-q", remote, clone)
	m.git(clone, "config", "user.name", "Other")
	m.git(clone, "config", "user.email", "other@example.org")
	return m, remote, clone
}

func (m *mill) commit(dir, name string) string {
	m.Helper()
	m.write(dir, name, "1\n")
	m.git(dir, "add", name)
	m.git(dir, "commit", "-q", "-m", name)
	return m.git(dir, "rev-parse", "HEAD")
}

func TestRefineryRemote(t *testing.T) {
	t.Parallel()
	merge, release := hold(t)
	m, remote, clone := withRemote(t, merge)
	m.commit(clone, "before.txt")
	m.git(clone, "push", "-q", "origin", "main")
	q := m.submit("one.txt", "1\n")
	m.tick()
	m.commit(clone, "meanwhile.txt") // so that the push is rejected
	m.git(clone, "push", "-q", "origin", "main")
	release()
	m.run()
	got := m.is(q, mergequeue.Merged, bead.Merged)
	m.landed("one.txt", "before.txt", "meanwhile.txt")
	if there := m.git(remote, "rev-parse", "main"); there != got.MergedSHA || there != m.tip() {
		t.Errorf("remote %s, merged %s, here %s", there, got.MergedSHA, m.tip())
	}
}

func TestRefineryRemoteTrouble(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		cut, mend func(m *mill, remote, clone string)
		waiting   string
	}{
		{"no answer", func(m *mill, remote, _ string) { m.must(os.Rename(remote, remote+".away")) },
			func(m *mill, remote, _ string) { m.must(os.Rename(remote+".away", remote)) }, "trouble"},
		{"diverged", func(m *mill, _, clone string) {
			m.commit(clone, "there.txt")
			m.git(clone, "push", "-q", "origin", "main")
			m.commit(m.dir, "here.txt")
		}, func(m *mill, _, _ string) { m.git(m.dir, "pull", "-q", "--rebase", "origin", "main") }, "diverged"},
		{"server refuses", func(m *mill, remote, _ string) {
			m.write(remote, "hooks/pre-receive", "#!/bin/sh\necho protected branch\nexit 1\n")
			m.must(os.Chmod(filepath.Join(remote, "hooks/pre-receive"), 0o755))
		}, func(m *mill, remote, _ string) { m.must(os.Remove(filepath.Join(remote, "hooks/pre-receive"))) }, "refuses the push"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, remote, clone := withRemote(t, `test: "true"`)
			q := m.submit("one.txt", "1\n")
			c.cut(m, remote, clone)
			tip := m.tip()
			for range 4 {
				m.later(max(m.run().After, time.Millisecond))
			}
			got := m.is(q, mergequeue.Merging, bead.Done)
			if !strings.Contains(got.Waiting, c.waiting) || m.tip() != tip {
				t.Errorf("waiting %q", got.Waiting)
			}
			m.onlyMail("human", mail.Coordination, "can't land now")
			c.mend(m, remote, clone)
			m.later(time.Hour)
			m.run()
			m.is(q, mergequeue.Merged, bead.Merged)
			m.landed("one.txt")
			if m.git(remote, "rev-parse", "main") != m.tip() {
				t.Error("the remote holds something else")
			}
		})
	}
}

// TestRefineryResumes constructs what a crash leaves in every stage, and starts
// the refinery again.
func TestRefineryResumes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		set  func(m *mill, q *mergequeue.Request)
		// again is true when the test has to run (again).
		again bool
	}{
		{"checkout", func(_ *mill, q *mergequeue.Request) { q.Stage = mergequeue.StageCheckout }, true},
		{"rebase", func(m *mill, q *mergequeue.Request) {
			q.Stage = mergequeue.StageRebase
			m.git(m.r.worktree, "checkout", "-q", "--detach", q.Head)
			m.write(m.r.worktree, "a.txt", "half-way\n")
		}, true},
		{"test", func(_ *mill, q *mergequeue.Request) { q.Stage = mergequeue.StageTest }, true},
		{"merge, nothing moved", func(_ *mill, q *mergequeue.Request) { q.Stage, q.Tested = mergequeue.StageMerge, true }, true},
		{"merge, the candidate is gone", func(_ *mill, q *mergequeue.Request) {
			q.Stage, q.Tested, q.Candidate = mergequeue.StageMerge, true, strings.Repeat("1", 40)
		}, true},
		{"merge, moved", func(m *mill, q *mergequeue.Request) {
			q.Stage, q.Tested = mergequeue.StageMerge, true
			m.git(m.dir, "merge", "-q", "--ff-only", q.Candidate)
		}, false},
		{"merge, moved and gone on", func(m *mill, q *mergequeue.Request) {
			q.Stage, q.Tested = mergequeue.StageMerge, true
			m.git(m.dir, "merge", "-q", "--ff-only", q.Candidate)
			m.commit(m.dir, "later.txt")
		}, false},
		{"merge, bead merged", func(m *mill, q *mergequeue.Request) {
			q.Stage, q.Tested = mergequeue.StageMerge, true
			m.git(m.dir, "merge", "-q", "--ff-only", q.Candidate)
			m.setBead(q.BeadID, func(b *bead.Bead) { m.must(b.Become(bead.Merged, "", m.rig.Clock.Now())) })
		}, false},
		{"merge, in the middle of the checkout", func(m *mill, q *mergequeue.Request) {
			q.Stage, q.Tested = mergequeue.StageMerge, true
			m.write(m.dir, "one.txt", "1\n")
			m.now = time.Now() // a lock is compared with the request's time
			q.UpdatedAt = m.rig.Clock.Now()
			if runtime.GOOS == "linux" {
				m.write(m.dir, ".git/index.lock", "")
				m.write(m.dir, ".git/ORIG_HEAD.lock", "")
			}
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			count := filepath.Join(t.TempDir(), "count")
			m := newMill(t, "test: sh -c 'echo x >>"+count+"'")
			q := m.submit("one.txt", "1\n")
			m.setRequest(q.ID, func(q *mergequeue.Request) {
				q.Status, q.Attempts, q.Onto, q.Candidate = mergequeue.Merging, 1, q.Base, q.Head
				c.set(m, q)
			})
			m.restart()
			// A person's git stash -u must not find files of an interrupted merge.
			if out := m.git(m.dir, "status", "--porcelain"); out != "" {
				t.Errorf("the checkout after the start: %s", out)
			}
			m.run()
			got := m.is(q, mergequeue.Merged, bead.Merged)
			m.landed("one.txt")
			if got.MergedSHA != q.Head || got.Attempts != 1 {
				t.Errorf("%+v", got)
			}
			if _, err := os.Stat(count); (err == nil) != c.again {
				t.Errorf("tested: %v", err)
			}
			if out := m.git(m.dir, "status", "--porcelain"); out != "" {
				t.Errorf("the checkout is not clean: %s", out)
			}
			m.onlyMail("mayor", mail.MergeNotification, "merged")
			m.restart()
			m.run()
			m.onlyMail("mayor", mail.MergeNotification, "merged")
		})
	}
}

func TestRefineryResumesNotice(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	m.run()
	m.setRequest(q.ID, func(q *mergequeue.Request) { q.Notified = false }) // as before the last write
	m.restart()
	m.run()
	m.onlyMail("mayor", mail.MergeNotification, "merged")
	if !m.request(q).Notified {
		t.Error("it will be told again")
	}
}

func TestRefineryResumesPush(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{false, true} {
		m, remote, _ := withRemote(t, `test: "false"`)
		q := m.submit("one.txt", "1\n")
		m.git(m.dir, "push", "-q", "origin", q.Head+":refs/heads/main")
		m.setRequest(q.ID, func(q *mergequeue.Request) {
			q.Status, q.Stage, q.Onto, q.Candidate, q.Tested = mergequeue.Merging, mergequeue.StagePush, q.Base, q.Head, true
		})
		want := bead.Merged
		if taken {
			want = bead.Cancelled
			m.setBead(q.BeadID, func(b *bead.Bead) { m.must(b.Become(bead.Cancelled, "", m.rig.Clock.Now())) })
		}
		m.restart()
		m.run()
		m.is(q, mergequeue.Merged, want)
		if m.tip() != q.Head || m.git(remote, "rev-parse", "main") != q.Head {
			t.Error("remote and branch differ")
		}
	}
}

func TestRefineryEndsTestsOfItsPredecessor(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere only the records tell")
	}
	merge, release := hold(t)
	m := newMill(t, merge)
	q := m.submit("one.txt", "1\n")
	m.tick()
	job := m.r.test.job
	m.r.test = nil // the process is gone, and its supervisor does not know
	m.restart()
	select {
	case <-job.Done():
	case <-time.After(patience):
		t.Fatal("the earlier test runs on")
	}
	release()
	m.run()
	m.is(q, mergequeue.Merged, bead.Merged)
}

func TestRefineryCorruptFiles(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	path := m.rig.Tree.Abs(m.rig.Beads.Path(string(q.BeadID)))
	whole, err := os.ReadFile(path)
	m.must(err)
	m.must(os.WriteFile(path, []byte("{"), 0o644))
	m.write(m.rig.Tree.Abs(m.rig.Mailbox("refinery").Dir()), "2026-03-05T10-00-00Z-mayor.json", "{")
	m.run()
	if got := m.request(q); got.Status != mergequeue.Pending {
		t.Fatalf("a request is %s although its bead can't be read", got.Status)
	}
	m.phase(refinery.Blocked)
	if _, bad, _ := m.rig.Mailbox("refinery").List(); len(bad) != 0 {
		t.Errorf("not quarantined: %v", bad)
	}
	m.must(os.WriteFile(path, whole, 0o644))
	m.run()
	m.is(q, mergequeue.Merged, bead.Merged)
}

// A landing that was killed while a git of the person held the checkout is taken back once that is over, before the
// request goes on: its files would be in its own way.
func TestRefineryRepairsOnceTheLockIsGone(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: \"true\"")
	q := m.submit("one.txt", "1\n")
	m.setRequest(q.ID, func(q *mergequeue.Request) {
		q.Status, q.Stage, q.Attempts, q.Onto, q.Candidate, q.Tested = mergequeue.Merging, mergequeue.StageMerge, 1, q.Base, q.Head, true
	})
	m.write(m.dir, "one.txt", "1\n")
	m.write(m.dir, ".git/index.lock", "")
	long := m.now.Add(-time.Hour)
	m.must(os.Chtimes(filepath.Join(m.dir, ".git/index.lock"), long, long))
	m.restart()
	m.must(os.Remove(filepath.Join(m.dir, ".git/index.lock")))
	m.run()
	m.is(q, mergequeue.Merged, bead.Merged)
	if out := m.git(m.dir, "status", "--porcelain"); out != "" {
		t.Errorf("the checkout is not clean: %s", out)
	}
}

// A remote that takes a push and does not hold it has taken nothing.
func TestRefineryRemoteLosesAPush(t *testing.T) {
	t.Parallel()
	m, remote, _ := withRemote(t, "test: \"true\"")
	m.write(remote, "hooks/post-receive", "#!/bin/sh\nexec git update-ref refs/heads/main "+m.tip()+"\n")
	m.must(os.Chmod(filepath.Join(remote, "hooks/post-receive"), 0o755))
	q := m.submit("one.txt", "1\n")
	if err := m.r.push(m.ctx, "main", git.Hash(q.Head)); !errors.Is(err, git.ErrMoved) {
		t.Errorf("push: %v", err)
	}
}

// What a test leaves in the worktree is not there for the next one, also where that tests the same commit.
func TestRefineryTestsLeaveNothing(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: echo mine > left")
	q := m.submit("one.txt", "1\n")
	m.tick()
	<-m.r.test.job.Done()
	left := filepath.Join(m.r.worktree, "left")
	if _, err := os.Stat(left); err != nil {
		t.Fatal(err)
	}
	candidate := refinery.RunTest{Request: q.ID, Candidate: m.request(q).Candidate}
	m.must(m.r.stand(m.ctx, candidate))
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there for the next test: %v", err)
	}
	// A checkout that fails may have changed anything.
	for range 2 {
		if err := m.r.stand(m.ctx, refinery.RunTest{Request: q.ID, Candidate: strings.Repeat("ab", 20)}); err == nil {
			t.Error("it stands on a commit that does not exist")
		}
	}
	m.write(m.r.worktree, "left", "mine\n")
	m.must(m.r.stand(m.ctx, candidate))
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there after a checkout that failed: %v", err)
	}
}

// A reason quotes the output of its own run, as a terminal may show it.
func TestRefineryQuotesItsRun(t *testing.T) {
	t.Parallel()
	merge, release := hold(t)
	m := newMill(t, `test: sh -c '`+strings.TrimPrefix(merge, "test: ")+`; if test -f mine.txt && test -f one.txt; then printf "\033[31mred\033[0m of the second run"; exit 1; fi; echo green of the first run'`)
	q := m.submit("one.txt", "1\n")
	m.tick()
	m.commit(m.dir, "mine.txt") // so that it is tested again
	release()
	m.run()
	got := m.is(q, mergequeue.Conflicted, bead.Done)
	if _, output, _ := strings.Cut(got.Reason, "\n\n"); output != "[31mred[0m of the second run" {
		t.Errorf("reason %q", got.Reason)
	}
	for text, want := range map[string]string{"a\x00\x1b\u0085\u009bb\tc\u00a0": "ab\tc", "1\n2\n3\n\n": "2\n3"} {
		if got := lastLines(text, 2); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := lastLines(strings.Repeat("ä", 4000), 2); len(got) > 3<<10+3 || !strings.HasPrefix(got, "…ä") {
		t.Errorf("%d bytes: %.9q", len(got), got)
	}
}
