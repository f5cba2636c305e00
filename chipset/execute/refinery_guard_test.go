package execute

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// takeBack does what git reset --hard does when it resolved HEAD before the landing.
func (m *mill) takeBack(before string) {
	m.Helper()
	m.git(m.dir, "read-tree", "--reset", "-u", before)
	m.git(m.dir, "update-ref", "-m", "reset: moving to HEAD", "refs/heads/main", before)
}

// TestRefineryGuardsItsLanding lets the two races of a person's git happen
// that take effect after an advance.
func TestRefineryGuardsItsLanding(t *testing.T) {
	t.Parallel()
	t.Run("a stash takes the target back", func(t *testing.T) {
		t.Parallel()
		m := newMill(t, `test: "true"`)
		before, told := m.tip(), false
		m.submit("one.txt", "1\n")
		m.run()
		landed := m.tip()
		m.takeBack(before)
		m.tick()
		if m.tip() != landed {
			t.Errorf("main is at %s, want %s", m.tip(), landed)
		}
		if out := m.git(m.dir, "status", "--porcelain"); out != "" {
			t.Errorf("the checkout is not clean: %s", out)
		}
		for _, e := range m.events() {
			told = told || strings.Contains(e.Text, "had taken main back")
		}
		if !told {
			t.Errorf("the log does not tell: %q", m.story())
		}
	})
	t.Run("a person's own reset stays", func(t *testing.T) {
		t.Parallel()
		m := newMill(t, `test: "true"`)
		before := m.tip()
		m.submit("one.txt", "1\n")
		m.run()
		m.git(m.dir, "reset", "--hard", "-q", before)
		m.tick()
		if m.tip() != before {
			t.Errorf("the refinery overruled the person: main is at %s", m.tip())
		}
	})
	t.Run("a switch is overtaken", func(t *testing.T) {
		t.Parallel()
		m := newMill(t, `test: "true"`)
		m.git(m.dir, "switch", "-q", "-c", "elsewhere")
		m.submit("one.txt", "1\n")
		m.run()
		m.tick()
		// The switch had filled the checkout before the landing, and says now
		// that main is checked out.
		m.git(m.dir, "symbolic-ref", "HEAD", "refs/heads/main")
		if out := m.git(m.dir, "status", "--porcelain"); out == "" {
			t.Fatal("the scene is not what it should be")
		}
		m.tick()
		if out := m.git(m.dir, "status", "--porcelain"); out != "" {
			t.Errorf("the checkout was left behind: %s", out)
		}
		m.revert()
	})
	t.Run("a switch is overtaken, and the refinery restarts", func(t *testing.T) {
		t.Parallel()
		m := newMill(t, `test: "true"`)
		m.git(m.dir, "switch", "-q", "-c", "elsewhere")
		m.submit("one.txt", "1\n")
		m.run()
		m.r.Close()
		m.r = nil
		m.git(m.dir, "symbolic-ref", "HEAD", "refs/heads/main")
		m.restart()
		m.tick()
		if out := m.git(m.dir, "status", "--porcelain"); out != "" {
			t.Errorf("the checkout was left behind: %s", out)
		}
	})
	t.Run("a switch is overtaken, and the person edits", func(t *testing.T) {
		t.Parallel()
		m := newMill(t, `test: "true"`)
		m.git(m.dir, "switch", "-q", "-c", "elsewhere")
		m.submit("one.txt", "1\n")
		m.run()
		m.git(m.dir, "symbolic-ref", "HEAD", "refs/heads/main")
		m.write(m.dir, "one.txt", "mine\n")
		if _, err := m.r.Tick(m.ctx); err == nil {
			t.Error("it can't follow, and says nothing")
		}
		if text, err := os.ReadFile(filepath.Join(m.dir, "one.txt")); err != nil || string(text) != "mine\n" {
			t.Errorf("the person's file: %q, %v", text, err)
		}
	})
	t.Run("a person reverts", func(t *testing.T) {
		t.Parallel()
		m := newMill(t, `test: "true"`)
		m.submit("one.txt", "1\n")
		m.run()
		m.revert()
	})
	t.Run("a person reverts long after a switch", func(t *testing.T) {
		t.Parallel()
		m := newMill(t, `test: "true"`)
		m.git(m.dir, "switch", "-q", "-c", "elsewhere")
		m.submit("one.txt", "1\n")
		m.run()
		m.later(2 * guardBusy)
		m.tick()
		m.git(m.dir, "switch", "-q", "main")
		m.revert()
	})
	for _, d := range []time.Duration{guardTime + time.Second, -time.Second} {
		t.Run("a landing of "+d.String()+" ago", func(t *testing.T) {
			t.Parallel()
			m := newMill(t, `test: "true"`)
			before := m.tip()
			m.submit("one.txt", "1\n")
			m.run()
			m.later(d)
			m.takeBack(before)
			m.tick()
			m.stillAt(before)
		})
	}
	t.Run("what a branch that lagged behind had", func(t *testing.T) {
		t.Parallel()
		m, _, clone := withRemote(t, `test: "true"`)
		before := m.tip()
		m.commit(clone, "theirs.txt")
		m.git(clone, "push", "-q", "origin", "main")
		q := m.submit("one.txt", "1\n")
		m.run()
		m.is(q, mergequeue.Merged, bead.Merged)
		landed := m.tip()
		m.takeBack(before)
		m.tick()
		m.stillAt(landed)
	})
}

// revert does what a person does who takes a landing back: the refinery leaves it as it is.
func (m *mill) revert() {
	m.Helper()
	m.git(m.dir, "restore", "--source=HEAD^", "--staged", "--worktree", ":/")
	staged := m.git(m.dir, "status", "--porcelain")
	m.tick()
	if got := m.git(m.dir, "status", "--porcelain"); staged == "" || got != staged {
		m.Errorf("what the person has staged: %q, was %q", got, staged)
	}
}

// TestStackBase: what a stack began on is told by its own first request, not by one that landed another time.
func TestStackBase(t *testing.T) {
	t.Parallel()
	stack := []state.MergeID{"mr-1", "mr-2"}
	first := mergequeue.Request{ID: "mr-1", Onto: "a", Stack: stack, StackTip: "c"}
	last := mergequeue.Request{ID: "mr-2", Onto: "b", Stack: stack, StackTip: "c"}
	alone := mergequeue.Request{ID: "mr-1", Onto: "x"}
	other := mergequeue.Request{ID: "mr-0", Onto: "y", StackTip: "c"}
	for _, c := range []struct {
		all  []mergequeue.Request
		of   mergequeue.Request
		want string
	}{
		{[]mergequeue.Request{other, first, last}, last, "a"},
		{[]mergequeue.Request{alone, last}, last, "b"},
		{[]mergequeue.Request{other, last}, last, "b"},
		{[]mergequeue.Request{first, alone}, alone, "x"},
	} {
		if got := stackBase(c.all, &c.of); got != c.want {
			t.Errorf("of %+v among %+v: %q, want %q", c.of, c.all, got, c.want)
		}
	}
}
