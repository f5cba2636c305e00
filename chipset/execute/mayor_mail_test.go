package execute

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// A message is not marked read before what it asks for is durable.
func TestMayorKeepsMailWhoseEffectFailed(t *testing.T) {
	h := newTownHall(t, "")
	_, err := h.rig.Sender.Send(t.Context(), mail.Message{From: alpha, To: "mayor", Type: mail.PermissionRequest, Subject: "may I?", Body: "rm x"})
	h.must(err)
	box := h.rig.Tree.Abs(h.rig.Mailbox(state.Human).Dir())
	h.must(os.MkdirAll(filepath.Dir(box), 0o755))
	h.must(os.WriteFile(box, nil, 0o644)) // the person's mailbox is not a folder
	h.tick()
	if h.unread() != 1 {
		t.Fatal("the question was marked read, but never forwarded")
	}
	h.must(os.Remove(box))
	h.tick()
	h.tick()
	if asked := h.mail(state.Human, mail.PermissionRequest); len(asked) != 1 || h.unread() != 0 || !strings.Contains(asked[0].Subject, "may I?") {
		t.Errorf("forwarded %+v, %d unread", asked, h.unread())
	}
	// The person's answer finds back.
	asked := h.mail(state.Human, mail.PermissionRequest)[0]
	_, err = h.rig.Sender.Send(t.Context(), mail.Message{From: state.Human, To: "mayor", Type: mail.PermissionResponse, Subject: "yes", Body: "do",
		Thread: asked.Thread, InReplyTo: string(asked.Name)})
	h.must(err)
	h.tick()
	if answer := h.mail(alpha, mail.PermissionResponse); len(answer) != 1 || answer[0].Subject != "yes" {
		t.Errorf("answer %+v", answer)
	}
}

// What others wrote is made fit to be quoted, and who can't be answered is let be.
func TestMayorQuotesAnything(t *testing.T) {
	h := newTownHall(t, "mail: {max_size: 2KiB}\n")
	dir := h.rig.Tree.Abs(h.rig.Mailbox("mayor").Dir())
	h.must(os.MkdirAll(dir, 0o755))
	write := func(second int, from string, m map[string]any) {
		at := fmt.Sprintf("2026-03-05T10-30-%02dZ", second)
		m["from"], m["to"], m["timestamp"], m["read"], m["priority"] = from, "mayor", fmt.Sprintf("2026-03-05T10:30:%02dZ", second), false, "normal"
		data, err := json.Marshal(m)
		h.must(err)
		h.must(os.WriteFile(filepath.Join(dir, at+"-"+from+".json"), data, 0o644))
	}
	write(1, "polecat-alpha", map[string]any{"type": "permission_request", "subject": "two\nlines\u0000", "body": strings.Repeat("\u0001", 5000)})
	write(2, "polecat-alpha", map[string]any{"type": "plan_approval_request", "subject": "", "body": strings.Repeat("x", 2000)})
	write(3, "nobody-here", map[string]any{"type": "shutdown_request", "subject": "end", "body": ""})
	write(4, "witness", map[string]any{"type": "health_escalation", "subject": "odd", "body": "", "metadata": []int{1}})
	next := h.tick()
	if h.unread() != 0 || next.Finished { // who is nobody can't end the mayor either
		t.Errorf("%d unread, finished %v", h.unread(), next.Finished)
	}
	if q, p := h.mail(state.Human, mail.PermissionRequest), h.mail(state.Human, mail.PlanRequest); len(q) != 1 || len(p) != 1 {
		t.Errorf("%d and %d questions forwarded", len(q), len(p))
	}
}

func TestMayorShutdown(t *testing.T) {
	h := newTownHall(t, "")
	send := func(session state.SessionID) {
		_, err := h.rig.Sender.Send(t.Context(), mail.Message{From: state.Human, To: "mayor", Type: mail.ShutdownRequest, Subject: "end", Ref: &mail.Ref{Session: session}})
		h.must(err)
	}
	id := h.add("one")
	send("ses-earlier")
	if h.tick().Finished || h.unread() != 0 || h.bead(id).Status != bead.Hooked {
		t.Error("the word to an earlier process was heard")
	}
	send(h.m.Session)
	later := h.add("two")
	if !h.tick().Finished || h.bead(later).Status != bead.Open || len(h.mail(state.Human, mail.ShutdownResponse)) != 1 {
		t.Errorf("bead %s, %d responses", h.bead(later).Status, len(h.mail(state.Human, mail.ShutdownResponse)))
	}
	if !h.tick().Finished {
		t.Error("the next tick does not know any more")
	}
	h.restart()
	if h.tick().Finished || h.bead(later).Status != bead.Hooked {
		t.Error("the next process ends as well")
	}
}

