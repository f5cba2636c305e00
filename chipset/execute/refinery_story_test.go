package execute

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// tells fails unless the story has the lines in this order, with any others between them.
func (m *mill) tells(lines ...string) {
	m.Helper()
	rest := m.story()
	for _, line := range lines {
		at := slices.Index(rest, line)
		if at < 0 {
			m.Errorf("%q does not come where it must in\n%s", line, strings.Join(m.story(), "\n"))
			return
		}
		rest = rest[at+1:]
	}
}

// Who watches hears of each step of a request and of each end, and the log keeps the steps.
func TestRefineryTellsItsStory(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: \"true\"\nprotect: [held.txt]")
	onto := git.Hash(m.tip()).Short()
	good, held, bad := m.submit("a.txt", "mine\n"), m.submit("held.txt", "1\n"), m.submit("a.txt", "theirs\n")
	m.run()
	landed := m.request(good)
	m.tells("mr.rebased "+string(good.BeadID)+" "+git.Hash(good.Head).Short()+" on "+onto+" is "+git.Hash(landed.Candidate).Short(),
		"mr.tested "+string(good.BeadID)+" green", string(good.BeadID)+" has landed: "+landed.Landed())
	for _, begin := range []string{string(bad.BeadID) + " did not land (conflict): conflict with ", string(held.BeadID) + " is waiting for you: it changes held.txt"} {
		if !slices.ContainsFunc(m.said, func(line string) bool { return strings.HasPrefix(line, begin) }) {
			t.Errorf("%q is not said: %q", begin, m.said)
		}
	}
	m.must(m.r.do(m.ctx, refinery.QueueBlocked{Request: held.ID, Reason: "why\nand more"}))
	m.must(m.r.do(m.ctx, refinery.QueueUnblocked{}))
	m.must(m.r.do(m.ctx, refinery.LeaveOut{Request: held.ID, Reason: "why"}))
	m.must(m.r.do(m.ctx, refinery.LeaveOut{Request: "mr-gt-none", Reason: "why"}))
	m.must(m.r.end(m.ctx, flow.Ended{MR: held.ID, To: mergequeue.Dropped, Reason: "by a person"}))
	m.tells("queue.blocked  why\nand more", "queue.unblocked  ", "mr.left_out "+string(held.BeadID)+" it waits for its own turn: why",
		"the merge queue is blocked by "+string(held.ID)+": why", "the merge queue is moving again", string(held.ID)+" is dropped: by a person")
}

