package execute

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
)

func TestMayorSlings(t *testing.T) {
	h := newTownHall(t, "")
	h.tick()
	if h.m.state != mayor.Idle {
		t.Errorf("with nothing to do the mayor is %s", h.m.state)
	}
	first, second, third := h.add("one"), h.add("two"), h.add("three")
	h.tick()
	if a, b, c := h.bead(first), h.bead(second), h.bead(third); a.Assignee != alpha || b.Assignee != mayorBravo || c.Status != bead.Open {
		t.Errorf("slung to %q and %q, the third is %s", a.Assignee, b.Assignee, c.Status)
	}
	if h.m.state != mayor.Dispatching || h.hook(alpha).Status != hook.Pending || len(h.mail(alpha, mail.WorkAssignment)) != 1 {
		t.Errorf("%s, hook %+v", h.m.state, h.hook(alpha))
	}
	h.tick()
	if h.m.state != mayor.Saturated {
		t.Errorf("with work and no polecat the mayor is %s", h.m.state)
	}
}

// What another program hangs on a hook becomes an assignment like any other, also of a
// bead that nobody has added.
func TestMayorTakesOverWhatAnotherProgramHung(t *testing.T) {
	h := newTownHall(t, "")
	other := h.add("another")
	for id, item := range map[state.AgentID]string{alpha: `{"bead_id":"zz-their1","title":"Do\nthis"}`, mayorBravo: `{"bead_id":"` + string(other) + `","title":"x"}`} {
		h.must(os.WriteFile(h.rig.Tree.Abs(h.rig.Hooks.Path(string(id))), []byte(`{"agent_id":"`+string(id)+`","status":"pending","last_activity":"2026-03-05T10:30:00Z","work_item":`+item+`}`), 0o644))
	}
	h.tick()
	theirs := h.bead("zz-their1")
	if theirs.Title != "Do" || theirs.Assignee != alpha || h.hook(alpha).Assignment() != theirs.AssignmentID || theirs.AssignmentID == "" {
		t.Errorf("%+v on %+v", theirs, h.hook(alpha))
	}
	if b := h.bead(other); b.Assignee != mayorBravo || h.hook(mayorBravo).Assignment() != b.AssignmentID || b.AssignmentID == "" {
		t.Errorf("%+v on %+v", b, h.hook(mayorBravo))
	}
}

// A mayor that starts together with its polecats slings to those that come.
func TestMayorWaitsForPolecatsAtStart(t *testing.T) {
	h := newTownHall(t, "")
	h.m = NewMayor(h.m.Agent)
	id := h.add("one")
	if next := h.tick(); h.bead(id).Status != bead.Open || next.After <= 0 || next.After > policy.StartGrace {
		t.Fatalf("slung to %q, wakes after %s", h.bead(id).Assignee, next.After)
	}
	live, err := h.rig.Claim(t.Context(), mayorBravo, "ses-1")
	h.must(err)
	h.tick()
	if b := h.bead(id); b.Assignee != mayorBravo {
		t.Errorf("slung to %q, not to the one that came", b.Assignee)
	}
	live.Unlock()
	// Nobody came: the work is found at their next start.
	h.m = NewMayor(h.m.Agent)
	later := h.add("two")
	h.at = h.at.Add(h.tick().After)
	if next := h.tick(); h.bead(later).Assignee != alpha || next.After != 0 {
		t.Errorf("after the grace it is %s, wakes after %s", h.bead(later).Status, next.After)
	}
}

func TestMayorMakesConvoys(t *testing.T) {
	h := newTownHall(t, "")
	var ids []state.BeadID
	for i := range 4 {
		ids = append(ids, h.add(fmt.Sprint(i)))
	}
	h.tick()
	h.tick()
	all, _, err := h.rig.Convoys.All()
	h.must(err)
	if len(all) != 1 || len(all[0].BeadIDs) != 4 || h.bead(ids[3]).ConvoyID != all[0].ID {
		t.Fatalf("convoys %+v", all)
	}
	for _, id := range ids {
		h.set(id, func(b *bead.Bead) { b.Status, b.AssignmentID, b.Assignee = bead.Merged, "as-1", alpha })
	}
	h.tick()
	if c, err := h.rig.Convoys.Get(string(all[0].ID)); err != nil || c.Progress != 1 || c.CompletedAt == nil {
		t.Errorf("%+v, %v", c, err)
	}
}

