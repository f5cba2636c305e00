package execute

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/retire"
)

// An attempt that can't be started ends with its reason, of the session that tried it, and with the fault that is to blame.
func TestPolecatSaysWhyItCannotStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		kind   fault.Kind
		want   fault.Kind
		reason string
	}{
		"a supervisor":    {&process.StartError{ID: "ses-1", Fault: fault.New(fault.ClientMissing, "no claude")}, fault.WorktreeFailed, fault.ClientMissing, "worktree: "},
		"a full disk":     {fmt.Errorf("write: %w", unix.ENOSPC), fault.WorktreeFailed, fault.DiskFull, fault.DiskFull.Phrase() + ": worktree: write: "},
		"no permission":   {fmt.Errorf("open: %w", fs.ErrPermission), fault.WorktreeFailed, fault.NoPermission, fault.NoPermission.Phrase() + ": worktree: open: "},
		"something of it": {errors.New("torn"), fault.WorktreeFailed, fault.WorktreeFailed, "worktree: torn"},
		"a bad worker":    {errors.New("no preset"), fault.BadWorker, fault.BadWorker, "worktree: no preset"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKennel(t, "")
			a := k.dead()
			k.fail(k.p.publishStartFailure(t.Context(), *k.hook().WorkItem, &startFailure{"worktree", c.err, c.kind}))
			rec := k.record(a)
			if rec.Outcome != retire.Fail || rec.Fault.Kind != c.want || rec.Fault.Reason != rec.Reason || !strings.HasPrefix(rec.Reason, c.reason) || rec.Session != deadSession {
				t.Errorf("%+v", rec)
			}
		})
	}
	// A process that is told to end has not failed.
	k := newKennel(t, "")
	a := k.dead()
	held, err := k.rig.Tree.Lock(t.Context(), state.LockGit, "worktrees")
	k.fail(err)
	defer held.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := k.p.start(ctx, *k.hook().WorkItem); !errors.Is(err, state.ErrLockTimeout) {
		t.Errorf("it is started without the lock of worktrees: %v", err)
	}
	if rec, err := k.rig.Retire.Get(string(a)); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("%+v, %v", rec, err)
	}
}

// What keeps a worker from starting is told, and ends its attempt with the fault that is to blame.
func TestPolecatTellsWhatCannotStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(k *kennel)
		kind    fault.Kind
		reason  string
	}{
		"no branch": {func(k *kennel) { k.change(func(b *bead.Bead) { b.Branch = ".." }) }, fault.WorktreeFailed, "branch: "},
		"no setup": {func(k *kennel) {
			k.rig.Def.Worktree.Copy = []string{"none.txt"}
		}, fault.SetupFailed, "worktree.copy and link: none.txt is not in "},
		"no prompt":     {func(k *kennel) { k.fail(os.WriteFile(k.rig.Tree.Abs(state.RunDir.Join("prompts")), nil, 0o600)) }, fault.WorktreeFailed, "worker sh: "},
		"no supervisor": {func(k *kennel) { k.p.Self, k.p.jobs = "/none", process.NewHost("/none") }, fault.WorktreeFailed, "worker sh: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKennel(t, "")
			a := k.dead()
			c.prepare(k)
			k.fail(k.p.start(t.Context(), *k.hook().WorkItem))
			rec := k.record(a)
			if rec.Outcome != retire.Fail || rec.Fault.Kind != c.kind || !strings.HasPrefix(rec.Reason, c.reason) || k.p.worker != nil {
				t.Errorf("%s: %s", rec.Fault.Kind, rec.Reason)
			}
			if last := k.said[len(k.said)-1]; !strings.HasPrefix(last, fmt.Sprintf("%s: %s can't be started: %s", alpha, rec.BeadID, c.reason)) {
				t.Errorf("said %q", last)
			}
		})
	}
}

// change changes the bead on the hook.
func (k *kennel) change(change func(b *bead.Bead)) {
	k.t.Helper()
	_, err := k.rig.Beads.Update(k.t.Context(), string(k.hook().WorkItem.BeadID), func(b *bead.Bead) error { change(b); return nil })
	k.fail(err)
}