// A record that holds no commit or no branch where one must be stops its step, and moves nothing.
func TestRefineryBadRecords(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	tip, none := m.tip(), git.Hash(strings.Repeat("ab", 20))
	bad := q
	bad.Head, bad.Candidate, bad.Stage, bad.Status = "HEAD", "HEAD", mergequeue.StageMerge, mergequeue.Merging
	for name, do := range map[string]func() error{
		"rebase": func() error {
			_, err := m.r.rebase(m.ctx, &bad, refinery.RebaseOnto{Request: q.ID, Onto: tip})
			return err
		},
		"rebase, onto": func() error {
			_, err := m.r.rebase(m.ctx, &q, refinery.RebaseOnto{Request: q.ID, Onto: string(none), Stacked: true})
			return err
		},
		"landed":         func() error { _, err := m.r.landed(m.ctx, &bad, "main"); return err },
		"interrupted":    func() error { _, err := m.r.finishInterrupted(m.ctx, &bad, "main"); return err },
		"repair":         func() error { return m.r.repairCheckout(m.ctx, &bad, "main") },
		"judge":          func() error { _, err := m.r.judge(m.ctx, &q, none, git.Hash(q.Head)); return err },
		"drop":           func() error { return m.r.dropBranches(m.ctx, []mergequeue.Request{bad}) },
		"worktree":       func() error { m.r.prepared = false; return m.r.prepare(m.ctx, none) },
		"worktree again": func() error { m.r.prepared = true; return m.r.stand(m.ctx, refinery.RunTest{Candidate: string(none)}) },
		"check out":      func() error { return m.r.checkOutAnew(m.ctx, none) },
		"land": func() error {
			other := q
			other.TargetBranch = "..bad"
			_, err := m.r.land(m.ctx, &other, refinery.Land{Request: q.ID, Onto: tip, Candidate: q.Head, Tested: true})
			return err
		},
		"move": func() error { return m.r.move(m.ctx, &q, "main", refinery.Land{Onto: tip, Candidate: string(none)}) },
	} {
		if err := do(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if m.tip() != tip || m.r.last != nil || m.git(m.dir, "rev-parse", q.SourceBranch) != q.Head {
		t.Error("something has moved")
	}
	m.r.prepared, m.r.at = false, ""
	m.must(m.r.do(m.ctx, refinery.CheckOut{Request: q.ID}))
	m.must(m.r.do(m.ctx, refinery.RebaseOnto{Request: q.ID, Onto: tip}))
	m.must(m.r.do(m.ctx, refinery.RunTest{Request: q.ID, Onto: tip, Candidate: string(none)}))
	if m.r.got.Kind != refinery.Trouble || m.r.test != nil {
		t.Errorf("the test of nothing: %+v", m.r.got)
	}
	// A branch that can't be deleted is left, and told once.
	m.r.spent = []mergequeue.Request{bad}
	m.r.deleteLandedBranches(m.ctx)
	m.r.deleteLandedBranches(m.ctx)
	warned := 0
	for _, e := range m.events() {
		if strings.HasPrefix(e.Text, "the branch of a landed request was left: ") {
			warned++
		}
	}
	if warned != 1 || len(m.r.spent) > 0 {
		t.Errorf("told %d times, %d are left", warned, len(m.r.spent))
	}
	m.setRequest(q.ID, func(q *mergequeue.Request) {
		q.Status, q.TargetBranch, q.MergedSHA = mergequeue.Merged, "..bad", q.Head
	})
	m.r.last = nil
	if m.must(m.r.recallLanding()); m.r.last != nil {
		t.Errorf("guarded is %+v", m.r.last)
	}
}

// A request counts as reported once the mayor and the witness have their mail, and only of the end that they were told of.
func TestRefineryReportsEachEnd(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	m.setRequest(q.ID, func(q *mergequeue.Request) {
		q.Status, q.Failure, q.Reason, q.NoticeName = mergequeue.Conflicted, mergequeue.FailTests, "red", string(mail.NameAt(state.At(m.now), "refinery"))
	})
	m.spoilt(m.rig.Mailbox("witness").Dir(), func() {
		if err := m.r.notify(m.ctx, q.ID); err == nil || m.request(q).Notified {
			t.Errorf("reported although the witness has no mail: %v", err)
		}
	})
	m.must(m.r.notify(m.ctx, q.ID))
	if !m.request(q).Notified || len(m.mail("witness", mail.Coordination)) != 1 || len(m.mail("mayor", mail.MergeNotification)) != 1 {
		t.Error("it is not reported")
	}
	if err := m.r.notify(m.ctx, "mr-gt-none"); !errors.Is(err, state.ErrNotFound) {
		t.Error(err)
	}
}

// What is not known of the target is not guessed: nobody is told of a tip that can't be compared.
func TestRefineryTipThatIsNotKnown(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	tip := m.tip()
	m.must(m.r.knowTip("main", git.Hash(tip)))
	if got := m.r.presentTip(m.ctx); got != tip {
		t.Errorf("the tip is %q", got)
	}
	m.spoilt(state.RunDir, func() {
		if err := m.r.knowTip("main", git.Hash(strings.Repeat("ab", 20))); err == nil || m.r.known.Tip != git.Hash(tip) {
			t.Errorf("known is %+v, %v", m.r.known, err)
		}
	})
	m.git(m.dir, "update-ref", "refs/heads/main", m.commitOn(tip))
	m.r.known = knownTip{Target: "other"}
	m.spoilt(mergequeue.Dir, func() {
		if f, err := m.r.foreignTip(m.ctx, nil); err == nil {
			t.Errorf("without the queue: %+v", f)
		}
	})
	m.rig.Def.Merge.Target = "main"
	m.git(m.dir, "branch", "-m", "main", "other")
	if got := m.r.presentTip(m.ctx); got != "" {
		t.Errorf("the tip of nothing is %q", got)
	}
	m.rig.Def.Merge.Target = "..bad"
	if f, err := m.r.foreignTip(m.ctx, nil); err != nil || f.Tip != "" || m.r.presentTip(m.ctx) != "" {
		t.Errorf("%+v, %v", f, err)
	}
}

// A landing is guarded for a while, wherever the clock goes, and as long as the target is there.
func TestRefineryGuardEnds(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	guarded := func(after time.Duration) bool {
		t.Helper()
		m.r.last = &landing{target: "main", from: git.Hash(m.tip()), to: git.Hash(m.tip()), at: m.now.Add(-after), elsewhere: true}
		m.must(m.r.guard(m.ctx))
		return m.r.last != nil
	}
	for after, want := range map[time.Duration]bool{0: true, guardTime: true, guardTime + 1: false, -1: false} {
		if guarded(after) != want {
			t.Errorf("after %s it is guarded: %t", after, !want)
		}
	}
	for after, want := range map[time.Duration]bool{guardBusy: true, guardBusy + 1: false} {
		if guarded(after); m.r.last.elsewhere != want {
			t.Errorf("after %s a switch is waited for: %t", after, !want)
		}
	}
	m.r.last = &landing{target: "none", at: m.now}
	if m.must(m.r.guard(m.ctx)); m.r.last == nil {
		t.Error("a target that is not there is not looked for again")
	}
	m.r.last = &landing{target: "main", from: git.Hash(strings.Repeat("ab", 20)), to: git.Hash(strings.Repeat("cd", 20)), at: m.now}
	if m.must(m.r.guard(m.ctx)); m.r.last != nil {
		t.Error("what somebody else has moved is guarded")
	}
}

// Nothing is healed on a guess: without its target a request stays as it is.
func TestHealMergesWithoutATarget(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	m.setRequest(q.ID, func(q *mergequeue.Request) {
		q.Status, q.Stage, q.Attempts, q.Onto, q.Candidate, q.Tested = mergequeue.Merging, mergequeue.StageMerge, 1, q.Base, q.Head, true
	})
	m.r.Close()
	m.rig.Def.Merge.Target = "main"
	m.git(m.dir, "branch", "-m", "main", "other")
	if err := m.heal(); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("healed: %v", err)
	}
	if got := m.request(q); got.Status != mergequeue.Merging {
		t.Errorf("it is %s", got.Status)
	}
}

// What a worktree without a process holds is saved, under the lock of worktrees.
func TestRescueWorktree(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	a := k.dead()
	k.p.Close()
	rescue := func(ctx context.Context) error {
		return RescueWorktree(ctx, Agent{Rig: k.rig, ID: alpha, Session: "ses-doctor", Self: k.p.Self, Say: k.say})
	}
	held, err := k.rig.Tree.Lock(t.Context(), state.LockGit, "worktrees")
	k.fail(err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := rescue(ctx); !errors.Is(err, state.ErrLockTimeout) || k.git("for-each-ref", "refs/chipset/salvage") != "" {
		t.Errorf("without the lock: %v", err)
	}
	held.Unlock()
	k.fail(rescue(t.Context()))
	if files := k.git("ls-tree", "--name-only", "refs/chipset/salvage/"+string(a)); !strings.Contains(files, "unknown.txt") {
		t.Errorf("saved %q", files)
	}
	k.fail(os.Rename(filepath.Join(k.dir, ".git"), filepath.Join(k.dir, ".git.away")))
	if err := rescue(t.Context()); err == nil {
		t.Error("saved without a repository")
	}
}

// A notice names the request, its bead and what became of it, and its ID tells each end of it from the next.
func TestRefineryNotice(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	q := mergequeue.Request{ID: "mr-1", BeadID: "gt-abc12", AssignmentID: "as-1", AgentID: "polecat-alpha", SourceBranch: "polecat/gt-abc12", TargetBranch: "main", Attempts: 2,
		Status: mergequeue.Merged, Candidate: "c0ffee", MergedSHA: "c0ffee", Onto: "0ff"}
	log := m.rig.Tree.Abs(state.LogDir.Join("test-mr-1-2.log"))
	for name, c := range map[string]struct {
		change func(q *mergequeue.Request)
		want   mail.Message
	}{
		"merged":      {func(*mergequeue.Request) {}, mail.Message{ID: "mr-1:merged", Subject: "gt-abc12 merged: " + q.Landed(), Body: "mr-1 of polecat-alpha landed on main as c0ffee.\n"}},
		"held before": {func(q *mergequeue.Request) { q.Candidate = q.Onto }, mail.Message{ID: "mr-1:merged", Body: "Nothing of mr-1 of polecat-alpha was left to land: "}},
		"conflict": {func(q *mergequeue.Request) {
			q.Status, q.Failure, q.Reason = mergequeue.Conflicted, mergequeue.FailConflict, "conflict in x\nmore"
		},
			mail.Message{ID: "mr-1:conflicted:2", Priority: mail.Urgent, Subject: "gt-abc12 did not land (conflict): conflict in x",
				Body: "mr-1 of polecat-alpha (branch polecat/gt-abc12) did not land on main: conflict.\n\nconflict in x\nmore\n"}},
		"tests": {func(q *mergequeue.Request) {
			q.Status, q.Failure, q.Reason = mergequeue.Conflicted, mergequeue.FailTests, "red"
		},
			mail.Message{ID: "mr-1:conflicted:2", Priority: mail.Urgent, Subject: "gt-abc12 did not land (tests_failed): red",
				Body: "mr-1 of polecat-alpha (branch polecat/gt-abc12) did not land on main: tests_failed.\n\nred\n\nThe whole output: " + log + "\n"}},
	} {
		q := q
		c.change(&q)
		got := m.r.notice(&q)
		if name == "held before" {
			if !q.HeldBefore() {
				t.Fatal("the fixture is wrong")
			}
			c.want.Subject, got.Body = got.Subject, got.Body[:len(c.want.Body)]
		}
		if got.To != "mayor" || got.Type != mail.MergeNotification || got.Ref.BeadID != "gt-abc12" || got.Ref.AssignmentID != "as-1" || got.ID != c.want.ID ||
			got.Priority != c.want.Priority || got.Subject != c.want.Subject || got.Body != c.want.Body {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
