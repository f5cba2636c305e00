package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// tear makes a file of the state one that nobody can read.
func (m *mill) tear(file state.Path) {
	m.Helper()
	m.must(os.WriteFile(m.rig.Tree.Abs(file), []byte("{"), 0o600))
}

// What a step finds when it begins is its result, and what it can't know is trouble: nothing lands or begins on a guess.
func TestRefineryStepsThatGoNoFurther(t *testing.T) {
	t.Parallel()
	gone := func(m *mill, file state.Path) { m.must(os.Remove(m.rig.Tree.Abs(file))) }
	request := func(q *mergequeue.Request, m *mill) state.Path { return m.rig.Queue.Path(string(q.ID)) }
	work := func(q *mergequeue.Request, m *mill) state.Path { return m.rig.Beads.Path(string(q.BeadID)) }
	changed := func(change func(q *mergequeue.Request)) func(m *mill, q *mergequeue.Request) {
		return func(m *mill, q *mergequeue.Request) { m.setRequest(q.ID, change) }
	}
	for name, c := range map[string]struct {
		land bool // the last of a stack has something, and it lands; else the first, and it is checked out
		set  func(m *mill, q *mergequeue.Request)
		want refinery.ResultKind
		text string
	}{
		"checkout: the bead is gone": {false, func(m *mill, q *mergequeue.Request) { gone(m, work(q, m)) }, refinery.Taken, ""},
		"checkout: the bead is torn": {false, func(m *mill, q *mergequeue.Request) { m.tear(work(q, m)) }, refinery.Trouble, "state/work"},
		"checkout: the target is no branch": {false, changed(func(q *mergequeue.Request) { q.TargetBranch = "..bad" }),
			refinery.Refused, `its target "..bad" is not a branch`},
		"checkout: the target is gone": {false, changed(func(q *mergequeue.Request) { q.TargetBranch = "none" }),
			refinery.Trouble, "the target branch none does not exist"},
		"landing: a request is gone": {true, func(m *mill, q *mergequeue.Request) { gone(m, request(q, m)) }, refinery.Taken, ""},
		"landing: a request is torn": {true, func(m *mill, q *mergequeue.Request) { m.tear(request(q, m)) }, refinery.Trouble, "merge-queue"},
		"landing: a bead is torn":    {true, func(m *mill, q *mergequeue.Request) { m.tear(work(q, m)) }, refinery.Trouble, "state/work"},
		"landing: a request is over": {true, changed(func(q *mergequeue.Request) { q.Status = mergequeue.Dropped }), refinery.Taken, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMill(t, "test: \"true\"\nbatch: 2")
			first, last := m.submit("one.txt", "1\n"), m.submit("two.txt", "2\n")
			tip := m.tip()
			m.r.diverged = refinery.Divergence{Fork: "of an earlier step"}
			if c.land {
				m.half([]mergequeue.Request{first, last}, []state.MergeID{first.ID, last.ID}, 2)
				first, last = m.request(first), m.request(last)
				stack := refinery.NewStack(refinery.Layer{Request: first.ID, Candidate: first.Candidate}, refinery.Layer{Request: last.ID, Candidate: last.Candidate})
				c.set(m, &last)
				m.must(m.r.do(m.ctx, refinery.Land{Request: first.ID, Onto: first.Onto, Candidate: last.Candidate, Stack: stack, Tested: true}))
			} else {
				c.set(m, &first)
				m.must(m.r.do(m.ctx, refinery.CheckOut{Request: first.ID}))
			}
			if got := m.r.got; got.Kind != c.want || !strings.Contains(got.Text, c.text) || got.Diverged != (refinery.Divergence{}) {
				t.Errorf("%+v", got)
			}
			if m.tip() != tip {
				t.Error("something has landed")
			}
		})
	}
}

