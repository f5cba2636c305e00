package execute

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/witness"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
)

func (w *watched) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) witness() *witnessRunner {
	r, _ := w.runner.(*witnessRunner)
	return r
}

// scan is what a patrol sees.
func (w *watched) scan() *witness.Scan {
	w.t.Helper()
	s, err := w.witness().scan()
	w.must(err)
	return s
}

// A patrol sees agents with their hooks and thresholds, the queue, what is not finished, and what is held.
func TestWitnessScans(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	ctx, now := t.Context(), state.At(w.clock())
	w.rig.Def.Worker.Presets = append(w.rig.Def.Worker.Presets, definition.WorkerPreset{Name: "slow", StallDetection: time.Hour})
	w.rig.Def.Worker.Default = "slow"
	working := w.work(stallingPolecat)
	done, err := w.rig.Beads.Add(bead.Bead{Title: "done"}, "wa", now)
	w.must(err)
	_, err = w.rig.Beads.Update(ctx, string(done.ID), func(b *bead.Bead) error { b.Status, b.AssignmentID = bead.Done, "as-done"; return nil })
	w.must(err)
	_, err = w.rig.Queue.Submit(ctx, mergequeue.Request{BeadID: done.ID, AssignmentID: "as-done", AgentID: stallingPolecat, SourceBranch: "x", TargetBranch: "main",
		Head: strings.Repeat("a", 40)}, now)
	w.must(err)
	for bead, stage := range map[state.BeadID]dispatch.Stage{"wa-one11": dispatch.Launched, "wa-two22": dispatch.Confirmed} {
		w.must(w.rig.Dispatch.Put(string(bead), dispatch.Record{BeadID: bead, AssignmentID: "as-x", AgentID: stallingPolecat, Stage: stage, CreatedAt: now}))
	}
	s := w.scan()
	at := slices.IndexFunc(s.Agents, func(a witness.Agent) bool { return a.ID == stallingPolecat })
	if a := s.Agents[at]; a.Hook.Assignment() != working.AssignmentID || a.Stall != time.Hour || a.Alive || a.Corrupt != "" {
		t.Errorf("the polecat is %+v", a)
	}
	me := slices.IndexFunc(s.Agents, func(a witness.Agent) bool { return a.ID == w.rig.Witness() })
	if a := s.Agents[me]; !a.Alive || a.Role != agent.Witness || a.Stall != time.Hour && a.Stall != 0 {
		t.Errorf("the witness is %+v", a)
	}
	if s.Queue.Head == nil || s.Queue.Head.BeadID != done.ID || s.Queue.Waiting != 1 {
		t.Errorf("the queue is %+v", s.Queue)
	}
	if len(s.Dispatches) != 1 || s.Dispatches[0].Stage != dispatch.Launched {
		t.Errorf("unfinished are %+v", s.Dispatches)
	}
	if s.Held(&working) {
		t.Error("held by nothing")
	}
	w.must(w.rig.Pauses.Change(ctx, pause.Bead("wa-other"), func(p *pause.Pause) error { p.Find("x", "", fault.New(fault.DiskFull, "full"), now); return nil }))
	if w.scan().Held(&working) {
		t.Error("held by a pause of something else")
	}
	w.must(w.rig.Pauses.Change(ctx, pause.Rig, func(p *pause.Pause) error { p.Find("x", "", fault.New(fault.DiskFull, "full"), now); return nil }))
	if !w.scan().Held(&working) {
		t.Error("a pause of the rig holds it")
	}

	hook := w.rig.Tree.Abs(w.rig.Hooks.Path(string(stallingPolecat)))
	corrupt := func(want string) {
		t.Helper()
		if a := w.scan().Agents[at]; !strings.Contains(a.Corrupt, want) {
			t.Errorf("the hook is corrupt: %q, want %q", a.Corrupt, want)
		}
	}
	w.must(os.WriteFile(hook, []byte("{"), 0o600))
	corrupt("hooks/polecat-alpha.json")
	w.must(os.Remove(hook))
	corrupt("has no hook")
}

