package view

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/permission"
	"github.com/gastown-chipset/chipset/state/retire"
)

// lines are the needs of a rig: kind, what, why, and the first command.
func lines(t *testing.T, f *rigtest.Yard) []string {
	t.Helper()
	needs, err := Needs(t.Context(), f.Rig)
	rigtest.Must(t, err)
	var all []string
	for i := range needs {
		n := &needs[i]
		all = append(all, fmt.Sprintf("%d %s | %s", n.Number, n.Line(), n.Commands[0]))
	}
	return all
}

func wantLines(t *testing.T, f *rigtest.Yard, when string, want ...string) {
	t.Helper()
	if got := lines(t, f); !slices.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", when, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// atWork is polecat-alpha at work on a bead.
func atWork(f *rigtest.Yard) *actor.Actor {
	b := f.PutBead("gt-work", bead.InProgress, nil)
	f.Hang(b, hook.Active)
	return &actor.Actor{Rig: f.Rig, ID: alpha, Session: "ses-1", Assignment: b.AssignmentID}
}

// find is a message of the person.
func find(t *testing.T, f *rigtest.Yard, name mail.Name) *mail.Entry {
	t.Helper()
	e, err := f.Mailbox(state.Human).Get(name)
	rigtest.Must(t, err)
	return &e
}

// TestNeedsComeAndGoWithTheirCauses: each kind of need, by what makes it and by what
// ends it. Read flags say nothing.
func TestNeedsComeAndGoWithTheirCauses(t *testing.T) {
	later := state.At(rigtest.Noon())
	for name, c := range map[string]struct {
		cause func(f *rigtest.Yard) (end func())
		want  string
	}{
		"permission": {func(f *rigtest.Yard) func() {
			n, _, err := atWork(f).RequestPermission(t.Context(), "Bash(npm publish)", "a release")
			rigtest.Must(t, err)
			rigtest.Must(t, f.Mailbox(state.Human).MarkRead(t.Context(), n))
			return func() {
				me := &actor.Actor{Rig: f.Rig, ID: state.Human}
				_, err := me.Decide(t.Context(), find(t, f, n), actor.Decision{Approved: true})
				rigtest.Must(t, err)
			}
		}, "1 permission  polecat-alpha asks for Bash(npm publish): a release | chipset approve 1"},
		"read and archived permission": {func(f *rigtest.Yard) func() {
			n, _, err := atWork(f).RequestPermission(t.Context(), "Write(x)", "")
			rigtest.Must(t, err)
			rigtest.Must(t, f.Mailbox(state.Human).MarkRead(t.Context(), n))
			moved, err := f.Mailbox(state.Human).ArchiveOld(t.Context(), "mayor", f.Now.Add(time.Hour), false)
			if err != nil || len(moved) != 1 {
				t.Fatal(moved, err)
			}
			return func() { f.PutEnd(f.PutBead("gt-work", bead.InProgress, nil), retire.Fail, retire.Published) }
		}, "1 permission  polecat-alpha asks for Write(x) | chipset approve 1"},
		"plan that the mayor has not passed on": {func(f *rigtest.Yard) func() {
			_, err := atWork(f).RequestPlan(t.Context(), "first this\nthen that")
			rigtest.Must(t, err)
			return func() { f.Hang(f.PutBead("gt-other", bead.InProgress, nil), hook.Active) }
		}, "1 plan  polecat-alpha asks you to approve its plan: first this: then that | chipset approve 1"},
		"question": {func(f *rigtest.Yard) func() {
			n, err := atWork(f).Ask(t.Context(), "Which licence?")
			rigtest.Must(t, err)
			return func() {
				me := &actor.Actor{Rig: f.Rig, ID: state.Human}
				_, err := me.Reply(t.Context(), find(t, f, n), actor.Answer{Body: "MIT"})
				rigtest.Must(t, err)
			}
		}, "1 question  polecat-alpha asks: Which licence? | chipset answer 1 TEXT"},
		"plan of the crew": {func(f *rigtest.Yard) func() {
			rigtest.Must(t, f.Agents.Put("crew-ann", agent.Agent{ID: "crew-ann", Role: agent.Crew, Status: agent.Idle, CreatedAt: f.At(), UpdatedAt: f.At()}))
			n, err := f.Sender.Send(t.Context(), mail.Message{From: "crew-ann", To: state.Human, Type: mail.PlanRequest, Subject: "plan", Body: "tidy up"})
			rigtest.Must(t, err)
			return func() {
				me := &actor.Actor{Rig: f.Rig, ID: state.Human}
				_, err := me.Decide(t.Context(), find(t, f, n), actor.Decision{Reason: "no"})
				rigtest.Must(t, err)
			}
		}, "1 plan  crew-ann asks you to approve its plan: tidy up | chipset approve 1"},
		"refused host": {func(f *rigtest.Yard) func() {
			r := permission.Rule{By: "polecat-alpha", Reason: "the worker of gt-a", CreatedAt: f.At()}
			for range 2 {
				_, err := f.Permissions.AskForHost(t.Context(), "registry.example.org", r)
				rigtest.Must(t, err)
			}
			return func() {
				me := &actor.Actor{Rig: f.Rig, ID: state.Human}
				_, err := me.DecideHost(t.Context(), permission.IDOf("Network(registry.example.org)", ""), actor.Decision{Approved: true})
				rigtest.Must(t, err)
			}
		}, "1 host  the worker of gt-a wanted to connect to registry.example.org: network.allow in chipset.yaml does not list it | chipset approve 1"},
		"blocked": {func(f *rigtest.Yard) func() {
			f.PutBead("gt-stop", bead.Blocked, func(b *bead.Bead) { b.CloseReason = "which database?\nmore" })
			return func() { f.PutBead("gt-stop", bead.Open, nil) }
		}, "1 blocked  gt-stop Title of gt-stop: which database? | chipset reopen 1"},
		"checkout in the way": {func(f *rigtest.Yard) func() {
			b := f.PutBead("gt-done", bead.Done, nil)
			f.PutRequest(b, mergequeue.Pending, func(q *mergequeue.Request) { q.Waiting = "local changes in a.txt are in the way" })
			return func() { f.PutRequest(b, mergequeue.Merging, nil) }
		}, "1 landing  gt-done can't land: local changes in a.txt are in the way | chipset queue retry mr-gt-done"},
		"damaged bead": {func(f *rigtest.Yard) func() {
			f.Plant("state/work/gt-bad.json", "{")
			return func() { f.PutBead("gt-bad", bead.Open, nil) }
		}, "1 damage  can't read state/work/gt-bad.json: not valid JSON: unexpected end of JSON input | chipset doctor --fix"},
		"two damaged records": {func(f *rigtest.Yard) func() {
			f.Plant("state/work/gt-bad.json", "{")
			f.Plant("state/work/gt-bad2.json", "{")
			return func() {
				f.PutBead("gt-bad", bead.Open, nil)
				f.PutBead("gt-bad2", bead.Open, nil)
			}
		}, "1 damage  can't read state/work/gt-bad.json and 1 more: not valid JSON: unexpected end of JSON input | chipset doctor --fix"},
		"critical incident": {func(f *rigtest.Yard) func() {
			i := incident.Incident{ID: "in-1", AgentID: "witness", Kind: incident.DiskLow, Severity: incident.Critical, OpenedAt: f.At(), Detail: "1% left"}
			rigtest.Must(t, f.Incidents.Put("in-1", i))
			return func() { i.ResolvedAt = &later; rigtest.Must(t, f.Incidents.Put("in-1", i)) }
		}, "1 incident  witness: disk low: 1% left | chipset status --health"},
	} {
		t.Run(name, func(t *testing.T) {
			f := rigtest.NewYard(t)
			end := c.cause(f)
			wantLines(t, f, "while its cause lasts", c.want)
			end()
			wantLines(t, f, "after its cause")
		})
	}
}

// TestWhatIsNoNeed: housekeeping, other people's business, what goes on by itself.
func TestWhatIsNoNeed(t *testing.T) {
	f := rigtest.NewYard(t)
	me := atWork(f)
	send := func(m mail.Message) {
		_, err := f.Sender.Send(t.Context(), m)
		rigtest.Must(t, err)
	}
	for _, kind := range []mail.Type{mail.Coordination, mail.CompletionReport, mail.IdleNotification, mail.ShutdownResponse, mail.HealthEscalation} {
		send(mail.Message{From: alpha, To: state.Human, Type: kind, Subject: "done?", Ref: &mail.Ref{AssignmentID: me.Assignment}})
	}
	// A request about an assignment that is over, and one that the agent's peer got.
	send(mail.Message{From: alpha, To: state.Human, Type: mail.PermissionRequest, Subject: "s", Ref: &mail.Ref{AssignmentID: "as-old"}})
	send(mail.Message{From: alpha, To: bravo, Type: mail.PlanRequest, Subject: "s", Ref: &mail.Ref{AssignmentID: me.Assignment}})
	f.PutBead("gt-fail", bead.Failed, nil)
	f.PutRequest(f.PutBead("gt-done", bead.Done, nil), mergequeue.Conflicted, func(q *mergequeue.Request) { q.Failure = mergequeue.FailConflict })
	rigtest.Must(t, f.Incidents.Put("in-1", incident.Incident{ID: "in-1", AgentID: alpha, Kind: incident.Stalled, Severity: incident.Alert, OpenedAt: f.At()}))
	wantLines(t, f, "nothing asks for the person")
}

// TestNeedsKeepTheirNumbers: answering one does not move the others, and a new cause of
// the same kind is a new need.
func TestNeedsKeepTheirNumbers(t *testing.T) {
	f := rigtest.NewYard(t)
	block := func(id state.BeadID, as state.AssignmentID) {
		f.PutBead(id, bead.Blocked, func(b *bead.Bead) { b.CloseReason, b.AssignmentID = "why", as })
	}
	for i, id := range []state.BeadID{"gt-c", "gt-a", "gt-b"} {
		f.Now = rigtest.Noon().Add(time.Duration(i) * time.Minute)
		block(id, "as-1")
	}
	line := func(n int, id string) string {
		return fmt.Sprintf("%d blocked  %s Title of %s: why | chipset reopen %d", n, id, id, n)
	}
	wantLines(t, f, "three", line(1, "gt-c"), line(2, "gt-a"), line(3, "gt-b"))
	f.PutBead("gt-c", bead.Open, nil)
	wantLines(t, f, "one is reopened", line(2, "gt-a"), line(3, "gt-b"))
	block("gt-c", "as-2")
	wantLines(t, f, "it is blocked again", line(2, "gt-a"), line(3, "gt-b"), line(4, "gt-c"))
}

// TestWhoWaitsBehind: beads that depend on the one that waits, and requests in the queue.
func TestWhoWaitsBehind(t *testing.T) {
	f := rigtest.NewYard(t)
	f.PutBead("gt-stop", bead.Blocked, nil)
	behind := func(id state.BeadID, st bead.Status, on ...state.BeadID) {
		f.PutBead(id, st, func(b *bead.Bead) { b.BlockedBy = on })
	}
	behind("gt-one", bead.Open, "gt-stop")
	behind("gt-two", bead.Open, "gt-one", "gt-stop")
	behind("gt-gone", bead.Cancelled, "gt-stop")
	behind("gt-free", bead.Open)
	done := f.PutBead("gt-done", bead.Done, nil)
	f.PutRequest(done, mergequeue.Pending, func(q *mergequeue.Request) { q.Waiting = "the tip is red" })
	f.PutRequest(f.PutBead("gt-next", bead.Done, nil), mergequeue.Pending, nil)
	behind("gt-last", bead.Open, "gt-next")
	needs, err := Needs(t.Context(), f.Rig)
	rigtest.Must(t, err)
	got := map[NeedKind][]state.BeadID{}
	for _, n := range needs {
		got[n.Kind] = n.Behind
	}
	if want := []state.BeadID{"gt-one", "gt-two"}; !slices.Equal(got[NeedBlocked], want) {
		t.Errorf("behind the blocked bead %v, want %v", got[NeedBlocked], want)
	}
	if want := []state.BeadID{"gt-last", "gt-next"}; !slices.Equal(got[NeedLanding], want) {
		t.Errorf("behind the request %v, want %v", got[NeedLanding], want)
	}
	s, err := Why(t.Context(), f.Rig, "gt-two")
	if err != nil || len(s.Needs) != 1 || s.Needs[0].BeadID != "gt-stop" {
		t.Errorf("why tells %+v, %v", s.Needs, err)
	}
}

// TestNeedsAsText: what agents write reaches the terminal as text alone, and lists are
// bounded.
func TestNeedsAsText(t *testing.T) {
	f := rigtest.NewYard(t)
	_, err := atWork(f).Ask(t.Context(), "Which \x1b[2Jone\u202e?\nthe red\x07 one?")
	rigtest.Must(t, err)
	f.PutBead("gt-stop", bead.Blocked, func(b *bead.Bead) { b.Title, b.CloseReason = "a \x1b]0;title\u2066", "line\r\x1b[1A one" })
	f.PutBead("gt-wait", bead.Open, func(b *bead.Bead) { b.BlockedBy = []state.BeadID{"gt-stop"} })
	f.Now = f.Now.Add(90 * time.Second)
	needs, err := Needs(t.Context(), f.Rig)
	rigtest.Must(t, err)
	var out strings.Builder
	rigtest.Must(t, WriteNeeds(&out, needs, f.At(), screen.Options{}))
	for _, want := range []string{" 1  question  polecat-alpha asks: Which [2Jone?", "the red one?", "polecat-alpha waits with gt-work, for 1m",
		"chipset answer 1 TEXT, or chipset mail peek 20", "gt-stop, for 1m, 1 bead behind it: gt-wait"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for i := range 20 {
		f.PutBead(state.BeadID(fmt.Sprintf("gt-b%02d", i)), bead.Blocked, nil)
	}
	s, err := GetStatus(t.Context(), f.Rig)
	rigtest.Must(t, err)
	rigtest.Must(t, s.WriteText(&out, screen.Options{}))
	if !strings.Contains(out.String(), "17 more: chipset inbox") || strings.Index(out.String(), "Needs you") > strings.Index(out.String(), "Agents") {
		t.Errorf("status:\n%s", out.String())
	}
	for _, no := range []string{"\x1b", "\x07", "\u202e", "\u2066", "\r"} {
		if strings.Contains(out.String(), no) {
			t.Errorf("%q in\n%q", no, out.String())
		}
	}
	data, err := json.Marshal(needs)
	if err != nil || strings.Contains(string(data), "null") {
		t.Errorf("json %s, %v", data, err)
	}
}

// BenchmarkNeeds is a rig of 10,000 beads whose person has 1,000 unread messages.
func BenchmarkNeeds(b *testing.B) {
	r := rigtest.New(b, "")
	at := r.Clock.Now()
	for i := range 10_000 {
		id := state.BeadID(fmt.Sprintf("tt-%05d", i))
		w := bead.Bead{ID: id, Title: "a bead", Status: bead.Merged, Priority: bead.P2, CreatedAt: at, UpdatedAt: at, ClosedAt: &at, Gen: 1}
		switch i % 10 {
		case 0:
			w.Status, w.ClosedAt = bead.Open, nil
			w.BlockedBy = []state.BeadID{state.BeadID(fmt.Sprintf("tt-%05d", (i+9_990)%10_000))}
		case 1:
			if i < 1000 {
				w.Status, w.ClosedAt = bead.Blocked, nil
			}
		}
		rigtest.Must(b, r.Beads.Put(string(id), w))
	}
	var ms []mail.Message
	for i := range 1000 {
		ms = append(ms, mail.Message{From: "mayor", To: state.Human, Type: mail.Coordination, Priority: mail.Normal, Subject: fmt.Sprint("report ", i), Body: "all is well"})
	}
	_, errs := r.Sender.SendAll(b.Context(), ms)
	for _, err := range errs {
		rigtest.Must(b, err)
	}
	rigtest.Hang(b, r, alpha, "at work")
	for b.Loop() {
		needs, err := Needs(b.Context(), r)
		if err != nil || len(needs) != 100 {
			b.Fatal(len(needs), err)
		}
	}
}
