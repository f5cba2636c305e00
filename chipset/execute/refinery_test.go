package execute

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

func TestRefineryLandsInOrder(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: test -f a.txt")
	first := m.submit("one.txt", "1\n")
	second := m.submit("two.txt", "2\n")
	m.run()
	got := m.is(first, mergequeue.Merged, bead.Merged)
	last := m.is(second, mergequeue.Merged, bead.Merged)
	m.landed("one.txt", "two.txt")
	if got.MergedSHA != first.Head || !got.Tested || got.Attempts != 1 || !got.Notified {
		t.Errorf("first: %+v", got)
	}
	if last.Onto != first.Head || last.MergedSHA != m.tip() || last.MergedSHA == second.Head {
		t.Errorf("second is not rebased on the first: %+v", last)
	}
	if n := m.mail("mayor", mail.MergeNotification); len(n) != 2 || !strings.Contains(n[0], string(first.BeadID)) {
		t.Errorf("notices: %q", n)
	}
	// The person's checkout followed, and what landed needs no branch any more.
	if out := m.git(m.dir, "status", "--porcelain"); out != "" {
		t.Errorf("the checkout is not clean: %s", out)
	}
	if out := m.git(m.dir, "branch", "--list", "polecat/*"); out != "" {
		t.Errorf("branches are left: %s", out)
	}
	if told := m.mail("witness", mail.Coordination); len(told) > 0 {
		t.Errorf("the witness is told %q", told)
	}
	m.warned(second.Head[:10] + " on " + last.Onto[:10] + " is " + last.Candidate[:10])
	if m.git(m.dir, "rev-parse", "refs/chipset/landed/"+string(second.ID)) != second.Head {
		t.Error("the head that was rebased is not kept")
	}
	m.phase(refinery.Idle)
	m.later(guardTime) // the last landing is guarded for a while
	m.tick()
	if before := len(m.said); m.tick().After != 0 || len(m.said) != before {
		t.Error("an idle refinery is busy")
	}
}

func TestRefineryBranchStaysWhileHookNamesIt(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	b, err := m.rig.Beads.Get(string(q.BeadID))
	m.must(err)
	_, err = m.rig.Hooks.Set(m.ctx, "polecat-alpha", hook.WorkItem{BeadID: b.ID, AssignmentID: q.AssignmentID, Title: b.Title}, m.rig.Clock.Now())
	m.must(err)
	if next := m.run(); next.After == 0 {
		t.Error("nothing is due although a branch is to be deleted")
	}
	m.is(q, mergequeue.Merged, bead.Merged)
	m.git(m.dir, "rev-parse", "--verify", "refs/heads/"+q.SourceBranch)
	_, err = m.rig.Hooks.Clear(m.ctx, "polecat-alpha", q.AssignmentID, m.rig.Clock.Now())
	m.must(err)
	m.later(spentEvery)
	m.tick()
	if out := m.git(m.dir, "branch", "--list", "polecat/*"); out != "" {
		t.Errorf("branches are left: %s", out)
	}
}