// A failed attempt is reworked, the last one blocks, and the person gets one
// mail, also when the mayor dies between the mail and the bead.
func TestMayorReworksThenBlocks(t *testing.T) {
	h := newTownHall(t, "")
	id := h.add("one")
	h.tick()
	h.end(id, retire.Fail, bead.Failed, "exit status 1\nlast words")
	h.tick()
	b := h.bead(id)
	if b.Status != bead.Open || b.Attempts != 1 || len(b.ReworkNotes) != 1 || !strings.Contains(b.ReworkNotes[0], "last words") {
		t.Fatalf("after the first failure: %+v", b)
	}
	if h.hook(alpha).Status != hook.Empty {
		t.Errorf("the completed hook is %+v", h.hook(alpha))
	}
	h.tick()
	h.end(id, retire.Fail, bead.Failed, "exit status 2")

	// The process dies after the mail: nothing but the mail has happened.
	f, err := h.m.fetch(t.Context())
	h.must(err)
	d := mayor.Decide(mayor.Idle, f)
	for _, a := range d.Actions() {
		if blocked, ok := a.(mayor.Block); ok {
			h.must(h.m.warnOfBlock(t.Context(), blocked, h.bead(id)))
		}
	}
	h.set(id, func(b *bead.Bead) { b.Labels = append(b.Labels, "edited"); b.Touch(h.m.Now()) }) // somebody writes the bead meanwhile
	h.restart()
	h.tick()
	h.tick()
	b = h.bead(id)
	told := h.mail(state.Human, mail.Coordination)
	if b.Status != bead.Blocked || b.Attempts != 2 || len(told) != 1 || !strings.Contains(told[0].Body, "exit status 2") || !strings.Contains(told[0].Subject, string(id)) {
		t.Errorf("bead %+v\nmail %+v", b, told)
	}
	h.must(carry.Reopen(t.Context(), h.rig, id, "try again", state.Human))
	h.tick()
	h.end(id, retire.Block, bead.Failed, "which colour?")
	h.tick()
	b = h.bead(id)
	if told := h.mail(state.Human, mail.Coordination); b.Status != bead.Blocked || b.Attempts != 0 || len(told) != 2 || !strings.Contains(told[1].Body, "which colour?") {
		t.Errorf("a worker's question: bead %+v\n%d mails", b, len(told))
	}
}

func TestMayorVerifiesCompletedHooks(t *testing.T) {
	h := newTownHall(t, "")
	id := h.add("one")
	h.tick()
	b := h.end(id, retire.Done, bead.Done, "")
	h.tick()
	if h.hook(alpha).Status != hook.Empty {
		t.Errorf("hook %+v", h.hook(alpha))
	}
	told := h.mail(state.Human, mail.Coordination)
	if len(told) != 1 || !strings.Contains(told[0].Subject, string(b.AssignmentID)) || !strings.Contains(told[0].Body, "no merge request") {
		t.Errorf("an attempt without a merge request is told as %+v", told)
	}
	// With request and commit there is nothing to tell.
	tip, found, err := h.rig.Git.ResolveCommit(t.Context(), "HEAD")
	if err != nil || !found {
		t.Fatal(err)
	}
	second := h.add("two")
	h.tick()
	b = h.end(second, retire.Done, bead.Done, "")
	_, err = h.rig.Queue.Submit(t.Context(), mergequeue.Request{BeadID: second, AssignmentID: b.AssignmentID, AgentID: b.Assignee,
		SourceBranch: b.Branch, TargetBranch: "main", Head: string(tip)}, h.m.Now())
	h.must(err)
	h.tick()
	if got := h.mail(state.Human, mail.Coordination); len(got) != 1 || h.hook(b.Assignee).Status != hook.Empty {
		t.Errorf("%d mails, hook %+v", len(got), h.hook(b.Assignee))
	}
}

// A conflict is reworked on a new assignment, and the request gives its place up.
func TestMayorReworksConflicts(t *testing.T) {
	h := newTownHall(t, "")
	id := h.add("one")
	h.tick()
	b := h.end(id, retire.Done, bead.Done, "")
	mr, err := h.rig.Queue.Submit(t.Context(), mergequeue.Request{BeadID: id, AssignmentID: b.AssignmentID, AgentID: b.Assignee,
		SourceBranch: b.Branch, TargetBranch: "main", Head: strings.Repeat("a", 40)}, h.m.Now())
	h.must(err)
	_, err = h.rig.Queue.Update(t.Context(), string(mr.ID), func(q *mergequeue.Request) error {
		q.Failure, q.Reason = mergequeue.FailConflict, "both change a.txt"
		h.must(q.Become(mergequeue.Merging, h.m.Now()))
		return q.Become(mergequeue.Conflicted, h.m.Now())
	})
	h.must(err)
	h.tick()
	h.tick()
	after := h.bead(id)
	q, err := h.rig.Queue.Get(string(mr.ID))
	h.must(err)
	if after.Conflicts != 1 || after.Attempts != 0 || after.Status != bead.Hooked || after.AssignmentID == b.AssignmentID || q.Status != mergequeue.Superseded {
		t.Errorf("bead %+v, request %s", after, q.Status)
	}
}

