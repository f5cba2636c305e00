package execute

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/witness"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/pause"
)

// watched is a rig with a witness and a clock that only the test moves.
type watched struct {
	t       *testing.T
	rig     *rig.Rig
	mu      sync.Mutex
	now     time.Time
	session state.SessionID
	runner  Runner
	said    []string
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{t: t, now: time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC), session: "ses-w1"}
	r, err := rig.Init(t.Context(), rig.InitOptions{Dir: gittest.Repo(t), Clock: w.clock,
		Template: definition.TemplateOptions{RigName: "watched", Worker: "sh", Polecats: 2, Test: "true"}})
	if err != nil {
		t.Fatal(err)
	}
	w.rig = r
	w.restart()
	return w
}

func (w *watched) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *watched) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// restart begins a new process of the witness.
func (w *watched) restart() {
	w.runner = NewWitness(Agent{Rig: w.rig, ID: w.rig.Witness(), Session: w.session,
		Say: func(format string, args ...any) { w.said = append(w.said, fmt.Sprintf(format, args...)) }})
	if err := w.runner.Recover(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) tick() Next {
	w.t.Helper()
	next, err := w.runner.Tick(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return next
}

// patrol ticks every ten seconds.
func (w *watched) patrol(d time.Duration) {
	w.t.Helper()
	for end := w.clock().Add(d); w.clock().Before(end); w.pass(10 * time.Second) {
		w.tick()
	}
}

// alive claims an agent as a process would.
func (w *watched) alive(id state.AgentID) *state.Lock {
	w.t.Helper()
	lock, err := w.rig.Claim(w.t.Context(), id, "ses-live")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(lock.Unlock)
	return lock
}

// work puts a bead on a polecat's hook and lets it begin.
func (w *watched) work(id state.AgentID) bead.Bead {
	w.t.Helper()
	ctx, now := w.t.Context(), state.At(w.clock())
	b, err := w.rig.Beads.Add(bead.Bead{Title: "a title"}, "wa", now)
	if err != nil {
		w.t.Fatal(err)
	}
	as := state.NewAssignmentID()
	b, err = w.rig.Beads.Update(ctx, string(b.ID), func(b *bead.Bead) error {
		b.Assignee, b.AssignmentID = id, as
		if err := b.Become(bead.Hooked, "", now); err != nil {
			return err
		}
		return b.Become(bead.InProgress, "", now)
	})
	if err == nil {
		_, err = w.rig.Hooks.Set(ctx, id, hook.WorkItem{AssignedAt: now, AssignmentID: as, BeadID: b.ID, Title: b.Title}, now)
	}
	if err == nil {
		_, err = w.rig.Hooks.Activate(ctx, id, as, "ses-worker", now)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

func (w *watched) touch(b bead.Bead) {
	w.t.Helper()
	if _, err := w.rig.Hooks.Touch(w.t.Context(), b.Assignee, b.AssignmentID, "ses-worker", state.At(w.clock()), 0); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) escalations(to state.AgentID) []mail.Entry {
	w.t.Helper()
	all, bad, err := w.rig.Mailbox(to).List()
	if err != nil || len(bad) > 0 {
		w.t.Fatal(err, bad)
	}
	return slices.DeleteFunc(all, func(e mail.Entry) bool { return e.Type != mail.HealthEscalation })
}

func (w *watched) incidents() []incident.Incident {
	w.t.Helper()
	all, bad, err := w.rig.Incidents.All()
	if err != nil || len(bad) > 0 {
		w.t.Fatal(err, bad)
	}
	// Nobody reads the mayor's mail here, and of that the witness tells as well.
	return slices.DeleteFunc(all, func(i incident.Incident) bool { return i.Kind == incident.MayorSilent })
}

func (w *watched) status(id state.AgentID) agent.Status {
	w.t.Helper()
	a, err := w.rig.Agents.Get(string(id))
	if err != nil {
		w.t.Fatal(err)
	}
	return a.Status
}

const stallingPolecat state.AgentID = "polecat-alpha"

func TestWitnessTellsOfAStall(t *testing.T) {
	w := newWatched(t)
	w.alive(w.rig.Mayor())
	w.alive(stallingPolecat)
	b := w.work(stallingPolecat)
	w.tick()
	w.pass(time.Second)
	w.touch(b)
	w.patrol(320 * time.Second)

	unseen, _, err := w.rig.Slot(stallingPolecat).Unseen()
	if err != nil || len(unseen) != 1 || unseen[0].Type != nudge.HealthCheck || !unseen[0].RequiresResponse ||
		unseen[0].Ref == nil || unseen[0].Ref.AssignmentID != b.AssignmentID || unseen[0].Ref.Session != "ses-worker" {
		t.Fatalf("nudges %+v, %v", unseen, err)
	}
	if len(w.escalations(w.rig.Mayor())) != 0 || w.status(stallingPolecat) != agent.Stalled {
		t.Fatalf("mail at a warning, or status %s", w.status(stallingPolecat))
	}
	// A restart in the middle of it.
	w.restart()
	w.patrol(900 * time.Second)
	w.restart()
	w.patrol(900 * time.Second)

	told := w.escalations(w.rig.Mayor())
	if len(told) != 2 || told[0].Priority != mail.Normal || told[1].Priority != mail.Urgent {
		t.Fatalf("mails %+v", told)
	}
	var got map[string]any
	if err := json.Unmarshal(told[1].Metadata, &got); err != nil {
		t.Fatal(err)
	}
	open := w.incidents()
	if len(open) != 1 || open[0].EscalatedAt == nil || open[0].MailName != string(told[1].Name) {
		t.Fatalf("incidents %+v", open)
	}
	for field, want := range map[string]any{"incident_id": string(open[0].ID), "kind": "stalled", "severity": "critical", "agent_id": string(stallingPolecat),
		"bead_id": string(b.ID), "assignment_id": string(b.AssignmentID), "recommend": "restart", "nudges": 2.0} {
		if got[field] != want {
			t.Errorf("metadata %s = %v, want %v", field, got[field], want)
		}
	}
	if ref := told[1].Ref; ref == nil || ref.BeadID != b.ID || ref.AssignmentID != b.AssignmentID || ref.Session != "ses-worker" {
		t.Errorf("ref %+v", told[1].Ref)
	}
	w.touch(b)
	w.tick()
	if open := w.incidents(); open[0].Open() || open[0].Resolution != "progress" || w.status(stallingPolecat) != agent.Active {
		t.Errorf("after progress: %+v, %s", open, w.status(stallingPolecat))
	}
	about := string(stallingPolecat) + " stalled " + string(b.ID)
	want := []string{"warning: " + about, "alert: " + about, "told mayor: " + told[0].Subject, "critical: " + about, "told mayor: " + told[1].Subject, "resolved: " + about + ": progress"}
	said := slices.DeleteFunc(w.said, func(line string) bool {
		return strings.Contains(line, "mayor_silent") || strings.HasPrefix(line, "told human")
	})
	if !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

func TestWitnessTellsOfADeadProcess(t *testing.T) {
	w := newWatched(t)
	w.alive(w.rig.Mayor())
	lock := w.alive(stallingPolecat)
	b := w.work(stallingPolecat)
	w.tick()
	lock.Unlock()
	w.pass(10 * time.Second)
	if next := w.tick(); next.After > 3*time.Second {
		t.Errorf("looks again only after %s", next.After)
	}
	w.pass(3 * time.Second)
	w.tick()
	told := w.escalations(w.rig.Mayor())
	if len(told) != 1 || !strings.Contains(string(told[0].Metadata), `"process_gone"`) || told[0].Ref.AssignmentID != b.AssignmentID {
		t.Fatalf("mails %+v", told)
	}
	w.alive(stallingPolecat)
	w.pass(10 * time.Second)
	w.tick()
	if open := w.incidents(); len(open) != 1 || open[0].Open() {
		t.Errorf("incidents %+v", open)
	}
}

// TestWitnessEscalatesOnceAcrossACrash: the mail went out, but its witness
// died before it could write that down.
func TestWitnessEscalatesOnceAcrossACrash(t *testing.T) {
	w := newWatched(t)
	ctx := t.Context()
	w.work(stallingPolecat) // and no mayor: the person is told
	w.patrol(60 * time.Second)
	if told := w.escalations(state.Human); len(told) != 1 {
		t.Fatalf("mails %+v", told)
	}
	for _, i := range w.incidents() {
		if _, err := w.rig.Incidents.Update(ctx, string(i.ID), func(i *incident.Incident) error {
			i.EscalatedAt = nil
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	w.restart()
	w.patrol(60 * time.Second)
	if told := w.escalations(state.Human); len(told) != 1 {
		t.Errorf("told again: %+v", told)
	}
	for _, i := range w.incidents() {
		if i.EscalatedAt == nil {
			t.Errorf("%s %s is not recorded as told", i.ID, i.Kind)
		}
	}
}

// TestWitnessNameTaken: another message stands at the fixed name.
func TestWitnessNameTaken(t *testing.T) {
	w := newWatched(t)
	ctx, now := t.Context(), state.At(w.clock())
	me := w.rig.Witness()
	i := incident.Incident{ID: "in-1", AgentID: w.rig.Mayor(), Kind: incident.MayorMissing, Severity: incident.Alert, OpenedAt: now,
		MailName: string(mail.NameAt(now, me))}
	if err := w.rig.Incidents.Create("in-1", i); err != nil {
		t.Fatal(err)
	}
	if _, err := w.rig.Sender.Send(ctx, mail.Message{From: me, To: state.Human, Type: mail.Coordination, Subject: "in the way", Timestamp: now}); err != nil {
		t.Fatal(err)
	}
	runner := w.runner.(*witnessRunner)
	action := witness.Escalate{ID: "in-1", To: state.Human, Severity: incident.Alert, Subject: "no mayor is running"}
	for range 2 {
		if err := runner.escalate(ctx, action); err != nil {
			t.Fatal(err)
		}
	}
	told := w.escalations(state.Human)
	if len(told) != 1 || told[0].Name != mail.NameAt(state.At(now.Add(1)), me) || w.incidents()[0].MailName != string(told[0].Name) {
		t.Errorf("told %+v, incidents %+v", told, w.incidents())
	}
}

func TestWitnessCorruptHook(t *testing.T) {
	w := newWatched(t)
	w.alive(w.rig.Mayor())
	path := filepath.Join(w.rig.Tree.Root(), "state", "hooks", "polecat-bravo.json")
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(w.rig.Tree.Root(), "state", "hooks", "polecat-alpha.json")); err != nil {
		t.Fatal(err)
	}
	w.patrol(100 * time.Second)
	if told := w.escalations(state.Human); len(told) != 2 {
		t.Fatalf("mails %+v", told)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "{" {
		t.Errorf("the hook is %q, %v", data, err)
	}
}

func TestSubjectOfAnIncident(t *testing.T) {
	i := incident.Incident{AgentID: "polecat-alpha", Kind: "corrupt_hook"}
	if got := subjectOf(&i); got != "polecat-alpha corrupt_hook" {
		t.Errorf("without a bead: %q", got)
	}
	i.BeadID = "tt-abc12"
	if got := subjectOf(&i); got != "polecat-alpha corrupt_hook tt-abc12" {
		t.Errorf("with a bead: %q", got)
	}
}

func TestWitnessLetters(t *testing.T) {
	w := newWatched(t)
	ctx, me := t.Context(), w.rig.Witness()
	send := func(from state.AgentID, kind mail.Type, session state.SessionID) mail.Name {
		t.Helper()
		m := mail.Message{From: from, To: me, Type: kind, Subject: "hello"}
		if session != "" {
			m.Ref = &mail.Ref{Session: session}
		}
		n, err := w.rig.Sender.Send(ctx, m)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	send(stallingPolecat, mail.Coordination, "")
	asked := send(state.Human, mail.Coordination, "")
	send(state.Human, mail.ShutdownRequest, "ses-earlier")
	foreign := filepath.Join(w.rig.Tree.Abs(w.rig.Mailbox(me).Dir()), "2026-03-05T09-00-00Z-mayor.json")
	if err := os.WriteFile(foreign, []byte("no json"), 0o644); err != nil {
		t.Fatal(err)
	}
	if next := w.tick(); next.Finished {
		t.Fatal("a stale request ended it")
	}
	unread, bad, err := w.rig.Mailbox(me).Unread()
	if err != nil || len(unread)+len(bad) != 0 {
		t.Fatalf("left: %v %v %v", unread, bad, err)
	}
	answers, _, err := w.rig.Mailbox(state.Human).List()
	if err != nil || len(answers) != 1 || answers[0].InReplyTo != string(asked) {
		t.Fatalf("answers %+v, %v", answers, err)
	}
	if _, err := w.rig.Slot(me).Send(ctx, nudge.Nudge{From: state.Human, Type: nudge.HealthCheck, RequiresResponse: true}, state.At(w.clock())); err != nil {
		t.Fatal(err)
	}
	w.tick()
	reply, err := w.rig.Slot(state.Human).Latest()
	if err != nil || reply.Type != nudge.Response || reply.InReplyTo == nil {
		t.Fatalf("nudge %+v, %v", reply, err)
	}
	send(state.Human, mail.ShutdownRequest, w.session)
	if next := w.tick(); !next.Finished {
		t.Fatal("it goes on")
	}
	answers, _, err = w.rig.Mailbox(state.Human).List()
	if err != nil || len(answers) != 2 || answers[1].Type != mail.ShutdownResponse {
		t.Errorf("answers %+v, %v", answers, err)
	}
}

// TestWitnessIdle: a rig in which nothing happens costs no writes.
func TestWitnessIdle(t *testing.T) {
	w := newWatched(t)
	w.alive(w.rig.Mayor())
	w.alive(stallingPolecat)
	w.patrol(20 * time.Second)
	before := snapshotOf(t, w.rig.Tree.Root())
	w.patrol(time.Hour)
	if after := snapshotOf(t, w.rig.Tree.Root()); before != after {
		t.Errorf("the tree changed:\n%s\n%s", before, after)
	}
}

func snapshotOf(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(filepath.Join(root, "state"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		all.WriteString(path + " " + info.ModTime().String() + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestWitnessMailToNobody: what nobody can get is said and told in the story, and
// counts as sent: nothing waits for it.
func TestWitnessMailToNobody(t *testing.T) {
	w := newWatched(t)
	ctx := context.WithoutCancel(t.Context())
	w.alive(stallingPolecat)
	w.tick()
	if err := w.rig.Agents.SetStatus(ctx, w.rig.Mayor(), agent.Retired, state.At(w.clock())); err != nil {
		t.Fatal(err)
	}
	i := incident.Incident{ID: "in-1", AgentID: stallingPolecat, AssignmentID: "as-1", Kind: incident.Stalled, Severity: incident.Alert, OpenedAt: state.At(w.clock())}
	for _, a := range []roles.Action{witness.OpenIncident{Incident: i},
		witness.Escalate{ID: i.ID, To: w.rig.Mayor(), Severity: incident.Alert, Subject: "stalled"},
		witness.Ask{Nudge: roles.Nudge{To: stallingPolecat, Nudge: nudge.Nudge{Type: nudge.HealthCheck}}, Incident: i.ID, Count: 1}} {
		if err := w.runner.(*witnessRunner).do(ctx, a); err != nil {
			t.Fatalf("%T: %v", a, err)
		}
	}
	stored := w.incidents()[0]
	if stored.EscalatedAt == nil || stored.Nudges != 1 || stored.LastNudge == nil {
		t.Errorf("incident %+v", stored)
	}
	events, _, _, err := w.rig.Events.Read(event.Position{}, time.Time{})
	if err != nil || !slices.ContainsFunc(events, func(e event.Event) bool { return e.Type == "mail.undeliverable" }) {
		t.Errorf("the story does not tell: %v", err)
	}
}

// What changed between a patrol and its actions is seen: nothing is told of an incident that is over or was raised since, and a status
// that somebody else has set stays.
func TestWitnessLooksAgain(t *testing.T) {
	w := newWatched(t)
	ctx, now := t.Context(), state.At(w.clock())
	runner := w.runner.(*witnessRunner)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	mayor := w.rig.Mayor()
	must(w.rig.Incidents.Create("in-1", incident.Incident{ID: "in-1", AgentID: mayor, Kind: incident.MayorMissing, Severity: incident.Alert, OpenedAt: now}))
	tell := func(s incident.Severity) {
		t.Helper()
		must(runner.do(ctx, witness.Escalate{ID: "in-1", To: state.Human, Severity: s, Subject: "no mayor is running"}))
	}
	if tell(incident.Warning); len(w.escalations(state.Human)) != 0 {
		t.Error("told of an earlier severity")
	}
	tell(incident.Alert)
	told := w.escalations(state.Human)
	if len(told) != 1 || w.incidents()[0].MailName != string(told[0].Name) {
		t.Errorf("told %+v; the incident is %+v", told, w.incidents())
	}
	must(w.rig.Incidents.Create("in-2", incident.Incident{ID: "in-2", AgentID: mayor, Kind: incident.MayorMissing, Severity: incident.Alert, OpenedAt: now}))
	must(runner.do(ctx, witness.ResolveIncident{ID: "in-2", Resolution: "a mayor is running"}))
	must(runner.do(ctx, witness.Escalate{ID: "in-2", To: state.Human, Severity: incident.Alert, Subject: "no mayor is running"}))
	if len(w.escalations(state.Human)) != 1 {
		t.Error("told of what is over")
	}
	must(runner.do(ctx, witness.Ask{Incident: "in-1", Count: 1, Nudge: roles.Nudge{To: "polecat-gone", Nudge: nudge.Nudge{Type: nudge.HealthCheck}}}))
	i, err := w.rig.Incidents.Get("in-1")
	if must(err); i.Nudges != 0 {
		t.Error("a question to nobody counts as asked")
	}
	must(w.rig.Agents.SetStatus(ctx, "polecat-alpha", agent.Retired, now))
	must(runner.do(ctx, witness.SetStatus{Agent: "polecat-alpha", From: agent.Active, To: agent.Stalled}))
	if a, err := w.rig.Agents.Get("polecat-alpha"); err != nil || a.Status != agent.Retired {
		t.Errorf("%+v, %v", a, err)
	}
}

// Work stands still for a reason while its bead waits for a pause, or a person has its session; and a worker is as slow as its preset says.
func TestWitnessWaitsForWhatIsAsked(t *testing.T) {
	w := newWatched(t)
	runner := w.runner.(*witnessRunner)
	h := hook.Hook{AgentID: "polecat-alpha", Status: hook.Active, LastActivity: state.At(w.clock()), WorkItem: &hook.WorkItem{BeadID: "tt-abc12", AssignmentID: "as-1"}}
	check := func(what string, want bool) {
		t.Helper()
		if got, err := runner.asks(&h); err != nil || got != want {
			t.Errorf("%s: %t, %v", what, got, err)
		}
	}
	runner.pauses = []pause.Pause{{Scope: pause.Rig, Waiting: []state.BeadID{"tt-abc12"}}}
	check("while it gets on", false)
	w.pass(w.rig.Def.GUPP.Thresholds.StallDetection / 2)
	check("while it is paused", true)
	h.Status = hook.Completed
	check("when it is over", false)
	h.Status = hook.Active
	runner.pauses = nil
	check("while nobody knows why", false)
	lease, err := w.rig.Tree.Lock(t.Context(), state.LockLease, "polecat-alpha")
	if err != nil {
		t.Fatal(err)
	}
	check("while a person has it", true)
	lease.Unlock()
	w.rig.Def.Worker.Presets = append(w.rig.Def.Worker.Presets, definition.WorkerPreset{Name: "slow", StallDetection: time.Hour})
	b, err := w.rig.Beads.Add(bead.Bead{Title: "x", Worker: "slow"}, "tt", state.At(w.clock()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runner.scan(); err != nil {
		t.Fatal(err)
	}
	h.WorkItem.BeadID = b.ID
	if got := runner.stallOf(&h); got != time.Hour {
		t.Errorf("a slow worker stalls after %s", got)
	}
}
