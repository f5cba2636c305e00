package view

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/chipset/view/screen"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/handoff"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// What one bead waits for, in every state it can be in.
func TestWhatABeadWaitsFor(t *testing.T) {
	f := rigtest.NewYard(t)
	f.Run("mayor")
	later := state.At(rigtest.Noon().Add(time.Minute))
	set := func(st bead.Status, change func(b *bead.Bead)) bead.Bead { return f.PutBead("gt-aaaaa", st, change) }
	for _, c := range []struct {
		arrange func()
		want    string
	}{
		{func() { set(bead.Open, nil) }, "waits for a polecat: none of the idle ones is running"},
		{func() {
			f.PutBead("gt-first", bead.Failed, nil)
			set(bead.Open, func(b *bead.Bead) { b.BlockedBy = []state.BeadID{"gt-first", "gt-none"} })
		}, "waits for gt-first (failed), gt-none (missing) to land"},
		{func() { set(bead.Open, func(b *bead.Bead) { b.ReadyAt = &later }) }, "ready again in 1m"},
		{func() { f.Run(alpha); set(bead.Open, nil) }, "assigns it on its next tick"},
		{func() { f.Hang(set(bead.Hooked, nil), hook.Pending) }, "on the hook of polecat-alpha, which is about to start"},
		{func() { f.Hang(set(bead.InProgress, nil), hook.Active) }, "polecat-alpha has been working on it for 0s, with progress 0s ago, and is running"},
		{func() { f.PutEnd(set(bead.InProgress, nil), retire.Fail, retire.Committed) }, "ended (fail) and is being finished: stage committed"},
		{func() { set(bead.Done, nil) }, "is about to submit it"},
		{func() { f.PutRequest(set(bead.Done, nil), mergequeue.Pending, nil) }, "mr-gt-aaaaa is next to land. The refinery is not running"},
		{func() {
			f.PutRequest(f.PutBead("gt-ahead", bead.Done, nil), mergequeue.Pending, func(q *mergequeue.Request) { q.Seq = 1 })
			f.PutRequest(set(bead.Done, nil), mergequeue.Pending, func(q *mergequeue.Request) { q.Seq = 9 })
		}, "waits in the queue behind 1"},
		{func() {
			f.PutRequest(set(bead.Done, nil), mergequeue.Pending, func(q *mergequeue.Request) { q.Waiting = "main is red" })
		}, "is held up (main is red)"},
		{func() {
			f.PutRequest(set(bead.Done, nil), mergequeue.Merging, func(q *mergequeue.Request) { q.Stage = mergequeue.StageTest })
		}, "is landing: stage test"},
		{func() {
			f.PutRequest(f.PutBead("gt-ahead", bead.Done, nil), mergequeue.Merging, func(q *mergequeue.Request) {
				q.Seq, q.Stage, q.Stack = 1, mergequeue.StageTest, []state.MergeID{"mr-gt-ahead", "mr-gt-aaaaa"}
			})
			f.PutRequest(set(bead.Done, nil), mergequeue.Pending, func(q *mergequeue.Request) { q.Seq = 9 })
		}, "mr-gt-aaaaa is being tested, together with mr-gt-ahead"},
		{func() {
			f.PutRequest(set(bead.Done, nil), mergequeue.Conflicted, func(q *mergequeue.Request) { q.Failure, q.Reason = mergequeue.FailTests, "two are red" })
		}, "could not land (tests_failed: two are red)"},
		{func() { f.PutRequest(set(bead.Merged, nil), mergequeue.Merged, nil) }, "It landed on main as " + f.Tip()[:10]},
		{func() { set(bead.Failed, func(b *bead.Bead) { b.CloseReason = "exit code 3" }) }, "failed (exit code 3). The mayor decides what happens next."},
		{func() { set(bead.Blocked, func(b *bead.Bead) { b.CloseReason = "which database?\nelse" }) }, "waits for you (which database?)."},
		{func() { set(bead.Closed, nil) }, "nothing to land"},
		{func() { set(bead.Cancelled, nil) }, "was cancelled"},
	} {
		c.arrange()
		s, err := Why(t.Context(), f.Rig, "gt-aaaaa")
		rigtest.Must(t, err)
		if !strings.Contains(s.Now, c.want) || !strings.HasSuffix(s.Now, ".") {
			t.Errorf("%s: %q, want %q", s.Bead.Status, s.Now, c.want)
		}
	}
}

