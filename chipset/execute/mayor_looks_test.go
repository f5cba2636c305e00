package execute

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/spend"
)

// carry carries one action out, as decided on facts that may be older than the files.
func (h *townHall) carry(a roles.Action) {
	h.Helper()
	h.must(h.m.do(h.Context(), a))
}

// What was decided on older files does no harm: the mayor looks at the files again before it acts.
func TestMayorLooksAgain(t *testing.T) {
	h := newTownHall(t, "")
	id := h.add("one")
	h.tick()
	b := h.work(id)
	clears := mayor.ClearHook{Agent: b.Assignee, Assignment: b.AssignmentID}
	for _, to := range []bead.Status{bead.InProgress, bead.Done} { // at work, and between two steps of its retirement
		h.set(id, func(b *bead.Bead) { b.Status = to })
		if h.carry(clears); h.hook(b.Assignee).Status != hook.Active {
			t.Errorf("the hook of a bead that is %s was cleared", to)
		}
	}
	h.carry(mayor.ClearHook{Agent: mayorBravo, Assignment: b.AssignmentID}) // it is empty already

	h.set(id, func(b *bead.Bead) { b.Status = bead.InProgress })
	h.carry(mayor.Block{Bead: id, Assignment: b.AssignmentID, From: bead.Failed, Subject: "it is blocked", Body: "x"})
	h.carry(mayor.Sling{Bead: id, Agent: mayorBravo})
	h.carry(mayor.MakeConvoy{Beads: []state.BeadID{id, "tt-none1"}})
	if told := h.mail(state.Human, mail.Coordination); len(told) > 0 || h.hook(mayorBravo).Status != hook.Empty || h.bead(id).Status != bead.InProgress {
		t.Errorf("told %+v, hook %+v, bead %+v", told, h.hook(mayorBravo), h.bead(id))
	}

	// Another program deletes the bead: its hook is free again.
	h.must(os.Remove(h.rig.Tree.Abs(h.rig.Beads.Path(string(id)))))
	h.tick()
	if got := h.hook(b.Assignee); got.Status != hook.Empty {
		t.Errorf("the hook of a bead that is gone is %+v", got)
	}
}

// Whatever is damaged is told to the person once, and keeps the mayor from nothing else.
func TestMayorGoesOnBesideDamage(t *testing.T) {
	h := newTownHall(t, "")
	failed, broken := h.add("fails"), h.add("breaks")
	h.tick()
	attempt := h.end(failed, retire.Fail, bead.Failed, "no")
	_, err := h.rig.Queue.Submit(h.Context(), mergequeue.Request{BeadID: broken, AssignmentID: "as-1", AgentID: mayorBravo, SourceBranch: "x", TargetBranch: "main",
		Head: strings.Repeat("a", 40)}, h.m.Now())
	h.must(err)
	queue, _, err := h.rig.Queue.Queue()
	h.must(err)
	damaged := []state.Path{h.rig.Queue.Path(string(queue[0].ID)), h.rig.Beads.Path(string(broken))}
	bravo := h.rig.Hooks.Path(string(mayorBravo))
	for _, p := range append(damaged, bravo, h.rig.Retire.Path(string(attempt.AssignmentID))) {
		h.must(os.WriteFile(h.rig.Tree.Abs(p), []byte("{"), 0o600))
	}
	for range 2 {
		h.restart()
		for range 4 {
			h.tick()
		}
	}
	if b := h.bead(failed); b.Attempts != 1 || b.Status != bead.Hooked || b.Assignee != alpha {
		t.Errorf("the failed bead is %s on %s after %d attempts", b.Status, b.Assignee, b.Attempts)
	}
	if text, err := os.ReadFile(h.rig.Tree.Abs(bravo)); err != nil || string(text) != "{" {
		t.Errorf("the damaged hook holds %q now: %v", text, err)
	}
	for _, p := range damaged {
		told := 0
		for _, e := range h.mail(state.Human, mail.Coordination) {
			if strings.Contains(e.Subject, string(p)) {
				told++
			}
		}
		if told != 1 {
			t.Errorf("told %d times of %s", told, p)
		}
	}
}