// A session goes on only while its assignment is on the hook, with a bead, a target and the answers that it waited for. What can't be begun
// ends the attempt.
func TestPolecatCannotContinue(t *testing.T) {
	t.Parallel()
	begin := func() (*kennel, polecat.Continue) {
		k := newKennel(t, "")
		k.dead()
		k.p.Self, k.p.jobs = "/none", process.NewHost("/none")
		item := *k.hook().WorkItem
		k.p.worker = k.p.left(item, agentcli.Preset{Name: "actor", Command: []string{"claude"}, Prompt: agentcli.PromptFile})
		k.p.worker.bead, k.p.worker.convoy = item.BeadID, "co-1"
		return k, polecat.Continue{Item: item, Why: "it was stopped"}
	}
	prompt := func(k *kennel) string {
		text, err := os.ReadFile(k.rig.Tree.Abs(promptFile(deadSession)))
		if err != nil {
			return ""
		}
		return string(text)
	}
	for name, c := range map[string]struct {
		prepare func(k *kennel, a *polecat.Continue)
		want    error
	}{
		"taken away": {func(_ *kennel, a *polecat.Continue) { a.Item.AssignmentID = "as-other" }, state.ErrConflict},
		"no bead": {func(k *kennel, _ *polecat.Continue) {
			k.fail(os.Remove(k.rig.Tree.Abs(k.rig.Beads.Path(string(k.hook().WorkItem.BeadID)))))
		}, state.ErrNotFound},
		"no target": {func(k *kennel, _ *polecat.Continue) { k.rig.Def.Merge.Target = ".." }, git.ErrBadBranch},
	} {
		t.Run(name, func(t *testing.T) {
			k, a := begin()
			c.prepare(k, &a)
			if err := k.p.continueSession(t.Context(), a); !errors.Is(err, c.want) || prompt(k) != "" {
				t.Errorf("%v; told %q", err, prompt(k))
			}
		})
	}
	k, a := begin()
	a.Answered = true
	k.spoilt(k.rig.Mailbox(state.Human).Dir(), func() {
		if err := k.p.continueSession(t.Context(), a); err == nil || prompt(k) != "" {
			t.Errorf("without its answers: %v; told %q", err, prompt(k))
		}
	})
	for name, c := range map[string]struct {
		answered, kept bool
		told           string
		resumed        int
	}{
		"answered": {true, false, "it was stopped", 0}, "kept": {false, true, "What happened: it was stopped", 0}, "told to go on": {false, false, "still on your hook", 1},
	} {
		k, a := begin()
		a.Answered, a.Kept = c.answered, c.kept
		k.p.worker.talk.offset = 5
		k.p.worker.talk.reader.Line([]byte(`{"type":"result","is_error":true,"api_error_status":401}`))
		k.fail(k.p.continueSession(t.Context(), a))
		if rec := k.record(a.Item.AssignmentID); rec.Outcome != retire.Fail || !strings.HasPrefix(rec.Reason, "worker actor: ") {
			t.Errorf("%s: it has ended as %s: %s", name, rec.Outcome, rec.Reason)
		}
		if got := prompt(k); !strings.Contains(got, c.told) || k.p.worker.talk.resumed != c.resumed || k.p.worker.talk.began != 5 {
			t.Errorf("%s: told %q", name, got)
		}
		if !k.p.worker.talk.reader.Trying().IsZero() {
			t.Errorf("%s: how its last run ended counts for this one", name)
		}
		if told := k.story("worker.resumed"); len(told) != 1 || told[0] != "it was stopped" || !slices.Contains(k.said, fmt.Sprintf("%s: continuing %s: it was stopped", alpha, a.Item.BeadID)) {
			t.Errorf("%s: told %q, said %q", name, told, k.said)
		}
	}
	k.p.worker = nil
	k.fail(k.p.continueSession(t.Context(), a)) // there is nothing to continue
}

