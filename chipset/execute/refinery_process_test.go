package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// spoilt makes a folder of the state a file while do runs.
func (m *mill) spoilt(dir state.Path, do func()) {
	m.Helper()
	spoilt(m, m.rig, dir, do)
}

// What the refinery can't read it does not decide without, and does not start without.
func TestRefineryDecidesOnAllOrNothing(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	m.submit("one.txt", "1\n")
	for _, dir := range []state.Path{m.rig.Slot("refinery").Dir(), m.rig.Mailbox("refinery").Dir(), mergequeue.Dir} {
		m.spoilt(dir, func() {
			if _, err := m.r.fetch(m.ctx); err == nil {
				t.Errorf("it decides without %s", dir)
			}
		})
	}
	for _, dir := range []state.Path{mergequeue.Dir, testRecords} {
		m.spoilt(dir, func() {
			if err := m.r.Recover(m.ctx); err == nil {
				t.Errorf("it starts without %s", dir)
			}
		})
	}
	over, cancel := context.WithCancel(m.ctx)
	cancel()
	if err := m.r.repairCheckouts(over); !errors.Is(err, context.Canceled) {
		t.Errorf("it was told to end, and has repaired all: %v", err)
	}
	if _, err := m.r.fetch(m.ctx); err != nil {
		t.Error(err)
	}
}

// slow is a merge section whose test does not end while the tree has a file slow.txt.
func slow(t *testing.T) string {
	t.Helper()
	merge, _ := hold(t)
	return `test: sh -c 'test ! -f slow.txt || exec ` + strings.TrimPrefix(merge, "test: ") + `'`
}

// A refinery that ends leaves no test behind, restores what a stash took back, and deletes the branches that are over. What
// it can't restore it says.
func TestRefineryEndsInOrder(t *testing.T) {
	t.Parallel()
	m := newMill(t, slow(t))
	before := m.tip()
	q := m.submit("one.txt", "1\n")
	_, err := m.rig.Hooks.Set(m.ctx, "polecat-alpha", hook.WorkItem{BeadID: q.BeadID, AssignmentID: q.AssignmentID, Title: "x"}, m.rig.Clock.Now())
	m.must(err)
	m.run()
	landed := m.tip()
	next := m.submit("slow.txt", "2\n")
	m.tick()
	_, err = m.rig.Hooks.Clear(m.ctx, "polecat-alpha", q.AssignmentID, m.rig.Clock.Now())
	m.must(err)
	job := m.r.test.job
	m.takeBack(before)
	lock := filepath.Join(m.dir, ".git", "index.lock")
	m.write(m.dir, ".git/index.lock", "")
	m.r.Close()
	select {
	case <-job.Done():
	default:
		t.Error("the test runs on")
	}
	if m.is(next, mergequeue.Merging, bead.Done); m.tip() != before || !strings.Contains(strings.Join(m.said, "\n"), "lock") {
		t.Errorf("main is at %s; said %q", m.tip(), m.said)
	}
	if _, err := m.r.Tick(m.ctx); err == nil {
		t.Error("a landing that can't be restored is no error")
	}
	m.must(m.r.do(m.ctx, refinery.Land{Request: next.ID, Onto: before, Candidate: next.Head, Tested: true}))
	if m.r.got.Kind != refinery.InTheWay || !m.r.got.Whole || m.tip() != before {
		t.Errorf("it lands beside what was taken back: %+v", m.r.got)
	}
	m.must(os.Remove(lock))
	m.r.Close()
	if m.tip() != landed {
		t.Errorf("main is at %s, want %s", m.tip(), landed)
	}
	if out := m.git(m.dir, "branch", "--list", q.SourceBranch); out != "" {
		t.Errorf("its branch is left: %s", out)
	}
}

