package execute

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// counted is a merge section whose test writes a line for each run, and is red
// where there is a file called bad.txt.
func counted(t *testing.T, more string) (merge string, runs func() int) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "runs")
	return "test: sh -c 'git rev-parse HEAD >>" + log + "; test ! -f bad.txt'\n" + more, func() int {
		data, err := os.ReadFile(log)
		if err != nil {
			return 0
		}
		return strings.Count(string(data), "\n")
	}
}

func TestRefineryBatchLandsTogether(t *testing.T) {
	t.Parallel()
	merge, runs := counted(t, "batch: 3")
	m := newMill(t, merge)
	var all []mergequeue.Request
	for _, name := range []string{"1.txt", "2.txt", "3.txt", "4.txt"} {
		all = append(all, m.submit(name, "x\n"))
	}
	base := m.tip()
	m.run()
	if n := runs(); n != 2 {
		t.Errorf("%d tests", n)
	}
	m.landed("1.txt", "2.txt", "3.txt", "4.txt")
	onto := base
	for i, q := range all {
		got := m.is(q, mergequeue.Merged, bead.Merged)
		if got.Onto != onto || got.MergedSHA != got.Candidate || !got.Tested || got.Attempts != 1 || !got.Notified {
			t.Errorf("%d: %+v", i, got)
		}
		if together := i < 3; together != (len(got.Stack) == 3) || together != (got.StackTip != "") {
			t.Errorf("%d: stack %v, tip %s", i, got.Stack, got.StackTip)
		}
		if own := m.git(m.dir, "log", "--format=%s", got.Onto+".."+got.MergedSHA); own != string(q.BeadID) {
			t.Errorf("%d: its commits are %q", i, own)
		}
		onto = got.MergedSHA
	}
	if onto != m.tip() || m.git(m.dir, "rev-list", "--merges", "main") != "" {
		t.Error("the history is not linear")
	}
	var notices []string
	for _, text := range m.mail("mayor", mail.MergeNotification) {
		notices = append(notices, strings.Fields(text)[0])
	}
	if want := []string{string(all[0].BeadID), string(all[1].BeadID), string(all[2].BeadID), string(all[3].BeadID)}; !slices.Equal(notices, want) {
		t.Errorf("notices of %q, want %q", notices, want)
	}
	// The target took one step to the tested tip: nothing in between was ever its tip.
	if log := m.git(m.dir, "reflog", "show", "--format=%H", "main"); strings.Contains(log, m.request(all[0]).MergedSHA) ||
		!strings.Contains(log, m.request(all[2]).MergedSHA) {
		t.Errorf("the branch stood at:\n%s", log)
	}
	m.tellsOfStack(all[1])
	if _, err := os.Stat(m.rig.Tree.Abs(state.LogDir.Join("test-" + string(all[0].ID) + "-1-stack.log"))); err != nil {
		t.Error(err)
	}
}

// tellsOfStack checks that the story of a request that was not the first says
// what it was tested with.
func (m *mill) tellsOfStack(q mergequeue.Request) {
	m.Helper()
	var told []string
	for _, e := range m.events() {
		if e.Bead == q.BeadID && e.Type == "mr.tested" {
			told = append(told, e.Text)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], "green, together: ") {
		m.Errorf("the story of %s: %q", q.ID, told)
	}
}

func (m *mill) events() []event.Event {
	m.Helper()
	events, _, _, err := m.rig.Events.Read(event.Position{}, time.Time{})
	m.must(err)
	return events
}

// story is what the event log tells, and what the refinery said.
func (m *mill) story() (lines []string) {
	for _, e := range m.events() {
		lines = append(lines, fmt.Sprint(e.Type, " ", e.Bead, " ", e.Text))
	}
	return append(lines, m.said...)
}

func TestRefineryBatchFindsTheRedOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		red  int
		most int
	}{{"first", 0, 6}, {"sixth", 5, 6}, {"last", 7, 6}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			merge, runs := counted(t, "batch: 8")
			m := newMill(t, merge)
			var all []mergequeue.Request
			for i := range 8 {
				name := string(rune('a'+i)) + "1.txt"
				if i == c.red {
					name = "bad.txt"
				}
				all = append(all, m.submit(name, "x\n"))
			}
			m.run()
			for i, q := range all {
				switch {
				case i < c.red:
					m.is(q, mergequeue.Merged, bead.Merged)
				case i > c.red:
					m.is(q, mergequeue.Pending, bead.Done)
				default:
					got := m.is(q, mergequeue.Conflicted, bead.Done)
					if got.Failure != mergequeue.FailTests || got.Attempts != 1 {
						t.Errorf("%+v", got)
					}
				}
			}
			if n := runs(); n > c.most {
				t.Errorf("%d tests:\n%s", n, strings.Join(m.story(), "\n"))
			}
			// The mayor takes it back; the others land on what is there.
			m.setBead(all[c.red].BeadID, func(b *bead.Bead) { m.must(b.Become(bead.Open, "", m.rig.Clock.Now())) })
			m.run()
			for i, q := range all {
				if i != c.red {
					if got := m.is(q, mergequeue.Merged, bead.Merged); got.Attempts != 1 {
						t.Errorf("%s was begun %d times", q.ID, got.Attempts)
					}
				}
			}
			if n := m.mail("mayor", mail.MergeNotification); len(n) != 8 {
				t.Errorf("notices: %q", n)
			}
		})
	}
}

func TestRefineryBatchConflictInside(t *testing.T) {
	t.Parallel()
	merge, runs := counted(t, "batch: 4")
	m := newMill(t, merge)
	one := m.submit("a.txt", "one\nTWO\nthree\n")
	two := m.submit("a.txt", "one\nzwei\nthree\n")
	three := m.submit("three.txt", "x\n")
	m.run()
	m.is(one, mergequeue.Merged, bead.Merged)
	if got := m.is(two, mergequeue.Conflicted, bead.Done); got.Failure != mergequeue.FailConflict || got.Attempts != 1 {
		t.Errorf("%+v", got)
	}
	m.is(three, mergequeue.Pending, bead.Done)
	m.warned("it waits for its own turn: ")
	if n := runs(); n != 1 {
		t.Errorf("%d tests", n)
	}
}

// A request conflicts with one before it that does not land: it is not to blame.
func TestRefineryBatchConflictWithWhatDoesNotLand(t *testing.T) {
	t.Parallel()
	merge, _ := counted(t, "batch: 4")
	m := newMill(t, merge)
	bad := m.submit("a.txt", "one\nTWO\nthree\n", "bad.txt", "x\n")
	good := m.submit("a.txt", "one\nzwei\nthree\n")
	m.run()
	m.is(bad, mergequeue.Conflicted, bead.Done)
	m.is(good, mergequeue.Pending, bead.Done)
	m.setBead(bad.BeadID, func(b *bead.Bead) { m.must(b.Become(bead.Open, "", m.rig.Clock.Now())) })
	m.run()
	m.is(good, mergequeue.Merged, bead.Merged)
}

// A bead of the stack is taken away while it is tested, or in the last moment.
func TestRefineryBatchBeadIsTaken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		n    int
		late bool
	}{{"first", 0, false}, {"middle", 1, false}, {"first, late", 0, true}, {"middle, late", 1, true}, {"last, late", 2, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			merge, release := hold(t)
			m := newMill(t, merge+"\nbatch: 3")
			var all []mergequeue.Request
			for _, name := range []string{"1.txt", "2.txt", "3.txt"} {
				all = append(all, m.submit(name, "x\n"))
			}
			m.tick()
			if c.late {
				release()
				<-m.r.test.job.Done()
				m.lateLanding(all, c.n)
			} else {
				_, err := carry.Drop(m.ctx, m.rig, all[c.n].ID, "not any more", state.Human)
				m.must(err)
				m.tick()
				release()
			}
			m.run()
			for i, q := range all {
				if i == c.n {
					if got := m.request(q); got.Status == mergequeue.Merged {
						t.Errorf("%s has landed", q.ID)
					}
					continue
				}
				m.is(q, mergequeue.Merged, bead.Merged)
			}
			if out := m.git(m.dir, "ls-tree", "--name-only", "main"); strings.Contains(out, string(rune('1'+c.n))+".txt") {
				t.Errorf("its work is on main:\n%s", out)
			}
		})
	}
}