// A dispatch whose process died is finished by the next tick: the polecat hears of it.
func TestMayorFinishesDispatches(t *testing.T) {
	h := newTownHall(t, "")
	id := h.add("one")
	h.tick()
	rec, err := h.rig.Dispatch.Get(string(id))
	h.must(err)
	rec.Stage = dispatch.Launched
	h.must(h.rig.Dispatch.Put(string(id), rec))
	for _, e := range h.mail(alpha, mail.WorkAssignment) {
		h.must(os.Remove(h.rig.Tree.Abs(h.rig.Mailbox(alpha).Dir().Join(string(e.Name)))))
	}
	h.tick()
	rec, err = h.rig.Dispatch.Get(string(id))
	h.must(err)
	if told := h.mail(alpha, mail.WorkAssignment); len(told) != 1 || rec.Stage != dispatch.Confirmed {
		t.Errorf("the dispatch is %s, and %d mails say so", rec.Stage, len(told))
	}
}

// What could not be finished for an agent is tried again after a while, and not with every tick.
func TestMayorFinishesAgainLater(t *testing.T) {
	h := newTownHall(t, "")
	live, err := h.rig.Claim(t.Context(), alpha, "ses-1")
	h.must(err)
	finish := func() error { return h.m.do(h.Context(), mayor.FinishFor{Agent: alpha}) }
	var claimed *rig.ClaimedError
	if err := finish(); !errors.As(err, &claimed) {
		t.Errorf("beside its process: %v", err)
	}
	live.Unlock()
	if err := finish(); !errors.Is(err, state.ErrConflict) {
		t.Errorf("at once: %v", err)
	}
	h.at = h.at.Add(policy.FinishAgain)
	h.must(finish())
	h.must(finish())
}

// A text of any size comes to the person, as far as mail may hold it.
func TestMayorClipsWhatItTells(t *testing.T) {
	h := newTownHall(t, "")
	id := h.add("one")
	h.tick()
	b := h.end(id, retire.Fail, bead.Failed, "no")
	h.carry(mayor.Block{Bead: id, Assignment: b.AssignmentID, From: bead.Failed, Reason: "no", Subject: "it is blocked", Body: "It went like this: " + strings.Repeat("x", 1<<20)})
	if told := h.mail(state.Human, mail.Coordination); len(told) != 1 || !strings.HasPrefix(told[0].Body, "It went like this: x") {
		t.Errorf("told %d times: %.80q", len(told), told[0].Body)
	}
}

// A clock that is set back costs no work its start, and a pause is probed when it is due.
func TestMayorsClock(t *testing.T) {
	h := newTownHall(t, "")
	h.restart()
	h.at = h.at.Add(-time.Hour)
	id := h.add("one")
	if h.tick(); h.bead(id).Status != bead.Hooked {
		t.Error("after its clock was set back the mayor waits for polecats to start")
	}
	rules := pause.Rules{Wait: func(fault.Kind, int) time.Duration { return 10 * time.Minute }, Longest: time.Hour, Most: 1}
	h.must(h.rig.Pauses.Change(h.Context(), pause.Rig, func(p *pause.Pause) error {
		return p.Fail(pause.Try{At: state.At(h.at), BeadID: id, Assignment: "as-1"}, fault.New(fault.Overloaded, "the service is down"), rules)
	}))
	if next := h.tick(); next.After <= 9*time.Minute || next.After > 10*time.Minute {
		t.Errorf("it looks at the pause after %s", next.After)
	}
}

// A completed attempt whose commit is gone is told to the person; the hook is free all the same.
func TestMayorMissesTheCommit(t *testing.T) {
	h := newTownHall(t, "")
	id := h.add("one")
	h.tick()
	b := h.end(id, retire.Done, bead.Done, "")
	_, err := h.rig.Queue.Submit(t.Context(), mergequeue.Request{BeadID: id, AssignmentID: b.AssignmentID, AgentID: b.Assignee,
		SourceBranch: b.Branch, TargetBranch: "main", Head: strings.Repeat("a", 40)}, h.m.Now())
	h.must(err)
	h.tick()
	if told := h.mail(state.Human, mail.Coordination); len(told) != 1 || !strings.Contains(told[0].Body, "the commit aaaa") || h.hook(alpha).Status != hook.Empty {
		t.Errorf("told %+v, hook %+v", told, h.hook(alpha))
	}
}