func TestRefineryBadEnds(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, merge string
		files       []string
		failure     mergequeue.Failure
		reason      string
	}{
		{"conflict", `test: "true"`, []string{"a.txt", "one\nTWO\nthree\n"}, mergequeue.FailConflict, "a.txt"},
		{"red", "test: sh ./check", []string{"check", "echo it broke; exit 3\n"}, mergequeue.FailTests, "it broke"},
		{"not found", "test: sh ./check", []string{"check", "no-such-command-of-ours\n"}, mergequeue.FailCouldNotRun, "127"},
		{"not executable", "test: sh ./check", []string{"check", "exec ./a.txt\n"}, mergequeue.FailCouldNotRun, "126"},
		{"no end", "test: sh ./check\ntest_timeout: 1s", []string{"check", "sleep 60\n"}, mergequeue.FailCouldNotRun, "no end within 1s"},
		{"disk full", "test: sh ./check", []string{"check", "echo write: No space left on device; exit 1\n"}, mergequeue.FailCouldNotRun, "disk is full"},
		{"touches the rig", `test: "true"`, []string{".chipset/x", "1\n"}, mergequeue.FailRefused, ".chipset/"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMill(t, c.merge)
			m.write(m.dir, "check", "exit 0\n")
			m.git(m.dir, "add", "check")
			m.git(m.dir, "commit", "-q", "-m", "check")
			q := m.submit(c.files...)
			if c.name == "conflict" {
				m.write(m.dir, "a.txt", "one\nzwei\nthree\n")
				m.git(m.dir, "commit", "-qam", "other")
			}
			tip := m.tip()
			m.run()
			got := m.is(q, mergequeue.Conflicted, bead.Done)
			if got.Failure != c.failure || !strings.Contains(got.Reason, c.reason) {
				t.Errorf("%s: %q", got.Failure, got.Reason)
			}
			if m.tip() != tip {
				t.Error("the target moved")
			}
			m.onlyMail("mayor", mail.MergeNotification, string(q.BeadID)+" did not land ("+string(c.failure)+"): ")
			m.onlyMail("witness", mail.Coordination, "did not land")
			m.phase(refinery.Blocked)
		})
	}
}

func TestRefineryHeadIsGone(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	m.setRequest(q.ID, func(q *mergequeue.Request) { q.Head = strings.Repeat("ab", 20) })
	m.run()
	if got := m.is(q, mergequeue.Conflicted, bead.Done); got.Failure != mergequeue.FailRefused || !strings.Contains(got.Reason, "does not exist") {
		t.Errorf("%s: %s", got.Failure, got.Reason)
	}
}

func TestRefineryReworkUnblocksQueue(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: test ! -f bad.txt")
	bad := m.submit("bad.txt", "1\n")
	good := m.submit("good.txt", "1\n")
	m.run()
	m.is(bad, mergequeue.Conflicted, bead.Done)
	m.is(good, mergequeue.Pending, bead.Done)
	// The mayor swaps the bead first; already that lets the queue move.
	m.setBead(bad.BeadID, func(b *bead.Bead) { m.must(b.Become(bead.Open, "", m.rig.Clock.Now())) })
	m.run()
	m.is(good, mergequeue.Merged, bead.Merged)
	m.landed("good.txt")
	m.is(bad, mergequeue.Conflicted, bead.Open)
	m.warned("the merge queue is blocked by " + string(bad.ID))
	m.warned("the merge queue is moving again")
	m.warned("red: tests_failed")
	m.warned("bare tip: green")
	for _, log := range []string{"", "-tip"} {
		if _, err := os.Stat(m.rig.Tree.Abs(state.LogDir.Join("test-" + string(bad.ID) + "-1" + log + ".log"))); err != nil {
			t.Error(err)
		}
	}
}

func TestRefineryNoticeOfSupersededRequest(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	// A quick mayor superseded it before its end could be told.
	m.setBead(q.BeadID, func(b *bead.Bead) { m.must(b.Become(bead.Open, "", m.rig.Clock.Now())) })
	m.setRequest(q.ID, func(q *mergequeue.Request) {
		q.Status, q.Failure, q.Reason = mergequeue.Superseded, mergequeue.FailTests, "exit status 1"
		q.NoticeName = string(mail.NameAt(m.rig.Clock.Now(), "refinery"))
	})
	m.run()
	m.onlyMail("mayor", mail.MergeNotification, "(tests_failed): exit status 1")
	m.tick()
	m.onlyMail("mayor", mail.MergeNotification, "tests_failed")
}

func TestRefineryNoticeNameIsTaken(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	_, err := m.rig.Sender.Send(m.ctx, mail.Message{From: "refinery", To: "mayor", Type: mail.Coordination, Subject: "x", Body: "x"})
	m.must(err)
	m.run() // the clock stands still, so the notice wants the same name
	m.is(q, mergequeue.Merged, bead.Merged)
	m.onlyMail("mayor", mail.MergeNotification, "merged")
}