// lateLanding takes the nth bead away between the decision to land and the landing.
func (m *mill) lateLanding(all []mergequeue.Request, n int) {
	m.Helper()
	tip := m.tip()
	work := m.r.state.Work
	m.setBead(all[n].BeadID, func(b *bead.Bead) { m.must(b.Become(bead.Cancelled, "", m.rig.Clock.Now())) })
	first := m.request(all[0])
	res, err := m.r.land(m.ctx, &first, refinery.Land{Request: work.ID, Onto: work.Onto, Candidate: work.Candidate, Stack: work.Stack, Tested: true})
	m.must(err)
	if res.Kind != refinery.Taken || res.Request != all[n].ID || m.tip() != tip {
		m.Fatalf("%+v, the target moved: %t", res, m.tip() != tip)
	}
	for _, q := range all {
		if b, err := m.rig.Beads.Get(string(q.BeadID)); err != nil || b.Status == bead.Merged {
			m.Fatalf("%s: %s, %v", q.BeadID, b.Status, err)
		}
	}
}

func TestRefineryBatchTargetMoves(t *testing.T) {
	t.Parallel()
	merge, release := hold(t)
	m := newMill(t, merge+"\nbatch: 3")
	one, two := m.submit("1.txt", "x\n"), m.submit("2.txt", "x\n")
	m.tick()
	m.commit(m.dir, "person.txt")
	tip := m.tip()
	release()
	m.run()
	if got := m.is(one, mergequeue.Merged, bead.Merged); got.Onto != tip || got.Attempts != 1 {
		t.Errorf("%+v", got)
	}
	if got := m.is(two, mergequeue.Merged, bead.Merged); got.MergedSHA != m.tip() || got.Attempts != 1 {
		t.Errorf("%+v", got)
	}
	m.landed("1.txt", "2.txt", "person.txt")
}

func TestRefineryBatchCheckoutInTheWay(t *testing.T) {
	t.Parallel()
	merge, runs := counted(t, "batch: 3")
	m := newMill(t, merge)
	one, two := m.submit("1.txt", "x\n"), m.submit("a.txt", "four\n")
	tip := m.tip()
	m.write(m.dir, "a.txt", "mine\n")
	m.run()
	if got := m.is(one, mergequeue.Merging, bead.Done); !strings.Contains(got.Waiting, "in the way") || m.tip() != tip {
		t.Errorf("waiting %q", got.Waiting)
	}
	m.is(two, mergequeue.Merging, bead.Done)
	m.git(m.dir, "checkout", "-q", "a.txt")
	m.later(refinery.RetryCheckout)
	m.run()
	m.is(one, mergequeue.Merged, bead.Merged)
	m.is(two, mergequeue.Merged, bead.Merged)
	if n := runs(); n != 1 {
		t.Errorf("%d tests", n)
	}
}

func TestRefineryBatchRemote(t *testing.T) {
	t.Parallel()
	test, runs := counted(t, "batch: 3")
	m, remote, _ := withRemote(t, test)
	one, two := m.submit("1.txt", "x\n"), m.submit("2.txt", "x\n")
	m.run()
	m.is(one, mergequeue.Merged, bead.Merged)
	if got := m.is(two, mergequeue.Merged, bead.Merged); got.MergedSHA != m.git(remote, "rev-parse", "main") || got.MergedSHA != m.tip() {
		t.Errorf("%+v", got)
	}
	if n := runs(); n != 1 {
		t.Errorf("%d tests", n)
	}
}