// A request that is over by the time of its step is taken, and stays as it is. A process that is told to end, or whose rig is
// gone, has not failed at the request.
func TestRefineryStepsThatAreCutShort(t *testing.T) {
	t.Parallel()
	for _, merge := range []string{`test: "true"`, "remote: origin\ntest: \"true\""} {
		m := newMill(t, merge)
		q := m.submit("one.txt", "1\n")
		over, cancel := context.WithCancel(m.ctx)
		cancel()
		if err := m.r.do(over, refinery.CheckOut{Request: q.ID}); !errors.Is(err, context.Canceled) || m.r.got.Kind != refinery.None {
			t.Errorf("told to end: %v: %+v", err, m.r.got)
		}
		before := q
		m.setRequest(q.ID, func(q *mergequeue.Request) { m.must(q.Become(mergequeue.Dropped, m.rig.Clock.Now())) })
		if res, err := m.r.checkOut(m.ctx, &before); err != nil || res.Kind != refinery.Taken {
			t.Errorf("begun: %+v, %v", res, err)
		}
		if res, err := m.r.rebase(m.ctx, &before, refinery.RebaseOnto{Request: q.ID, Onto: before.Base}); err != nil || res.Kind != refinery.Taken {
			t.Errorf("rebased: %+v, %v", res, err)
		}
		if m.must(m.r.do(m.ctx, refinery.CheckOut{Request: q.ID})); m.r.got.Kind != refinery.Taken {
			t.Errorf("checked out: %+v", m.r.got)
		}
		said := len(m.said)
		_ = m.r.markConflicted(m.ctx, refinery.MarkConflicted{Request: q.ID, Failure: mergequeue.FailTests, Reason: "x"})
		_ = m.r.hold(m.ctx, refinery.Hold{Request: q.ID})
		_ = m.r.end(m.ctx, flow.Ended{MR: q.ID, To: mergequeue.Dropped, Reason: "x"})
		if m.is(q, mergequeue.Dropped, bead.Done); len(m.said) != said {
			t.Errorf("said %q", m.said[said:])
		}
		live := m.submit("two.txt", "1\n")
		err := m.r.step(m.ctx, live.ID, func(context.Context, *mergequeue.Request) (refinery.Result, error) {
			return refinery.Result{}, state.ErrNoTree
		})
		if !errors.Is(err, state.ErrNoTree) || m.r.got.Kind != refinery.None {
			t.Errorf("without a rig: %v: %+v", err, m.r.got)
		}
	}
}

// A request lands on the branch that it names.
func TestRefineryLandsOnItsTarget(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	m.git(m.dir, "branch", "release")
	q := m.submit("one.txt", "1\n")
	m.setRequest(q.ID, func(q *mergequeue.Request) { q.TargetBranch = "release" })
	main := m.tip()
	m.run()
	if got := m.is(q, mergequeue.Merged, bead.Merged); m.tip() != main || m.git(m.dir, "rev-parse", "release") != got.MergedSHA {
		t.Errorf("%+v", got)
	}
}

// The request of a bead that is deleted is over.
func TestRefineryEndsWithoutABead(t *testing.T) {
	t.Parallel()
	m := newMill(t, slow(t))
	q := m.submit("slow.txt", "1\n")
	m.tick()
	m.must(os.Remove(m.rig.Tree.Abs(m.rig.Beads.Path(string(q.BeadID)))))
	m.tick()
	if got := m.request(q); got.Status.Live() || m.r.test != nil {
		t.Errorf("it is %s", got.Status)
	}
}

// What may not land whatever its tests say is refused, also where it conflicts: a conflict would be worked on once more.
func TestRefineryRefusesBeforeItRebases(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: \"true\"\nbatch: 2")
	alone := m.submit("a.txt", "mine\n", ".chipset/x", "1\n")
	m.write(m.dir, "a.txt", "theirs\n")
	m.git(m.dir, "commit", "-qam", "theirs")
	m.run()
	if got := m.is(alone, mergequeue.Conflicted, bead.Done); got.Failure != mergequeue.FailRefused {
		t.Errorf("%s: %s", got.Failure, got.Reason)
	}
	res, err := m.r.rebase(m.ctx, &alone, refinery.RebaseOnto{Request: alone.ID, Onto: m.tip(), Stacked: true})
	if err != nil || res.Kind != refinery.Refused || !strings.Contains(res.Text, ".chipset/") {
		t.Errorf("in a stack: %+v, %v", res, err)
	}
	if why, err := m.r.examine(m.ctx, &mergequeue.Request{Head: "HEAD"}, git.Hash(m.tip())); err != nil || why != `its head "HEAD" is not a commit` {
		t.Errorf("no commit: %q, %v", why, err)
	}
	// Only a head that is not there is held against the request.
	if why, err := m.r.examine(m.ctx, &alone, git.Hash(strings.Repeat("ab", 20))); err == nil || why != "" {
		t.Errorf("onto nothing: %q, %v", why, err)
	}
}