// Who forgets a worker leaves nothing behind that would act for it later.
func TestWorkerIsForgotten(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	timer := time.AfterFunc(time.Hour, func() {})
	w := &worker{session: deadSession, stopTimer: timer, talk: &talk{name: "claude", reader: &saying{}, shown: agentcli.Progress{Client: "claude", Figures: agentcli.Figures{Turns: 3}}}}
	k.p.worker, k.p.given = w, hook.WorkItem{AssignmentID: "as-1"}
	k.write(".chipset/run/prompts/"+string(deadSession)+".txt", "x")
	k.write(".chipset/run/prompts/"+string(deadSession)+"-other.txt", "x")
	k.write(".chipset/"+string(standDir)+"/"+string(deadSession)+"/x", "x")
	progress := agentcli.Progress{Session: deadSession, Client: "claude", ClientSession: "s"}
	k.fail(progress.Write(k.rig.Tree))
	k.p.forgetWorker()
	if timer.Stop() {
		t.Error("it will be stopped")
	}
	if k.p.worker != nil || k.p.given.AssignmentID != "" {
		t.Errorf("%+v, %+v", k.p.worker, k.p.given)
	}
	if told := k.story("worker.totals"); len(told) != 1 || told[0] != "claude: 3 turns" {
		t.Errorf("told %q", told)
	}
	if left := lying(t, k.rig, state.RunDir.Join("prompts"), agentcli.ProgressDir, standDir); left != ".chipset/run/prompts/"+string(deadSession)+"-other.txt" && left != "run/prompts/"+string(deadSession)+"-other.txt" {
		t.Errorf("left is %q", left)
	}
	k.spoilt(agentcli.ProgressDir, func() { k.p.forgetSession(deadSession) })
	if told := k.story("session.not_forgotten"); len(told) != 1 {
		t.Errorf("told %q", told)
	}
	k.p.forgetSession("")
}

// A status is remembered once it is recorded, and who left the rig stays retired.
func TestPolecatSetsItsStatus(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	is := func(want agent.Status) {
		t.Helper()
		if got, err := k.rig.Agents.Get(string(alpha)); err != nil || got.Status != want {
			t.Errorf("it is %s, not %s: %v", got.Status, want, err)
		}
	}
	k.fail(k.p.setStatus(t.Context(), agent.Active))
	k.spoilt(agent.Dir, func() {
		if err := k.p.setStatus(t.Context(), agent.Stalled); err == nil || k.p.status != agent.Active {
			t.Errorf("%v: it believes %s", err, k.p.status)
		}
	})
	is(agent.Active)
	k.fail(k.p.setStatus(t.Context(), agent.Stalled))
	if is(agent.Stalled); k.p.status != agent.Stalled {
		t.Errorf("it believes %s", k.p.status)
	}
	_, err := k.rig.Agents.Update(t.Context(), string(alpha), func(a *agent.Agent) error { a.Status = agent.Retired; return nil })
	k.fail(err)
	k.fail(k.p.setStatus(t.Context(), agent.Active))
	is(agent.Retired)
}

// What a worker did that had to plan first, and whose plan nobody approved, is a failure. While nobody can tell, it is not published.
func TestPolecatWithoutAPlan(t *testing.T) {
	t.Parallel()
	for _, outcome := range []retire.Outcome{retire.Done, retire.Fail} {
		k := newKennel(t, "")
		k.rig.Def.Worker.Presets = append(k.rig.Def.Worker.Presets, definition.WorkerPreset{Name: "strict", Plan: true})
		k.rig.Def.Worker.Default = "strict"
		a := k.dead()
		rec := retire.Record{AssignmentID: a, AgentID: alpha, Session: deadSession, Outcome: outcome}
		if outcome == retire.Fail {
			rec.Reason = "its own"
		}
		k.spoilt(k.rig.Mailbox(alpha).Dir(), func() {
			if err := k.p.do(t.Context(), polecat.Publish{Record: rec}); outcome == retire.Done && err == nil {
				t.Error("it has ended although nobody knows its plan")
			}
		})
		k.fail(k.p.do(t.Context(), polecat.Publish{Record: rec}))
		want := "the worker ended without an approved plan: "
		if outcome == retire.Fail {
			want = "its own"
		}
		if got := k.record(a); got.Outcome != retire.Fail || !strings.HasPrefix(got.Reason, want) {
			t.Errorf("%s: %s", got.Outcome, got.Reason)
		}
	}
}

