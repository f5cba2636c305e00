package execute

import (
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// commitOn makes a commit on top of another without a checkout, and no branch holds it.
func (m *mill) commitOn(parent string) string {
	m.Helper()
	return m.git(m.dir, "commit-tree", "-m", "never tested", "-p", parent, parent+"^{tree}")
}

// The person is told once that somebody moved the target with git's own commands. What the rig, a checkout or a remote brought is not reported.
func TestRefineryTellsWhoMovedTheTarget(t *testing.T) {
	t.Parallel()
	set := func(m *mill, ref, to string) { m.git(m.dir, "update-ref", ref, to) }
	// down does something while no refinery runs.
	down := func(m *mill, do func()) {
		m.r.Close()
		m.r = nil
		do()
		m.restart()
	}
	for name, c := range map[string]struct {
		move func(m *mill, tip string)
		told string // what the letter says, "" for none
	}{
		"forward": {func(m *mill, tip string) { set(m, "refs/heads/main", m.commitOn(tip)) }, "never tested (Person)"},
		"aside":   {func(m *mill, tip string) { set(m, "refs/heads/main", m.commitOn(m.git(m.dir, "rev-parse", tip+"^"))) }, "What it held before is not part of it any more"},
		"while no refinery runs": {func(m *mill, tip string) {
			down(m, func() { set(m, "refs/heads/main", m.commitOn(tip)) })
		}, "never tested (Person)"},
		"after a landing": {func(m *mill, _ string) {
			m.submit("one.txt", "1\n")
			m.run()
			m.later(2 * guardTime)
			down(m, func() { set(m, "refs/heads/main", m.commitOn(m.tip())) })
		}, "never tested (Person)"},
		"a person commits": {func(m *mill, _ string) { m.commit(m.dir, "mine.txt") }, ""},
		"a person commits while no refinery runs": {func(m *mill, _ string) {
			down(m, func() { m.commit(m.dir, "mine.txt") })
		}, ""},
		"a remote brought it": {func(m *mill, tip string) {
			theirs := m.commitOn(tip)
			set(m, "refs/remotes/origin/main", theirs)
			set(m, "refs/heads/main", theirs)
		}, ""},
		"the rig landed it": {func(m *mill, _ string) {
			m.git(m.dir, "checkout", "-q", "--detach") // so that no reflog of a checkout tells
			m.submit("one.txt", "1\n")
			m.run()
			m.later(2 * guardTime)
			m.tick()
			down(m, func() {})
		}, ""},
		"another target": {func(m *mill, tip string) {
			set(m, "refs/heads/release", m.commitOn(tip))
			m.rig.Def.Merge.Target = "release"
		}, ""},
		"another target at the start": {func(m *mill, tip string) {
			down(m, func() {
				set(m, "refs/heads/release", m.commitOn(tip))
				m.rig.Def.Merge.Target = "release"
			})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMill(t, "target: main\ntest: \"true\"")
			m.commit(m.dir, "second.txt")
			m.tick()
			m.later(1) // what lands now is newer than what is known
			before := m.tip()
			c.move(m, before)
			m.tick()
			m.tick()
			m.restart()
			m.tick()
			want := 0
			if c.told != "" {
				want = 1
				letters, _, err := m.rig.Mailbox(state.Human).List()
				m.must(err)
				if name == "after a landing" {
					before = m.git(m.dir, "rev-parse", "main^")
				}
				if len(letters) != 1 || letters[0].Type != mail.Coordination || !strings.HasPrefix(letters[0].Body, "main was at "+before[:10]+" ") ||
					!strings.Contains(letters[0].Body, c.told) {
					t.Errorf("letters: %+v", letters)
				}
			}
			if n := strings.Count(strings.Join(m.said, "\n"), "told human: "); n != want {
				t.Errorf("told %d times, want %d: %q", n, want, m.said)
			}
		})
	}
}

// A worker may move the target before the refinery's first look. What it held when the roles began is known by then.
func TestTargetIsKnownBeforeWorkersStart(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	m.git(m.dir, "pack-refs", "--all")
	m.git(m.dir, "update-ref", "refs/heads/main", m.commitOn(m.tip()))
	m.tick()
	if n := strings.Count(strings.Join(m.said, "\n"), "told human: "); n != 1 {
		t.Errorf("told %d times: %q", n, m.said)
	}
	k := newKennel(t, "")
	var known knownTip
	if err := k.rig.Tree.ReadJSON(tipRecord, &known); err != nil || string(known.Tip) != k.git("rev-parse", "main") {
		t.Errorf("a polecat begins, and %+v is known: %v", known, err)
	}
}

// What can't be recorded is not known.
func TestRefineryRemembersWhatIsRecorded(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	m.tick()
	before := m.r.known
	m.spoilt(state.RunDir, func() {
		if err := m.r.knowTip("main", "ab"); err == nil || m.r.known != before {
			t.Errorf("%v: %+v", err, m.r.known)
		}
	})
}

// What the rig put on the target, or was just about to, it knows, whatever else tells.
func TestRefineryKnowsItsOwnTips(t *testing.T) {
	t.Parallel()
	m := newMill(t, `test: "true"`)
	m.submit("one.txt", "1\n")
	m.run()
	m.r.last = &landing{from: "aa", to: "bb"}
	queue := []mergequeue.Request{{ID: "mr-1", Candidate: "cc"}, {ID: "mr-2", Candidate: "dd", StackTip: "ee"}, {ID: "mr-3", MergedSHA: "ff"}}
	for tip, want := range map[string]bool{"aa": true, "bb": true, "cc": true, "ee": true, "ff": true, m.tip(): true, "00": false} {
		if got := m.r.landedByUs(git.Hash(tip), queue); got != want {
			t.Errorf("%s: %t", tip, got)
		}
	}
	m.r.last = nil
}