// A conflict in many files names some of them, and how many more there are.
func TestRefineryConflictInManyFiles(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	var files []string
	for i := range 25 {
		files = append(files, fmt.Sprintf("f%02d.txt", i), "mine\n")
		m.write(m.dir, fmt.Sprintf("f%02d.txt", i), "theirs\n")
	}
	q := m.submit(files...)
	m.git(m.dir, "add", "-A")
	m.git(m.dir, "commit", "-qm", "theirs")
	m.run()
	got := m.is(q, mergequeue.Conflicted, bead.Done)
	if first, _, _ := strings.Cut(got.Reason, "\n"); !strings.HasSuffix(first, "f19.txt and 5 more") {
		t.Errorf("%q", first)
	}
}

// The mayor is told once of each end, urgently of a bad one and with the whole output of the test; the witness of bad ones.
func TestRefineryNotices(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: sh -c 'test ! -f bad.txt || { echo why; exit 1; }'")
	good, bad := m.submit("good.txt", "1\n"), m.submit("bad.txt", "1\n")
	_, err := m.rig.Sender.Send(m.ctx, mail.Message{From: "refinery", To: "mayor", Type: mail.Coordination, Subject: "x", Body: "x"})
	m.must(err)
	m.run() // the clock stands still, so the notices want names that are taken
	letters := func(to state.AgentID) (all []mail.Entry) {
		t.Helper()
		all, _, err := m.rig.Mailbox(to).List()
		m.must(err)
		return all
	}
	for _, q := range []mergequeue.Request{m.is(good, mergequeue.Merged, bead.Merged), m.is(bad, mergequeue.Conflicted, bead.Done)} {
		found := false
		for _, e := range letters("mayor") {
			if string(e.Name) != q.NoticeName {
				continue
			}
			found = true
			log := m.rig.Tree.Abs(state.LogDir.Join(fmt.Sprintf("test-%s-1.log", q.ID)))
			if isBad := q.ID == bad.ID; (e.Priority == mail.Urgent) != isBad || strings.Contains(e.Body, "The whole output: "+log) != isBad {
				t.Errorf("%s: %s", e.Priority, e.Body)
			}
		}
		if !found {
			t.Errorf("%s: no letter is called %q", q.ID, q.NoticeName)
		}
	}
	if told := m.mail("witness", mail.Coordination); len(told) != 1 || !strings.Contains(told[0], string(bad.BeadID)) {
		t.Errorf("the witness: %q", told)
	}
	// A request whose mail was deleted is not reported again, and one that has not ended is not reported.
	for _, e := range letters("mayor") {
		m.must(os.Remove(filepath.Join(m.rig.Tree.Abs(m.rig.Mailbox("mayor").Dir()), string(e.Name))))
	}
	next := m.submit("next.txt", "1\n")
	for _, q := range []mergequeue.Request{good, bad, next} {
		m.must(m.r.notify(m.ctx, q.ID))
	}
	if left := letters("mayor"); len(left) > 0 {
		t.Errorf("told again: %+v", left)
	}
	// Tried again in vain, it is told once more.
	_, err = carry.Retry(m.ctx, m.rig, bad.ID, state.Human)
	m.must(err)
	m.run()
	m.onlyMail("mayor", mail.MergeNotification, string(bad.BeadID)+" did not land")
}

// Who was told that the queue is deep is told again once it was not, and only what is recorded counts.
func TestRefineryRemembersDepth(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	deep := func(when string, want bool) {
		t.Helper()
		if m.r.deep != want {
			t.Errorf("%s: deep is %t", when, m.r.deep)
		}
	}
	m.spoilt(state.RunDir, func() {
		if err := m.r.do(m.ctx, refinery.RecordDepth{Newest: "mr-1", Waiting: 3}); err == nil {
			t.Error("recorded without a folder")
		}
	})
	deep("not recorded", false)
	m.must(m.r.do(m.ctx, refinery.RecordDepth{Newest: "mr-1", Waiting: 3}))
	deep("recorded", true)
	m.restart()
	deep("after a restart", true)
	m.spoilt(state.RunDir, func() {
		if err := m.r.do(m.ctx, refinery.ForgetDepth{}); err == nil {
			t.Error("forgotten without a folder")
		}
	})
	deep("not forgotten", true)
	m.must(m.r.do(m.ctx, refinery.ForgetDepth{}))
	deep("forgotten", false)
	m.restart()
	deep("after another restart", false)
}