// A worker that has ended its turn waits for what it asked, and goes on with an answer that came after it had begun.
func TestPolecatAsked(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	a := k.dead()
	item := *k.hook().WorkItem
	ask := func() mail.Name {
		t.Helper()
		name, err := k.rig.Sender.Send(t.Context(), mail.Message{From: alpha, To: state.Human, Type: mail.PermissionRequest, Subject: "may I?", Body: "x",
			Ref: &mail.Ref{BeadID: item.BeadID, AssignmentID: a}})
		k.fail(err)
		return name
	}
	look := func(status polecat.WorkerStatus, started, ended time.Duration, rec *retire.Record) polecat.Facts {
		t.Helper()
		h, now := k.hook(), k.rig.Clock.Now()
		exit := polecat.Exit{Resumable: true, Ending: polecat.Clean}
		k.p.worker = &worker{endedAt: state.At(now.Add(ended))}
		defer func() { k.p.worker = nil }()
		f := polecat.Facts{Hook: &h, Record: rec, Worker: polecat.Worker{Status: status, StartedAt: state.At(now.Add(started)), Exit: exit}}
		k.fail(k.p.fetchAsked(&f))
		return f
	}
	first := ask()
	if f := look(polecat.WorkerExited, -time.Hour, 0, nil); !slices.Equal(f.Asked, []mail.Name{first}) || f.Answered || f.AnsweredLate || f.WaitedInVain {
		t.Errorf("unanswered: %+v", f)
	}
	if f := look(polecat.WorkerRunning, -time.Hour, 0, nil); len(f.Asked) > 0 {
		t.Errorf("while it runs: %v", f.Asked)
	}
	if f := look(polecat.WorkerExited, -time.Hour, 0, &retire.Record{}); len(f.Asked) > 0 {
		t.Errorf("when its attempt is over: %v", f.Asked)
	}
	_, err := k.rig.Sender.Send(t.Context(), mail.Message{From: state.Human, To: alpha, Type: mail.PermissionResponse, Subject: "yes", Body: "x", InReplyTo: string(first),
		Metadata: []byte(`{"approved":true}`)})
	k.fail(err)
	for _, c := range []struct {
		started, ended time.Duration
		answered, late bool
	}{{-time.Hour, -time.Minute, true, true}, {-time.Hour, time.Minute, true, false}, {time.Minute, time.Hour, false, false}} {
		if f := look(polecat.WorkerExited, c.started, c.ended, nil); len(f.Asked) > 0 || f.Answered != c.answered || f.AnsweredLate != c.late {
			t.Errorf("began %s, ended %s from the answer: %+v", c.started, c.ended, f)
		}
	}
	k.spoilt(k.rig.Mailbox(state.Human).Dir(), func() {
		f := polecat.Facts{Hook: &hook.Hook{Status: hook.Active, WorkItem: &item}}
		if err := k.p.fetchAsked(&f); err == nil {
			t.Error("what it asked can't be read, and is nothing")
		}
	})
}

// A person's session hears what came of its attempt, and where to find what it had not finished, and nothing of what it was told before.
func TestBesideHearsOfItsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(s *beside, me *actor.Actor) error
		told string
	}{
		"failed": {func(s *beside, me *actor.Actor) error {
			_, err := me.Verdict(s.t.Context(), retire.Fail, "", "no idea")
			return err
		}, "failed: no idea"},
		"blocked": {func(s *beside, me *actor.Actor) error {
			_, err := me.Verdict(s.t.Context(), retire.Block, "", "which one?")
			return err
		},
			"waits for the person: which one?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newBeside(t, "")
			gittest.Write(t, s.rig.Worktree(s.id), "mine.txt", "mine")
			h, err := s.rig.Hooks.Get(string(s.id))
			s.fail(err)
			_, err = s.rig.Sender.Send(t.Context(), mail.Message{From: state.Human, To: s.id, Type: mail.Coordination, Subject: "of the person", Body: "x",
				ID: ready + string(h.Assignment())})
			s.fail(err)
			s.fail(c.end(s, &actor.Actor{Rig: s.rig, ID: s.id}))
			s.begin()
			told := s.told()
			if len(told) != 2 || !strings.HasPrefix(told[0], "of the person") || !strings.Contains(told[1], string(s.bead)+" "+c.told) ||
				!strings.Contains(told[1], "What was not finished is saved on refs/chipset/salvage/") || s.saved("mine.txt") != "mine" {
				t.Errorf("told %q, saved %q", told, s.saved("mine.txt"))
			}
		})
	}
}
