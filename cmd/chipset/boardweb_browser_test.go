package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/board/act"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// press does an act that a page offers, as a mouse would: its field is filled, its form sent.
func (p *tab) press(within, name, text string) string {
	p.Helper()
	p.until(fmt.Sprintf(`[...document.querySelectorAll(%q)].length`, within+" .act"))
	if !eval[bool](p, fmt.Sprintf(`(() => {
		const form = [...document.querySelectorAll(%q)].find((f) => f.elements.act && f.elements.act.value === %q);
		if (!form) return false;
		const details = form.closest("details");
		if (details) details.querySelector("summary").click();
		if (form.elements.text) form.elements.text.value = %q;
		form.querySelector("button").click();
		return true; })()`, within+" form", name, text)) {
		p.Fatalf("%s is not offered", name)
	}
	return p.said()
}

// TestEveryActInABrowser: each act of the board's table is done by a page, and has the effect
// of its command.
func TestEveryActInABrowser(t *testing.T) {
	b, page := newWebBoard(t), newBrowser(t)
	work, rec := rigtest.Hang(t, b.Rig, rigtest.Alpha, "Write the manual")
	me := &actor.Actor{Rig: b.Rig, ID: rigtest.Alpha, Session: rigtest.Session, Assignment: rec.AssignmentID}
	_, _, err := me.RequestPermission(t.Context(), "Bash(npm publish)", "to publish")
	b.Must(err)
	_, err = me.Ask(t.Context(), "Which licence?")
	b.Must(err)
	b.PutBead("gt-stuck", bead.Blocked, nil)
	b.PutBead("gt-open", bead.Open, nil)
	for _, id := range []state.BeadID{"gt-again", "gt-drop"} {
		b.PutRequest(b.PutBead(id, bead.Done, nil), mergequeue.Conflicted, func(q *mergequeue.Request) { q.Failure = mergequeue.FailTests })
	}
	page.enter(b.serve())
	inbox := func(word string) func() bool {
		return func() bool { return strings.Contains(b.chipset("inbox"), word) }
	}
	not := func(f func() bool) func() bool { return func() bool { return !f() } }
	status := func(id state.BeadID, want bead.Status) func() bool {
		return func() bool { got, err := b.Beads.Get(string(id)); b.Must(err); return got.Status == want }
	}
	request := func(id string, want mergequeue.Status) func() bool {
		return func() bool { got, err := b.Queue.Get(id); b.Must(err); return got.Status == want }
	}
	mailed := func(to state.AgentID, words string) func() bool {
		return func() bool {
			return slices.ContainsFunc(rigtest.Unread(t, b.Rig, to), func(e mail.Entry) bool { return strings.Contains(e.Subject+e.Body, words) })
		}
	}
	done := map[string]bool{}
	do := func(path, name, text string, was func() bool) {
		t.Helper()
		page.open(path)
		if said := page.press("main", name, text); strings.HasPrefix(said, "failed|") || !was() {
			t.Errorf("%s on %s: said %q", name, path, said)
		}
		done[name] = true
	}
	told, err := b.Sender.Send(t.Context(), mail.Message{From: rigtest.Alpha, To: state.Human, Type: mail.Coordination, Priority: mail.Normal, Subject: "Half is done", Body: "The rest follows."})
	b.Must(err)
	do("/mail/"+string(told), "reply", "in a minute", mailed(rigtest.Alpha, "in a minute"))
	do("/mail/"+string(told), "read", "", func() bool {
		return !slices.ContainsFunc(rigtest.Unread(t, b.Rig, state.Human), func(e mail.Entry) bool { return e.Name == told })
	})
	do("/", "approve", "", not(inbox("npm publish")))
	again, _, err := me.RequestPermission(t.Context(), "Bash(rm -r old)", "it is old")
	b.Must(err)
	do("/mail/"+string(again), "deny", "keep it", mailed(rigtest.Alpha, "keep it"))
	do("/", "answer", "MIT", not(inbox("Which licence?")))
	do("/bead/gt-stuck", "reopen", "", status("gt-stuck", bead.Open))
	do("/bead/gt-again", "retry", "", request("mr-gt-again", mergequeue.Pending))
	do("/bead/gt-drop", "drop", "not wanted", request("mr-gt-drop", mergequeue.Dropped))
	do("/bead/gt-open", "priority", "P1", func() bool { got, err := b.Beads.Get("gt-open"); b.Must(err); return got.Priority == bead.P1 })
	do("/bead/gt-open", "cancel", "", status("gt-open", bead.Cancelled))
	do("/agent/polecat-alpha", "mail", "Please hurry\nor not", mailed(rigtest.Alpha, "Please hurry"))
	do("/agent/polecat-alpha", "nudge", "look here", func() bool { return strings.Contains(b.chipset("nudge", "show", "polecat-alpha"), "look here") })
	do("/bead/"+string(work.ID), "stop", "", not(status(work.ID, bead.InProgress)))
	for _, a := range act.All() {
		if !done[a.Name] {
			t.Errorf("%s is not tried", a.Name)
		}
	}
}