func TestMayorEscalation(t *testing.T) {
	h := newTownHall(t, "")
	id := h.add("one")
	h.tick()
	live, err := h.rig.Claim(t.Context(), alpha, "ses-1")
	h.must(err)
	defer live.Unlock()
	b := h.work(id)
	escalate := func(advice string) {
		data, err := json.Marshal(mayor.Escalation{Kind: "stall", Severity: "alert", Recommend: advice})
		h.must(err)
		_, err = h.rig.Sender.Send(t.Context(), mail.Message{From: "witness", To: "mayor", Type: mail.HealthEscalation, Subject: "no progress",
			Metadata: data, Ref: &mail.Ref{BeadID: id, AssignmentID: b.AssignmentID}})
		h.must(err)
		h.tick()
	}
	escalate("nudge")
	if n, err := h.rig.Slot(alpha).Latest(); err != nil || n.Type != nudge.StallWarning || n.Ref.AssignmentID != b.AssignmentID {
		t.Errorf("nudge %+v, %v", n, err)
	}
	escalate("restart")
	after := h.bead(id)
	if after.Status != bead.Open || after.Restarts != 1 || after.ReadyAt == nil || h.hook(alpha).Status != hook.Empty {
		t.Fatalf("restarted: %+v", after)
	}
	next := h.tick()
	if h.bead(id).Status != bead.Open || next.After <= 0 || next.After > time.Minute {
		t.Errorf("cooling down: %s, wakes after %s", h.bead(id).Status, next.After)
	}
	h.at = h.at.Add(next.After)
	h.tick()
	if after := h.bead(id); after.Status != bead.Hooked || after.AssignmentID == b.AssignmentID {
		t.Errorf("after the cooldown: %+v", after)
	}
}

func TestMayorArchivesAndAnswers(t *testing.T) {
	h := newTownHall(t, "")
	n, err := h.rig.Sender.Send(t.Context(), mail.Message{From: alpha, To: "mayor", Type: mail.CompletionReport, Subject: "done"})
	h.must(err)
	asked, err := h.rig.Slot("mayor").Send(t.Context(), nudge.Nudge{From: state.Human, Type: nudge.SyncRequest, RequiresResponse: true}, h.m.Now())
	h.must(err)
	h.tick()
	reply, err := h.rig.Slot(state.Human).Latest()
	if err != nil || reply.Type != nudge.Response || reply.InReplyTo == nil || !reply.InReplyTo.Equal(asked.Timestamp.Time) {
		t.Errorf("reply %+v, %v", reply, err)
	}
	if unseen, _, err := h.rig.Slot("mayor").Unseen(); err != nil || len(unseen) != 0 {
		t.Errorf("unseen %v, %v", unseen, err)
	}
	h.at = h.at.Add(25 * time.Hour)
	h.tick()
	if e, err := h.rig.Mailbox("mayor").Get(n); err != nil || !e.Archived {
		t.Errorf("%+v, %v", e, err)
	}
	// Archiving that fails stops no tick.
	h.must(os.RemoveAll(h.rig.Tree.Abs(h.rig.Mailbox("mayor").Dir().Join("archive"))))
	h.must(os.WriteFile(h.rig.Tree.Abs(h.rig.Mailbox("mayor").Dir().Join("archive")), nil, 0o644))
	_, err = h.rig.Sender.Send(t.Context(), mail.Message{From: alpha, To: "mayor", Type: mail.CompletionReport, Subject: "done"})
	if err != nil && !errors.Is(err, state.ErrCorrupt) {
		t.Fatal(err)
	}
	id := h.add("one")
	h.at = h.at.Add(25 * time.Hour)
	h.tick()
	if h.bead(id).Status != bead.Hooked {
		t.Error("the mayor stood still")
	}
}

// TestMailOfThePersonIsArchived: what the person has read goes to the archive like
// everybody's mail, and what is unread stays.
func TestMailOfThePersonIsArchived(t *testing.T) {
	h := newTownHall(t, "")
	box := h.rig.Mailbox(state.Human)
	read, err := h.rig.Sender.Send(t.Context(), mail.Message{From: "mayor", To: state.Human, Type: mail.Coordination, Subject: "read"})
	h.must(err)
	_, err = h.rig.Sender.Send(t.Context(), mail.Message{From: "mayor", To: state.Human, Type: mail.Coordination, Subject: "unread"})
	h.must(err)
	h.must(box.MarkRead(t.Context(), read))
	h.at = h.at.Add(25 * time.Hour)
	h.tick()
	left, _, err := box.List()
	h.must(err)
	kept, _, err := box.Archive()
	h.must(err)
	if len(left) != 1 || left[0].Subject != "unread" || len(kept) != 1 || kept[0].Name != read {
		t.Errorf("left %+v, archived %+v", left, kept)
	}
}
