package execute

import (
	"testing"

	"github.com/gastown-chipset/chipset/state"
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
		before := m.tip()
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
	})
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