func TestWhyTellsEverything(t *testing.T) {
	f := rigtest.NewYard(t)
	b := f.PutBead("gt-aaaaa", bead.Blocked, func(b *bead.Bead) {
		b.Assignments, b.Branch, b.Assignee, b.AssignmentID = 2, "polecat/gt-aaaaa-2", alpha, "as-two"
		b.ReworkNotes = []string{"attempt 1 failed"}
	})
	f.PutBead("gt-other", bead.Open, nil)
	one := b
	one.AssignmentID = "as-one"
	f.PutEnd(one, retire.Fail, retire.Released)
	f.PutEnd(b, retire.Block, retire.Released)
	f.PutRequest(one, mergequeue.Superseded, nil)
	_, err := f.Handoffs.Write(handoff.Handoff{AgentID: alpha, BeadID: b.ID, AssignmentID: "as-one", Summary: "half of it", Timestamp: f.At()})
	rigtest.Must(t, err)
	tip := f.Tip()
	for _, ref := range []string{"refs/heads/polecat/gt-aaaaa", "refs/heads/polecat/gt-aaaaa-2", "refs/heads/polecat/gt-aaaaa-3", "refs/heads/polecat/gt-other",
		"refs/chipset/salvage/as-one", "refs/chipset/salvage/as-one-2", "refs/chipset/salvage/as-other"} {
		f.PutRef(ref, tip)
	}
	f.Now = f.Now.Add(-time.Hour)
	name, err := f.Sender.Send(t.Context(), mail.Message{From: "mayor", To: alpha, Type: mail.Coordination, Subject: "about it", Ref: &mail.Ref{AssignmentID: "as-one"}})
	rigtest.Must(t, err)
	rigtest.Must(t, f.Mailbox(alpha).MarkRead(t.Context(), name))
	if moved, err := f.Mailbox(alpha).ArchiveOld(t.Context(), "mayor", rigtest.Noon(), false); err != nil || len(moved) != 1 {
		t.Fatal(moved, err)
	}
	_, err = mail.NewSender(f.Tree, f.Agents, f.Clock, 0).Send(t.Context(), mail.Message{From: "mayor", To: "human", Type: mail.Coordination, Subject: "no event tells of me", Ref: &mail.Ref{BeadID: b.ID}})
	rigtest.Must(t, err)
	f.Now = rigtest.Noon()
	f.Events.Tell(event.Event{Type: "bead.hooked", Bead: b.ID, Assignment: "as-zero"}, event.Event{Type: "worker.started", Assignment: "as-zero"},
		event.Event{Type: "mr.merging", Subject: "mr-gt-aaaaa"}, event.Event{Type: "bead.added", Bead: "gt-other"},
		event.Event{Type: "mail.sent", Bead: "gt-other", Assignment: "as-one"})

	s, err := Why(t.Context(), f.Rig, b.ID)
	rigtest.Must(t, err)
	var events []string
	for _, e := range s.Events {
		events = append(events, e.Type)
	}
	if got, want := strings.Join(events, " "), "mail.sent mail.handled handoff.written bead.hooked worker.started mr.merging"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	var refs []string
	for _, r := range s.Refs {
		refs = append(refs, string(r.Ref))
	}
	if got, want := strings.Join(refs, " "), "refs/chipset/salvage/as-one refs/chipset/salvage/as-one-2 refs/heads/polecat/gt-aaaaa refs/heads/polecat/gt-aaaaa-2"; got != want {
		t.Errorf("refs %s, want %s", got, want)
	}
	if len(s.Attempts) != 2 || len(s.Requests) != 1 || len(s.Handoffs) != 1 || len(s.Mail) != 2 || !(s.Mail[0].Archived || s.Mail[1].Archived) {
		t.Errorf("attempts %d, requests %d, hand-offs %d, mail %+v", len(s.Attempts), len(s.Requests), len(s.Handoffs), s.Mail)
	}
	var out strings.Builder
	rigtest.Must(t, s.WriteText(&out, screen.Options{}))
	for _, want := range []string{"gt-aaaaa  Title of gt-aaaaa\nIt waits for you", "no event tells of me", "about it", "half of it", "refs/chipset/salvage/as-one-2",
		"attempt 1 failed", "worker.started"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "about it"); n != 2 {
		t.Errorf("a message of which events tell that it was sent and handled stands there %d times", n)
	}
	data, err := state.Encode(s)
	rigtest.Must(t, err)
	if strings.Contains(string(data), ": null") {
		t.Errorf("null in %s", data)
	}
}

func TestWhyOfNothing(t *testing.T) {
	f := rigtest.NewYard(t)
	if _, err := Why(t.Context(), f.Rig, "gt-none"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
	f.Plant("state/work/gt-bad.json", "{")
	if _, err := Why(t.Context(), f.Rig, "gt-bad"); !errors.Is(err, state.ErrCorrupt) {
		t.Errorf("%v, want ErrCorrupt", err)
	}
}