func TestMayorCorruptFiles(t *testing.T) {
	h := newTownHall(t, "")
	broken, whole, late := h.add("one"), h.add("two"), h.add("three")
	h.tick()
	half := h.bead(broken).AssignmentID
	text, err := os.ReadFile(h.rig.Tree.Abs(h.rig.Beads.Path(string(broken))))
	h.must(err)
	h.must(os.WriteFile(h.rig.Tree.Abs(h.rig.Beads.Path(string(broken))), text[:9], 0o644))
	h.tick()
	if k := h.hook(alpha); k.Assignment() != half {
		t.Fatalf("the hook of the corrupt bead is %+v; a person may repair the bead", k)
	}
	rec, err := h.rig.Dispatch.Get(string(broken))
	h.must(err)
	rec.Stage = dispatch.Stored // as if its process had died
	h.must(h.rig.Dispatch.Put(string(broken), rec))
	h.must(os.MkdirAll(h.rig.Tree.Abs(h.rig.Mailbox("mayor").Dir()), 0o755))
	h.must(os.WriteFile(h.rig.Tree.Abs(h.rig.Mailbox("mayor").Dir().Join("2026-03-05T10-30-00Z-witness.json")), []byte("no mail"), 0o644))
	h.restart()
	h.said = nil
	h.end(whole, retire.Fail, bead.Failed, "no")
	for range 3 {
		h.tick()
	}
	if k := h.hook(alpha); k.Assignment() != half {
		t.Errorf("the hook of the corrupt bead is %+v; a person may repair the bead", k)
	}
	if a, b := h.bead(whole), h.bead(late); a.Attempts != 1 || a.Status != bead.Hooked && b.Status != bead.Hooked {
		t.Errorf("the others stand still: %s and %s", a.Status, b.Status)
	}
	moved, err := h.rig.Tree.Quarantined()
	h.must(err)
	if len(moved) != 1 || !strings.Contains(moved[0].Path, "mail/mayor/") || h.unread() != 0 {
		t.Errorf("quarantine %+v, %d unread", moved, h.unread())
	}
	told := 0
	for _, s := range h.said {
		if strings.Contains(s, string(broken)) {
			told++
		}
	}
	if told != 1 {
		t.Errorf("the damage is told %d times: %q", told, h.said)
	}
}

// An agent that the definition no longer names loses its work to another.
func TestMayorReassignsRetired(t *testing.T) {
	h := newTownHall(t, "")
	id := h.add("one")
	h.tick()
	h.must(h.rig.Agents.SetStatus(t.Context(), alpha, agent.Retired, h.m.Now()))
	rec, err := h.rig.Dispatch.Get(string(id))
	h.must(err)
	rec.Stage = dispatch.Launched // its assignment was not even announced
	h.must(h.rig.Dispatch.Put(string(id), rec))
	for _, e := range h.mail(alpha, mail.WorkAssignment) {
		h.must(os.Remove(h.rig.Tree.Abs(h.rig.Mailbox(alpha).Dir().Join(string(e.Name)))))
	}
	h.tick()
	h.tick()
	if b := h.bead(id); b.Assignee != mayorBravo || b.Attempts+b.Restarts != 0 || h.hook(alpha).Status != hook.Empty {
		t.Errorf("bead %+v, hook %+v", b, h.hook(alpha))
	}
}

// What is on no hook is taken back and slung again.
func TestMayorTakesBackLostWork(t *testing.T) {
	h := newTownHall(t, "")
	id := h.add("one")
	h.tick()
	b := h.work(id)
	_, err := h.rig.Hooks.Complete(t.Context(), alpha, b.AssignmentID, "", h.m.Now())
	h.must(err)
	h.tick()
	h.tick()
	if after := h.bead(id); after.Status != bead.Hooked || after.AssignmentID == b.AssignmentID || h.hook(after.Assignee).Assignment() != after.AssignmentID {
		t.Errorf("bead %+v", after)
	}
}