func TestRefineryRedTip(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: test ! -f broken")
	m.write(m.dir, "broken", "")
	m.git(m.dir, "add", "broken")
	m.git(m.dir, "commit", "-q", "-m", "break it")
	q := m.submit("one.txt", "1\n")
	next := m.run()
	got := m.is(q, mergequeue.Pending, bead.Done)
	if !strings.Contains(got.Waiting, "is red without the request too") || next.After <= 0 || next.After > time.Minute {
		t.Fatalf("waiting %q, after %s", got.Waiting, next.After)
	}
	m.onlyMail("human", mail.Coordination, "red")
	m.phase(refinery.Blocked)

	m.later(10 * time.Second)
	m.tick()
	if m.r.test != nil {
		t.Fatal("tried again too early")
	}
	m.later(time.Minute)
	if next := m.run(); next.After <= time.Minute {
		t.Errorf("the wait does not grow: %s", next.After)
	}
	m.is(q, mergequeue.Pending, bead.Done)
	m.onlyMail("human", mail.Coordination, "red") // once per tip

	m.git(m.dir, "rm", "-q", "broken")
	m.git(m.dir, "commit", "-q", "-m", "mend it")
	m.run()
	m.is(q, mergequeue.Merged, bead.Merged)
	if got := m.mail("mayor", mail.MergeNotification); len(got) != 1 {
		t.Errorf("the mayor heard %q", got)
	}
}

func TestRefineryRedTipRetry(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: test -f "+filepath.Join(t.TempDir(), "flag"))
	flag := m.rig.Def.Merge.Test.Argv[2]
	q := m.submit("one.txt", "1\n")
	m.run()
	m.is(q, mergequeue.Pending, bead.Done)
	m.write(filepath.Dir(flag), "flag", "")
	m.tick()
	m.is(q, mergequeue.Pending, bead.Done)
	_, err := carry.Retry(m.ctx, m.rig, q.ID, state.Human)
	m.must(err)
	m.run()
	m.is(q, mergequeue.Merged, bead.Merged)
}

func TestRefineryNoTestCommand(t *testing.T) {
	t.Parallel()
	t.Run("merge section without one", func(t *testing.T) {
		m := newMill(t, "target: main")
		q := m.submit("one.txt", "1\n")
		m.run()
		if got := m.is(q, mergequeue.Pending, bead.Done); !strings.Contains(got.Waiting, "no test command") {
			t.Errorf("waiting %q", got.Waiting)
		}
		m.onlyMail("human", mail.Coordination, "no test command")
	})
	t.Run("classic definition", func(t *testing.T) {
		m := newMill(t, "")
		q := m.submit("one.txt", "1\n")
		m.run()
		if got := m.is(q, mergequeue.Merged, bead.Merged); got.Tested {
			t.Error("it says that it was tested")
		}
		if n := strings.Count(strings.Join(m.story(), "\n"), "no test command: landing untested"); n != 2 { // in the log, and said
			t.Errorf("told %d times: %q", n, m.story())
		}
	})
	t.Run("guessed from the candidate", func(t *testing.T) {
		m := newMill(t, "")
		q := m.submit("Makefile", "test:\n\t@echo from make; exit 7\n")
		m.run()
		if got := m.is(q, mergequeue.Conflicted, bead.Done); got.Failure != mergequeue.FailTests || !strings.Contains(got.Reason, "from make") {
			t.Errorf("%s: %s", got.Failure, got.Reason)
		}
		if text := strings.Join(m.story(), "\n"); strings.Contains(text, "landing untested") {
			t.Errorf("nothing lands: %s", text)
		}
	})
}

// hold makes a test command that waits until release is called.
func hold(t *testing.T) (merge string, release func()) {
	t.Helper()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "go")
	script := filepath.Join(dir, "hold.sh")
	text := "while [ ! -e " + fifo + " ]; do sleep 0.02; done\n"
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return "test: sh " + script, func() {
		if err := os.WriteFile(fifo, nil, 0o644); err != nil {
			t.Error(err)
		}
	}
}