// A task is overdue from its deadline until it is over, whoever says so where. Its two sides are reminded once, unless it is late again.
func TestWitnessFindsOverdueTasks(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	ctx, due := t.Context(), state.At(w.clock().Add(time.Minute))
	ask := func(id mail.TaskID) mail.Name {
		t.Helper()
		m := mail.Message{From: w.rig.Mayor(), To: stallingPolecat, Type: mail.Coordination, Subject: "please"}
		w.must(m.SetTask(mail.Task{ID: id, Deadline: &due}))
		name, err := w.rig.Sender.Send(ctx, m)
		w.must(err)
		return name
	}
	overdue := func(want ...mail.Name) {
		t.Helper()
		var got []mail.Name
		for _, s := range w.scan().Overdue {
			got = append(got, s.Request)
		}
		if !slices.Equal(got, want) {
			t.Errorf("overdue are %v, want %v", got, want)
		}
	}
	first := ask("t1")
	overdue()
	w.pass(2 * time.Minute)
	overdue(first)
	second := ask("t2")
	overdue(first, second)
	w.must(w.witness().do(ctx, witness.RememberOverdue{Request: first}))
	w.must(w.witness().do(ctx, witness.RememberOverdue{Request: second}))
	if s := w.scan(); len(s.Reminded) != 2 {
		t.Errorf("reminded are %v", s.Reminded)
	}
	for box := w.rig.Mailbox(stallingPolecat); ; time.Sleep(10 * time.Millisecond) { // until its folder's time stamp tells versions apart
		if stamp, err := box.Stamp(); err != nil || stamp != (state.Stamp{}) {
			w.must(err)
			break
		}
	}
	w.scan() // its mailbox is not read again after this
	over := mail.Message{From: stallingPolecat, To: w.rig.Mayor(), Type: mail.Coordination, Subject: "done", InReplyTo: string(first), Thread: string(first)}
	w.must(over.SetTask(mail.Task{ID: "t1", State: mail.TaskRejected}))
	_, err := w.rig.Sender.Send(ctx, over)
	w.must(err)
	overdue(second)
	if s := w.scan(); len(s.Reminded) != 1 || !s.Reminded[second] {
		t.Errorf("reminded are %v", s.Reminded)
	}
}

// What a patrol can't read it does not judge without: an empty rig has no incidents to tell of.
func TestWitnessScansAllOrNothing(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	w.work(stallingPolecat)
	w.pass(w.rig.Def.GUPP.Thresholds.StallDetection)
	for _, dir := range []state.Path{bead.Dir, mergequeue.Dir, dispatch.Dir, pause.Dir, agent.Dir, w.rig.Mailbox(w.rig.Mayor()).Dir(), w.rig.Mailbox(state.Human).Dir()} {
		spoilt(t, w.rig, dir, func() {
			if s, err := w.witness().scan(); err == nil {
				t.Errorf("it judges without %s: %+v", dir, s)
			}
		})
	}
	spoilt(t, w.rig, incident.Dir, func() {
		if _, err := w.runner.Tick(t.Context()); err == nil {
			t.Error("it patrols without incidents")
		}
	})
	w.scan()
}

// Every change that can't be made is an error; only an incident that is there already is what was wanted.
func TestWitnessChangesThatFail(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	ctx, now := t.Context(), state.At(w.clock())
	for _, a := range []roles.Action{witness.SetStatus{Agent: "polecat-none", To: agent.Active}, witness.RaiseIncident{ID: "in-none"}, witness.ResolveIncident{ID: "in-none"},
		witness.RecordAnswer{ID: "in-none"}, witness.Escalate{ID: "in-none"}, witness.Ask{Incident: "in-none", Nudge: roles.Nudge{To: stallingPolecat, Nudge: nudge.Nudge{Type: nudge.HealthCheck}}}} {
		if err := w.witness().do(ctx, a); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("%T: %v", a, err)
		}
	}
	if err := w.witness().fixName(ctx, "in-none", "x"); !errors.Is(err, state.ErrNotFound) {
		t.Error(err)
	}
	one := incident.Incident{ID: "in-1", AgentID: stallingPolecat, Kind: incident.Stalled, Severity: incident.Warning, OpenedAt: now}
	spoilt(t, w.rig, incident.Dir, func() {
		if err := w.witness().do(ctx, witness.OpenIncident{Incident: one}); err == nil {
			t.Error("it is opened nowhere")
		}
	})
	said := len(w.said)
	for range 2 {
		w.must(w.witness().do(ctx, witness.OpenIncident{Incident: one}))
	}
	w.must(w.witness().do(ctx, witness.ResolveIncident{ID: "in-1", Resolution: "progress"}))
	_ = w.witness().do(ctx, witness.ResolveIncident{ID: "in-1", Resolution: "again"})
	if got := w.said[said:]; !slices.Equal(got, []string{"warning: polecat-alpha stalled", "resolved: polecat-alpha stalled: progress"}) {
		t.Errorf("said %q", got)
	}
	// The oldest comes first.
	for id, opened := range map[state.IncidentID]state.Time{"in-2": state.At(now.Add(time.Hour)), "in-3": now} {
		two := one
		two.ID, two.OpenedAt = id, opened
		w.must(w.witness().do(ctx, witness.OpenIncident{Incident: two}))
	}
	if open, err := openIncidents(w.rig); err != nil || len(open) != 2 || open[0].ID != "in-3" {
		t.Errorf("%+v, %v", open, err)
	}
}