// An agent that was retired past the point of no return has its work landed,
// not done again.
func TestMayorFinishesForRetired(t *testing.T) {
	h := newTownHall(t, "")
	id := h.add("one")
	h.set(id, func(b *bead.Bead) { b.AllowEmpty = true })
	h.tick()
	b := h.work(id)
	_, tip, err := carry.TargetTip(t.Context(), h.rig)
	h.must(err)
	h.must(h.rig.Git.UpdateBranch(t.Context(), git.Branch(b.Branch), tip, ""))
	_, won, err := carry.Publish(t.Context(), h.rig, retire.Record{AssignmentID: b.AssignmentID, AgentID: alpha, Session: "ses-1",
		Outcome: retire.Done, Summary: "it was done already"})
	if err != nil || !won {
		t.Fatal(won, err)
	}
	h.must(h.rig.Agents.SetStatus(t.Context(), alpha, agent.Retired, h.m.Now()))
	live, err := h.rig.Claim(t.Context(), alpha, "ses-1")
	h.must(err)
	h.tick()
	if after := h.bead(id); after.Status != bead.InProgress {
		t.Errorf("it runs, and is about to finish, but the bead is %s", after.Status)
	}
	live.Unlock()
	h.tick()
	h.tick()
	rec, err := h.rig.Retire.Get(string(b.AssignmentID))
	after := h.bead(id)
	if err != nil || !rec.Stage.Final() || after.Assignments != 1 || after.Status != bead.Closed {
		t.Errorf("record %+v, %v\nbead %+v", rec, err, after)
	}
	if h.hook(alpha).Status != hook.Empty || len(h.mail("witness", mail.Coordination)) != 1 {
		t.Errorf("hook %+v", h.hook(alpha))
	}
	if _, alive := h.rig.Alive(alpha); alive {
		t.Error("the mayor still speaks for it")
	}
}

// A bead that was slung between two reads of the mayor is not taken for one that hangs nowhere.
func TestBlockUnhooked(t *testing.T) {
	h := newTownHall(t, "")
	id := h.add("Loops")
	h.tick()
	b := h.bead(id)
	block := mayor.Block{Bead: id, Assignment: b.AssignmentID, From: b.Status, Reason: "why", Subject: "s", Body: "b", Unhooked: true}
	h.must(h.m.do(t.Context(), block))
	if b := h.bead(id); b.Status != bead.Hooked {
		t.Fatalf("its hook names it, but it is %s", b.Status)
	}
	_, err := h.rig.Hooks.Clear(t.Context(), b.Assignee, b.AssignmentID, h.m.Now())
	h.must(err)
	h.must(h.m.do(t.Context(), block))
	if b := h.bead(id); b.Status != bead.Blocked {
		t.Errorf("it hangs nowhere and is %s", b.Status)
	}
}

// A bead is blocked after its person was told: nobody would tell them of one that is blocked already.
func TestBlockTellsFirst(t *testing.T) {
	h := newTownHall(t, "")
	id := h.add("Loops")
	h.tick()
	b := h.bead(id)
	box := h.rig.Tree.Abs(h.rig.Mailbox(state.Human).Dir())
	h.must(os.RemoveAll(box))
	h.must(os.WriteFile(box, []byte("in the way"), 0o600))
	block := mayor.Block{Bead: id, Assignment: b.AssignmentID, From: b.Status, Reason: "why", Subject: "s", Body: "b"}
	if err := h.m.do(t.Context(), block); err == nil {
		t.Error("nobody can be told, and it is no error")
	}
	if b := h.bead(id); b.Status != bead.Hooked {
		t.Errorf("nobody was told, and it is %s", b.Status)
	}
	h.must(os.Remove(box))
	h.must(h.m.do(t.Context(), block))
	if b := h.bead(id); b.Status != bead.Blocked || len(h.mail(state.Human, mail.Coordination)) != 1 {
		t.Errorf("it is %s", b.Status)
	}
}

// What a pause waits for is looked at, and it is tried again at once when that is there.
func TestMayorSeesThatACauseIsGone(t *testing.T) {
	h := newTownHall(t, "")
	gone := fault.New(fault.TargetGone, "main is gone")
	rules := pause.Rules{Wait: func(fault.Kind, int) time.Duration { return time.Hour }, Longest: time.Hour, Most: 1}
	h.must(h.rig.Pauses.Change(h.Context(), pause.Rig, func(p *pause.Pause) error {
		return p.Fail(pause.Try{At: state.At(h.at), BeadID: "tt-1", Assignment: "as-1"}, gone, rules)
	}))
	for i, branch := range []string{"main", "elsewhere", "main"} {
		if i > 0 {
			gittest.Run(t, h.rig.Dir, "branch", "-m", branch)
		}
		f, err := h.m.fetch(h.Context())
		h.must(err)
		if mended := f.Mended[pause.Rig]; mended != (i == 2) {
			t.Errorf("look %d, on %s: mended %v", i+1, branch, mended)
		}
	}
}