func TestRefineryTargetMovesDuringTest(t *testing.T) {
	t.Parallel()
	merge, release := hold(t)
	m := newMill(t, merge)
	q := m.submit("one.txt", "1\n")
	m.tick()
	m.write(m.dir, "person.txt", "1\n")
	m.git(m.dir, "add", "person.txt")
	m.git(m.dir, "commit", "-q", "-m", "the person is quicker")
	tip := m.tip()
	release()
	m.run()
	if got := m.is(q, mergequeue.Merged, bead.Merged); got.Onto != tip || got.Attempts != 1 {
		t.Errorf("%+v", got)
	}
	m.landed("one.txt", "person.txt")
}

func TestRefineryBeadIsTakenDuringTest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		to     bead.Status
		status mergequeue.Status
	}{{bead.Cancelled, mergequeue.Dropped}, {bead.Open, mergequeue.Superseded}} {
		t.Run(string(c.to), func(t *testing.T) {
			merge, _ := hold(t)
			m := newMill(t, merge)
			q := m.submit("one.txt", "1\n")
			tip := m.tip()
			m.tick()
			m.setBead(q.BeadID, func(b *bead.Bead) { m.must(b.Become(c.to, "", m.rig.Clock.Now())) })
			m.tick()
			if m.r.test != nil {
				t.Error("the test runs on")
			}
			m.is(q, c.status, c.to)
			if m.tip() != tip {
				t.Error("the target moved")
			}
		})
	}
}

// TestRefineryBeadIsTakenBeforeLanding takes the bead away in the last moment,
// when the decision to land has been made.
func TestRefineryBeadIsTakenBeforeLanding(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	tip := m.tip()
	m.tick()
	<-m.r.test.job.Done()
	m.setBead(q.BeadID, func(b *bead.Bead) { m.must(b.Become(bead.Open, "", m.rig.Clock.Now())) })
	got := m.request(q)
	res, err := m.r.land(m.ctx, &got, refinery.Land{Request: q.ID, Onto: got.Onto, Candidate: got.Candidate, Tested: true})
	m.must(err)
	if res.Kind != refinery.Taken || m.tip() != tip {
		t.Errorf("%+v", res)
	}
	m.run()
	m.is(q, mergequeue.Superseded, bead.Open)
}

// A bead that is done again, under another assignment, does not vouch for the
// work of the first.
func TestRefineryBeadIsDoneByAnother(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	tip := m.tip()
	m.tick()
	<-m.r.test.job.Done()
	m.setBead(q.BeadID, func(b *bead.Bead) { b.AssignmentID = "as-other" })
	got := m.request(q)
	res, err := m.r.land(m.ctx, &got, refinery.Land{Request: q.ID, Onto: got.Onto, Candidate: got.Candidate, Tested: true})
	m.must(err)
	if res.Kind != refinery.Taken || m.tip() != tip {
		t.Errorf("%+v, the target moved: %t", res, m.tip() != tip)
	}
}

func TestRefineryShutdown(t *testing.T) {
	t.Parallel()
	merge, release := hold(t)
	m := newMill(t, merge)
	q := m.submit("one.txt", "1\n")
	other := m.submit("two.txt", "1\n")
	m.tick()
	for _, session := range []state.SessionID{"ses-another", m.r.Session} {
		_, err := m.rig.Sender.Send(m.ctx, mail.Message{From: state.Human, To: "refinery", Type: mail.ShutdownRequest, Subject: "end", Body: "",
			Ref: &mail.Ref{Session: session}})
		m.must(err)
	}
	if next := m.tick(); next.Finished {
		t.Fatal("it left in the middle of a request")
	}
	release()
	if next := m.run(); !next.Finished {
		t.Error("it does not end")
	}
	m.is(q, mergequeue.Merged, bead.Merged)
	m.is(other, mergequeue.Pending, bead.Done)
	m.onlyMail("human", mail.ShutdownResponse, "ends")
	if unread, _, _ := m.rig.Mailbox("refinery").Unread(); len(unread) != 0 {
		t.Errorf("unread: %v", unread)
	}
}