// The person is told that a branch and its remote have diverged, and where the branch is checked out. If one only follows the other, nothing is said.
func TestRefineryNotesDivergence(t *testing.T) {
	t.Parallel()
	m := newMill(t, "remote: origin\ntest: \"true\"")
	base := m.commit(m.dir, "base.txt")
	there := m.commitOn(base)
	mine := m.commit(m.dir, "mine.txt")
	root := m.git(m.dir, "commit-tree", "-m", "another root", base+"^{tree}")
	for _, c := range []struct{ target, there, fork string }{
		{"main", there, base}, {"main", root, "unrelated"}, {"main", mine, ""}, {"main", base, ""}, {"main", m.commitOn(mine), ""}, {"none", there, ""},
	} {
		m.r.diverged = refinery.Divergence{}
		m.must(m.r.noteDivergence(m.ctx, git.Branch(c.target), git.Hash(c.there)))
		want := refinery.Divergence{}
		if c.fork != "" {
			want = refinery.Divergence{Fork: c.fork, Target: "main", Remote: "origin", Checkout: m.dir}
		}
		if m.r.diverged != want {
			t.Errorf("%s and %s: %+v, want %+v", c.target, c.there, m.r.diverged, want)
		}
	}
}

// What is known of work that the target had before is told; that it is not known keeps nothing up, the end of the process does.
func TestRefineryHeldAs(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	m.setRequest(q.ID, func(q *mergequeue.Request) {
		q.Status, q.Stage, q.Head, q.Onto, q.Candidate, q.Tested = mergequeue.Merging, mergequeue.StageMerge, strings.Repeat("ab", 20), m.tip(), m.tip(), true
	})
	over, cancel := context.WithCancel(m.ctx)
	cancel()
	e := flow.MarkMerged{MR: q.ID}
	if err := m.r.merged(over, e); !errors.Is(err, context.Canceled) {
		t.Errorf("told to end: %v", err)
	}
	now := m.request(q)
	if held, why, err := m.r.heldAs(m.ctx, &now); err != nil || held != "" || !strings.Contains(why, "main held it already; as which commit is not known: ") {
		t.Errorf("%q, %q, %v", held, why, err)
	}
}

// A remote that lost the target, or that can't be asked, after a push: nothing is taken for landed.
func TestRefineryAfterAPush(t *testing.T) {
	t.Parallel()
	m, remote, _ := withRemote(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	m.pushed(q)
	stack := []flow.Layer{{Request: m.request(q), Candidate: q.Head}}
	m.write(m.dir, "one.txt", "mine\n")
	if res, err := m.r.takenUnlessLanded(m.ctx, stack, "main", q.ID); err != nil || res.Kind != refinery.InTheWay {
		t.Errorf("in the way: %+v, %v", res, err)
	}
	m.must(os.Remove(filepath.Join(m.dir, "one.txt")))
	m.must(os.Rename(remote, remote+".away"))
	if res, err := m.r.takenUnlessLanded(m.ctx, stack, "main", q.ID); err == nil {
		t.Errorf("no answer: %+v", res)
	}
	m.must(os.Rename(remote+".away", remote))
	m.git(remote, "update-ref", "-d", "refs/heads/main")
	m.restart()
	m.run()
	m.is(q, mergequeue.Merged, bead.Merged)
	if m.git(remote, "rev-parse", "main") != m.tip() {
		t.Error("the remote holds something else")
	}
}

// A file of the person's that is like one of a candidate is theirs while the candidate is only tested.
func TestRefineryRepairsOnlyLandings(t *testing.T) {
	t.Parallel()
	m := newMill(t, slow(t))
	q := m.submit("slow.txt", "1\n")
	m.tick()
	m.write(m.dir, "slow.txt", "1\n")
	m.restart()
	if text, err := os.ReadFile(filepath.Join(m.dir, "slow.txt")); err != nil || string(text) != "1\n" {
		t.Errorf("the person's file: %q, %v", text, err)
	}
	m.is(q, mergequeue.Merging, bead.Done)
}