// What another program hung on a hook and can't be slung is said, and keeps the hook from nothing.
func TestMayorCannotSlingWhatAnotherProgramHung(t *testing.T) {
	h := newTownHall(t, "")
	first := h.add("first")
	h.must(h.rig.Agents.SetStatus(t.Context(), alpha, agent.Active, h.m.Now()))
	b, err := h.rig.Beads.Add(bead.Bead{Title: "waits", BlockedBy: []state.BeadID{first}}, "tt", h.m.Now())
	h.must(err)
	h.must(os.WriteFile(h.rig.Tree.Abs(h.rig.Hooks.Path(string(alpha))), []byte(`{"agent_id":"polecat-alpha","status":"pending","last_activity":"2026-03-05T10:30:00Z","work_item":{"bead_id":"`+
		string(b.ID)+`","title":"x"}}`), 0o600))
	for range 2 {
		if next := h.tick(); next.Conflict != nil {
			t.Errorf("a conflict: %v", next.Conflict)
		}
	}
	if got := h.bead(b.ID); got.Status != bead.Open || !strings.Contains(strings.Join(h.said, "\n"), "but can't be slung") {
		t.Errorf("%+v; said %q", got, h.said)
	}
}

// The mayor looks again when a probe or the end of its grace is due, whichever comes first, and no sooner. It hears of what is spent only where
// that matters.
func TestMayorLooksInTime(t *testing.T) {
	t.Parallel()
	h := newTownHall(t, "")
	about := func(what string, want time.Duration) {
		t.Helper()
		if got := h.m.after(); got > want || got < want-time.Second || want == 0 && got != 0 {
			t.Errorf("%s: it looks after %s, not %s", what, got, want)
		}
	}
	about("nothing", 0)
	h.m.due = state.At(h.at.Add(time.Minute))
	about("a probe", time.Minute)
	h.m.started = state.At(h.at)
	h.m.due = state.At(h.at.Add(time.Hour))
	about("its grace first", policy.StartGrace)
	h.m.anyLive = true
	about("its grace is over with the first polecat", time.Hour)
	h.m.anyLive = false
	h.m.due = state.At(h.at.Add(-time.Minute))
	about("a probe that is due already", policy.StartGrace)
	h.m.started = state.At(h.at.Add(time.Hour))
	about("the clock was set back", 0)

	if slices.Contains(h.m.Folders(), spend.Dir) {
		t.Error("it looks at what is spent without a budget")
	}
	h.rig.Def.Budget.Day.Tokens = 1
	if !slices.Contains(h.m.Folders(), spend.Dir) {
		t.Error("it does not look at what is spent")
	}
}

// A damaged file is told to the person again until the letter has been sent.
func TestMayorTellsDamageOnce(t *testing.T) {
	t.Parallel()
	h := newTownHall(t, "")
	damaged := []error{errors.New("something else"), &state.Corruption{Path: "state/work/tt-x.json", Reason: "torn"}}
	spoilt(t, h.rig, h.rig.Mailbox(state.Human).Dir(), func() { h.m.tellDamage(t.Context(), damaged) })
	for range 2 {
		h.m.tellDamage(t.Context(), damaged)
	}
	if told := h.mail(state.Human, mail.Coordination); len(told) != 1 || told[0].Subject != "can't read state/work/tt-x.json" || told[0].Priority != mail.Urgent || !strings.HasPrefix(told[0].Body, "torn\n") {
		t.Errorf("told %+v", told)
	}
}

// What a mayor can't find out it does not decide without.
func TestMayorVerifiesAllOrNothing(t *testing.T) {
	t.Parallel()
	h := newTownHall(t, "")
	spoilt(t, h.rig, mergequeue.Dir, func() {
		if err := h.m.do(t.Context(), mayor.ClearHook{Agent: alpha, Assignment: "as-1", Verify: true}); err == nil {
			t.Error("cleared without the queue")
		}
	})
	spoilt(t, h.rig, hook.Dir, func() {
		if err := h.m.do(t.Context(), mayor.ClearHook{Agent: alpha, Assignment: "as-1"}); err == nil {
			t.Error("cleared without the hook")
		}
	})
	if err := h.m.do(t.Context(), mayor.Reopen{Bead: "tt-none1", Note: "why"}); err == nil {
		t.Error("reopened is nothing")
	}
	if told := strings.Join(h.said, "\n"); strings.Contains(told, "reopened") {
		t.Errorf("said %q", told)
	}
}