func TestRefineryNudges(t *testing.T) {
	t.Parallel()
	merge, release := hold(t)
	m := newMill(t, merge)
	q := m.submit("one.txt", "1\n")
	m.tick()
	_, err := m.rig.Slot("refinery").Send(m.ctx, nudge.Nudge{From: "witness", Type: nudge.HealthCheck, RequiresResponse: true}, m.rig.Clock.Now())
	m.must(err)
	m.tick()
	answer, err := m.rig.Slot("witness").Latest()
	m.must(err)
	if answer.Type != nudge.Response || answer.InReplyTo == nil || !strings.Contains(answer.Message, "in test") {
		t.Errorf("answer: %+v", answer)
	}
	_, err = m.rig.Slot("refinery").Send(m.ctx, nudge.Nudge{From: state.Human, Type: nudge.Abort, Message: "wrong branch"}, m.rig.Clock.Now())
	m.must(err)
	m.tick()
	if got := m.is(q, mergequeue.Pending, bead.Done); m.r.test != nil || !strings.Contains(got.Waiting, "wrong branch") {
		t.Errorf("waiting %q", got.Waiting)
	}
	m.later(24 * time.Hour)
	m.tick()
	m.is(q, mergequeue.Pending, bead.Done) // only a person lets it go on
	release()
	_, err = carry.Retry(m.ctx, m.rig, q.ID, state.Human)
	m.must(err)
	m.run()
	m.is(q, mergequeue.Merged, bead.Merged)
}

func TestRefineryDepth(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: test ! -f bad.txt\nmax_waiting: 1")
	bad := m.submit("bad.txt", "1\n")
	m.submit("one.txt", "1\n")
	m.submit("two.txt", "1\n")
	m.run()
	m.onlyMail("mayor", mail.Coordination, "3 requests wait")
	m.restart()
	m.run()
	m.onlyMail("mayor", mail.Coordination, "3 requests wait")
	m.setBead(bad.BeadID, func(b *bead.Bead) { m.must(b.Become(bead.Blocked, "", m.rig.Clock.Now())) })
	m.run()
	if m.r.warnedOfDepth() {
		t.Error("the crossing is not over")
	}
}

// A rebase that leaves nothing names the commit that had brought the work, and not
// what the person committed after it.
func TestRefineryNothingLeftToLand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		person func(m *mill, q mergequeue.Request) (brought string)
		tells  string
	}{
		{"picked", func(m *mill, q mergequeue.Request) string {
			m.git(m.dir, "cherry-pick", q.Head)
			return m.tip()
		}, "main held it already, as "},
		{"merged", func(m *mill, q mergequeue.Request) string {
			m.git(m.dir, "merge", "-q", "--no-ff", "--no-edit", q.Head)
			return q.Head
		}, "main held it already, as "},
		{"written among others", func(m *mill, q mergequeue.Request) string {
			m.write(m.dir, "one.txt", "1\n")
			m.git(m.dir, "add", "one.txt")
			m.commit(m.dir, "other.txt")
			return ""
		}, "main held it already, in commits with other changes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMill(t, `test: "false"`)
			m.commit(m.dir, "before.txt")
			q := m.submit("one.txt", "1\n")
			m.commit(m.dir, "between.txt")
			brought := c.person(m, q)
			tip := m.commit(m.dir, "after.txt")
			m.run()
			got := m.is(q, mergequeue.Merged, bead.Merged)
			if got.MergedSHA != brought || got.Candidate != tip || m.tip() != tip {
				t.Errorf("%+v, its work came with %q", got, brought)
			}
			if brought != "" {
				c.tells += brought[:10]
			}
			m.onlyMail("mayor", mail.MergeNotification, c.tells)
			letters, _, err := m.rig.Mailbox("mayor").List()
			m.must(err)
			if !strings.HasPrefix(letters[len(letters)-1].Body, "Nothing of "+string(q.ID)+" ") {
				t.Errorf("the mayor reads %q", letters[len(letters)-1].Body)
			}
		})
	}
}