// Of all processes only the tests of this refinery, and the workers of this polecat, end with the start.
func TestStartEndsNoOthers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere only the records tell")
	}
	m, k := newMill(t, `test: "true"`), newKennel(t, "")
	for name, c := range map[string]struct {
		agent, dir string
		recover    func()
	}{
		"refinery": {"refinery", m.rig.Dir, func() { m.must(m.r.killOrphans(m.ctx)) }},
		"polecat":  {string(alpha), k.rig.Dir, func() { m.must(k.p.endOrphans(m.ctx)) }},
	} {
		session, agent, dir := process.EnvSession+"=ses-x", "CHIPSET_AGENT="+c.agent, "CHIPSET_DIR="+c.dir
		mine := m.sleeper(session, agent, dir)
		others := map[string]*exec.Cmd{
			"without a session": m.sleeper(agent, dir), "of another agent": m.sleeper(session, dir, agent+"-2"),
			"of another rig": m.sleeper(session, agent, dir+"-2"),
		}
		c.recover()
		if err := mine.Wait(); err == nil {
			t.Errorf("%s: its own process goes on", name)
		}
		for what, other := range others {
			m.must(other.Process.Kill())
			_ = other.Wait()
			if status, _ := other.ProcessState.Sys().(interface{ Signal() unix.Signal }); status == nil || status.Signal() != unix.SIGKILL {
				t.Errorf("%s: one %s has ended: %v", name, what, other.ProcessState)
			}
		}
	}
}

// sleeper starts a process with an environment.
func (m *mill) sleeper(env ...string) *exec.Cmd {
	m.Helper()
	cmd := exec.CommandContext(m.ctx, "sleep", "3600")
	cmd.Env = env
	m.must(cmd.Start())
	return cmd
}

// When the refinery looks again without news.
func TestRefineryAfter(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	landed := func(ago time.Duration) *landing { return &landing{at: m.now.Add(-ago)} }
	spent := []mergequeue.Request{{ID: "mr-1"}}
	wait := func(d time.Duration) refinery.Wait {
		return refinery.Wait{Kind: refinery.WaitTrouble, Until: state.At(m.now.Add(d))}
	}
	for _, c := range []struct {
		name  string
		wait  refinery.Wait
		last  *landing
		spent []mergequeue.Request
		want  time.Duration
	}{
		{"nothing", refinery.Wait{}, nil, nil, 0},
		{"a wait", wait(time.Minute), nil, nil, time.Minute},
		{"a wait that is over", wait(-time.Minute), nil, nil, time.Millisecond},
		{"a landing", refinery.Wait{}, landed(0), nil, guardEvery},
		{"a landing of a while ago", refinery.Wait{}, landed(guardBusy), nil, 0},
		{"a landing, and a long wait", wait(time.Minute), landed(0), nil, guardEvery},
		{"a landing, and a short wait", wait(guardEvery / 2), landed(0), nil, guardEvery / 2},
		{"a branch", refinery.Wait{}, nil, spent, spentEvery},
		{"a branch, and a long wait", wait(time.Minute), nil, spent, spentEvery},
		{"a branch, and a landing", refinery.Wait{}, landed(0), spent, guardEvery},
	} {
		m.r.state.Wait, m.r.last, m.r.spent = c.wait, c.last, c.spent
		if got := m.r.after(); got != c.want {
			t.Errorf("%s: in %s, want %s", c.name, got, c.want)
		}
	}
	m.r.last, m.r.spent = nil, nil
}