// TestRefineryBatchResumes constructs what a crash leaves of a stack in every
// stage, and starts the refinery again.
func TestRefineryBatchResumes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		// recorded are the requests that say that they are about to land, moved is
		// true when the target does, merged are the beads that know.
		recorded int
		moved    bool
		merged   []int
		runs     int
	}{
		{"in the test", 0, false, nil, 1},
		{"first is recorded", 1, false, nil, 1},
		{"all are recorded", 3, false, nil, 1},
		{"moved", 3, true, nil, 0},
		{"moved, last bead merged", 3, true, []int{2}, 0},
		{"moved, two beads merged", 3, true, []int{1, 2}, 0},
		{"moved, all beads merged", 3, true, []int{0, 1, 2}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			merge, runs := counted(t, "batch: 3")
			m := newMill(t, merge)
			m.r.Close()
			var all []mergequeue.Request
			var stack []state.MergeID
			for _, name := range []string{"1.txt", "2.txt", "3.txt"} {
				all = append(all, m.submit(name, "x\n"))
				stack = append(stack, all[len(all)-1].ID)
			}
			m.half(all, stack, c.recorded)
			if c.moved {
				m.git(m.dir, "merge", "-q", "--ff-only", m.request(all[0]).StackTip)
			}
			for _, n := range c.merged {
				m.setBead(all[n].BeadID, func(b *bead.Bead) { m.must(b.Become(bead.Merged, "", m.rig.Clock.Now())) })
			}
			m.restart()
			m.run()
			for _, q := range all {
				m.is(q, mergequeue.Merged, bead.Merged)
			}
			m.landed("1.txt", "2.txt", "3.txt")
			if n := runs(); n != c.runs {
				t.Errorf("%d tests, want %d", n, c.runs)
			}
			if log := m.git(m.dir, "rev-list", "--count", "main"); log != "4" {
				t.Errorf("%s commits on main", log)
			}
			if n := m.mail("mayor", mail.MergeNotification); len(n) != 3 {
				t.Errorf("notices: %q", n)
			}
			if out := m.git(m.dir, "status", "--porcelain"); out != "" {
				t.Errorf("the checkout is not clean: %s", out)
			}
		})
	}
}

// half leaves a stack as a refinery does that was killed after it recorded the
// first n requests; with none, it was testing.
func (m *mill) half(all []mergequeue.Request, stack []state.MergeID, n int) {
	m.Helper()
	work := filepath.Join(m.TempDir(), "half")
	m.git(m.dir, "worktree", "add", "-q", "--detach", work, "main")
	onto := []string{m.tip()}
	for _, q := range all {
		m.git(work, "cherry-pick", q.Head)
		onto = append(onto, m.git(work, "rev-parse", "HEAD"))
	}
	m.git(m.dir, "worktree", "remove", "--force", work)
	tip := onto[len(all)]
	for i, q := range all[:max(1, n)] {
		m.setRequest(q.ID, func(q *mergequeue.Request) {
			q.Status, q.Stage, q.Attempts, q.Tested = mergequeue.Merging, mergequeue.StageMerge, 1, true
			q.Onto, q.Candidate, q.Stack, q.StackTip = onto[i], onto[i+1], stack, tip
			if n == 0 {
				q.Stage, q.Tested = mergequeue.StageTest, false
			}
		})
	}
}

// A merge of the person's checkout that was interrupted had written files of the
// whole stack.
func TestRefineryBatchRepairsTheCheckout(t *testing.T) {
	t.Parallel()
	merge, _ := counted(t, "batch: 3")
	m := newMill(t, merge)
	m.r.Close()
	all := []mergequeue.Request{m.submit("1.txt", "x\n"), m.submit("2.txt", "x\n"), m.submit("3.txt", "x\n")}
	m.half(all, []state.MergeID{all[0].ID, all[1].ID, all[2].ID}, 3)
	m.write(m.dir, "1.txt", "x\n")
	m.write(m.dir, "3.txt", "x\n")
	m.restart()
	m.run()
	for _, q := range all {
		m.is(q, mergequeue.Merged, bead.Merged)
	}
	if out := m.git(m.dir, "status", "--porcelain"); out != "" {
		t.Errorf("the checkout is not clean: %s", out)
	}
}
