package execute

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// held is the request, which waits for the person's word.
func (m *mill) held(q mergequeue.Request) mergequeue.Request {
	m.Helper()
	m.is(q, mergequeue.Pending, bead.Done)
	now, err := m.rig.Queue.Get(string(q.ID))
	m.must(err)
	if !now.IsHeld() {
		m.Fatalf("%s is not held: %+v", q.ID, now)
	}
	return now
}

// A change of protected files waits for the person's word, in a stack and alone. Others pass it. The word is about
// that very content: what the target holds by then, and what a rebase makes of it, count.
func TestRefineryProtectedFiles(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: test ! -f bad.txt\nbatch: 3")
	first := m.submit("one.txt", "1\n")
	q := m.submit(".Claude/settings.json", "{}\n", "sub/.gitattributes", "*\n", "two.txt", "2\n")
	other := m.submit("three.txt", "3\n")
	m.run()
	m.is(first, mergequeue.Merged, bead.Merged)
	m.is(other, mergequeue.Merged, bead.Merged)
	h := m.held(q).Held
	if got := strings.Join(h.Paths, " "); got != ".Claude/settings.json sub/.gitattributes" || h.Count != 2 || !strings.Contains(h.Stat, "2 files changed") {
		t.Errorf("held for %+v", h)
	}
	m.restart()
	m.run()
	m.held(q)

	// The target gets other content there: what was allowed is another change by then.
	allow := func(change string) error {
		_, err := carry.Allow(m.ctx, m.rig, q.ID, change)
		return err
	}
	if err := allow("another"); !errors.Is(err, state.ErrConflict) {
		t.Errorf("another change is allowed: %v", err)
	}
	m.must(allow(h.Change))
	m.write(m.dir, "sub/.gitattributes", "*\n")
	m.git(m.dir, "add", "-A")
	m.git(m.dir, "commit", "-q", "-m", "the person's own")
	m.run()
	again := m.held(q).Held
	if again.Change == h.Change || again.Count != 1 {
		t.Errorf("the same change: %+v", again)
	}
	m.must(allow(again.Change))
	m.run()
	m.is(q, mergequeue.Merged, bead.Merged)
}

// The folder that core.hooksPath names is protected as well, unless nothing is.
func TestRefineryProtectsHooks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		protect string
		held    bool
	}{"the default": {"", true}, "a list": {"\nprotect: [secret/]", true}, "nothing": {"\nprotect: []", false}} {
		m := newMill(t, "test: \"true\""+c.protect)
		m.git(m.dir, "config", "core.hooksPath", "tools/hooks")
		m.restart()
		q := m.submit("tools/hooks/pre-commit", "#!/bin/sh\n")
		m.run()
		if c.held {
			if got := m.held(q).Held.Paths; !slices.Equal(got, []string{"tools/hooks/pre-commit"}) {
				t.Errorf("%s: held for %v", name, got)
			}
		} else {
			m.is(q, mergequeue.Merged, bead.Merged)
		}
	}
}

// What the person does not let land is worked on again, with the reason and without a charge.
func TestRefineryProtectedFilesDenied(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: \"true\"\nprotect: [secret/]")
	free := m.submit(".gitattributes", "* text\n")
	q := m.submit("secret/key", "1\n")
	m.run()
	m.is(free, mergequeue.Merged, bead.Merged)
	m.held(q)
	m.must(carry.Deny(m.ctx, m.rig, q.ID, "leave the key alone", state.Human))
	m.is(q, mergequeue.Superseded, bead.Open)
	b, err := m.rig.Beads.Get(string(q.BeadID))
	m.must(err)
	if len(b.ReworkNotes) != 1 || !strings.Contains(b.ReworkNotes[0], "leave the key alone") || b.Attempts+b.Conflicts != 0 {
		t.Errorf("%+v", b)
	}
	if err := carry.Deny(m.ctx, m.rig, q.ID, "again", state.Human); err == nil {
		t.Error("it is denied twice")
	}
}

// What a hold is about is the whole change: what the person allowed covers no other mode, content or place.
func TestHoldNamesTheWholeChange(t *testing.T) {
	change := func(edit func(c *git.Change)) string {
		c := git.Change{Path: ".envrc", Old: git.Entry{Mode: "100644", Hash: "1"}, New: git.Entry{Mode: "100644", Hash: "2"}}
		edit(&c)
		return holdOf([]git.Change{c}, "onto", "candidate").Change
	}
	same := change(func(*git.Change) {})
	for name, edit := range map[string]func(c *git.Change){
		"path":        func(c *git.Change) { c.Path = ".env" },
		"mode before": func(c *git.Change) { c.Old.Mode = "120000" },
		"before":      func(c *git.Change) { c.Old.Hash = "3" },
		"mode":        func(c *git.Change) { c.New.Mode = "100755" },
		"content":     func(c *git.Change) { c.New.Hash = "3" },
	} {
		if change(edit) == same {
			t.Errorf("another %s is the same change", name)
		}
	}
	if h := holdOf(nil, "onto", "candidate"); h != nil {
		t.Errorf("nothing is held: %+v", h)
	}
}