// Branches of landed requests go while others are tested, also after the clock was set back. One that is checked out
// somewhere waits until it is not, one that somebody has gone on with is theirs, and neither keeps the others.
func TestRefineryDeletesBranchesOneByOne(t *testing.T) {
	t.Parallel()
	m := newMill(t, slow(t)+"\nbatch: 4")
	var all []mergequeue.Request
	for i := range 3 {
		all = append(all, m.submit(fmt.Sprintf("%d.txt", i), "x\n"))
	}
	used := filepath.Join(t.TempDir(), "used")
	m.git(m.dir, "worktree", "add", "-q", used, all[0].SourceBranch)
	moved := m.git(m.dir, "commit-tree", "-m", "mine", "-p", all[1].Head, all[1].Head+"^{tree}")
	m.git(m.dir, "update-ref", "refs/heads/"+all[1].SourceBranch, moved)
	m.run()
	left := func(want ...string) {
		t.Helper()
		got := strings.Fields(m.git(m.dir, "for-each-ref", "--format=%(refname:short)", "refs/heads/polecat/"))
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("branches %q, want %q", got, want)
		}
	}
	left(all[0].SourceBranch, all[1].SourceBranch)
	last := m.submit("slow.txt", "x\n")
	if next := m.tick(); next.After == 0 || next.After > spentEvery {
		t.Errorf("looks for branches after %s", next.After)
	}
	m.git(m.dir, "worktree", "remove", "--force", used)
	m.tick()
	left(all[0].SourceBranch, all[1].SourceBranch, last.SourceBranch) // it does not look for them with every tick
	m.later(-time.Hour)
	m.tick()
	left(all[1].SourceBranch, last.SourceBranch)
	if text := strings.Join(m.story(), "\n"); strings.Contains(text, "was left") {
		t.Errorf("the log names a branch that somebody has continued: %s", text)
	}
}

// The beads of a stack that is tested wake the refinery, those behind it do not.
func TestRefineryWantsItsStack(t *testing.T) {
	t.Parallel()
	m := newMill(t, slow(t)+"\nbatch: 2")
	var got []bool
	for i := range 3 {
		m.submit("slow.txt", fmt.Sprint(i)) // those behind the first conflict with it
	}
	queue, _, err := m.rig.Queue.Unfinished()
	m.must(err)
	m.r.state.Work.Stack = refinery.NewStack(refinery.Layer{Request: queue[0].ID}, refinery.Layer{Request: queue[1].ID})
	m.r.await(queue)
	for i := range queue {
		got = append(got, m.r.Wants(m.rig.Beads.Path(string(queue[i].BeadID))))
	}
	if fmt.Sprint(got) != "[true true false]" {
		t.Errorf("the beads wake it: %v", got)
	}
}

// A test that a decision forgot ends before the next begins: both would use one worktree. Whose record and log is whose stays clear.
func TestRefineryRunsOneTest(t *testing.T) {
	t.Parallel()
	m := newMill(t, slow(t))
	q := m.submit("slow.txt", "1\n")
	m.tick()
	first := m.r.test.job
	got := m.request(q)
	_, err := m.r.startTest(m.ctx, &got, refinery.RunTest{Request: q.ID, Onto: got.Onto, Candidate: got.Candidate})
	m.must(err)
	select {
	case <-first.Done():
	default:
		t.Error("the first test runs on")
	}
	if m.r.test == nil || m.r.test.job == first {
		t.Fatal("the second does not run")
	}
	m.r.stopTest(0)
	select {
	case <-m.r.Wake():
	case <-time.After(patience):
		t.Error("the end of a test wakes nobody")
	}
}

// What an earlier refinery left of a test, its record and its temporary files, goes with the next start.
func TestRefineryRemovesRecordsOfTests(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	m.must(m.rig.Tree.MkdirAll(testRecords))
	m.must(m.rig.Tree.ReplaceJSON(testRecords.Join("ses-left.json"), process.Exit{ID: "ses-left"}))
	m.restart()
	if left, err := m.rig.Tree.List(testRecords); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A nudge or a letter is answered at once, whatever else is there.
func TestRefineryIsWoken(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	_, err := m.rig.Slot("refinery").Send(m.ctx, nudge.Nudge{From: state.Human, Type: nudge.SyncRequest}, m.rig.Clock.Now())
	m.must(err)
	m.submit("one.txt", "1\n")
	watched := map[state.Path]bool{}
	for _, dir := range m.r.Folders() {
		watched[dir] = true
	}
	for _, dir := range []state.Path{mergequeue.Dir, bead.Dir, m.rig.Mailbox("refinery").Dir(), m.rig.Slot("refinery").Dir().Join("from")} {
		if !watched[dir] {
			t.Errorf("a change in %s does not wake it", dir)
		}
		if _, err := m.rig.Tree.List(dir); err != nil {
			t.Error(err)
		}
	}
}
