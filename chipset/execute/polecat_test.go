package execute

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

func TestPolecatFinishesABead(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	rec := k.sling("echo one > one.txt; git add one.txt; git commit -qm 'add one'; echo two > two.txt",
		func(b *bead.Bead) { b.Title = "add two files" })
	k.until("it is retired", k.retired(rec.AssignmentID))

	b := k.bead(rec.BeadID)
	if b.Status != bead.Done {
		t.Fatalf("bead is %s: %s", b.Status, b.CloseReason)
	}
	all, _, _ := k.rig.Queue.Queue()
	mr := mergequeue.Find(all, rec.AssignmentID)
	if mr == nil || mr.Head != k.git("rev-parse", "refs/heads/polecat/"+string(b.ID)) || mr.TargetBranch != "main" || mr.Base != k.git("rev-parse", "main") {
		t.Fatalf("merge request %+v", mr)
	}
	if files := k.git("ls-tree", "--name-only", mr.Head); files != "README\none.txt\ntwo.txt" {
		t.Errorf("the branch holds %q", files)
	}
	if message := k.git("log", "-1", "--format=%B", mr.Head); !strings.HasPrefix(message, "add two files\n\nBead: "+string(b.ID)) {
		t.Errorf("the rest was committed as %q", message)
	}
	if h := k.hook(); h.Status != hook.Completed || h.Assignment() != rec.AssignmentID {
		t.Errorf("hook %+v", h)
	}
	for to, kinds := range map[state.AgentID][]mail.Type{"mayor": {mail.CompletionReport, mail.IdleNotification}, "witness": {mail.Coordination}} {
		unread, _, _ := k.rig.Mailbox(to).Unread()
		var got []mail.Type
		for i := range unread {
			got = append(got, unread[i].Type)
			if unread[i].Ref.AssignmentID != rec.AssignmentID {
				t.Errorf("mail to %s: %+v", to, unread[i])
			}
		}
		if !slices.Equal(got, kinds) {
			t.Errorf("mail to %s: %v", to, got)
		}
	}
	if unread, _, _ := k.rig.Mailbox(alpha).Unread(); len(unread) != 0 {
		t.Errorf("unread of the polecat: %+v", unread)
	}
	if head := k.gitAt(k.rig.Worktree(alpha), "rev-parse", "--abbrev-ref", "HEAD"); head != "HEAD" {
		t.Errorf("the worktree is on %s", head)
	}
	if a, _ := k.rig.Agents.Get(string(alpha)); a.Status != agent.Active && a.Status != agent.Idle {
		t.Errorf("agent is %s", a.Status)
	}
}

func TestPolecatFailures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, script, worker string
		outcome              retire.Outcome
		reason               string
		status               bead.Status
		change               func(*bead.Bead)
		salvaged             string
		fault                fault.Kind
	}{
		{name: "exit code", script: "echo half > half.txt; echo what went wrong; exit 3", outcome: retire.Fail,
			reason: "exit code 3: what went wrong", status: bead.Failed, salvaged: "half.txt"},
		{name: "no change", script: "true", outcome: retire.Fail, reason: "no change", status: bead.Failed},
		{name: "nothing but an empty commit", script: "git commit -q --allow-empty -m nothing", outcome: retire.Fail, reason: "no change", status: bead.Failed},
		{name: "allowed to be empty", script: "true", outcome: retire.Done, status: bead.Closed, change: func(b *bead.Bead) { b.AllowEmpty = true }},
		{name: "touches the tree", script: "mkdir -p .chipset; echo x > .chipset/chipset.yaml; git add -f .chipset; git commit -qm x", outcome: retire.Fail,
			reason: "changes .chipset/", status: bead.Failed, salvaged: ".chipset/chipset.yaml"},
		{name: "no such command", worker: "/no/such/worker --now", outcome: retire.Fail, reason: "/no/such/worker", status: bead.Failed, fault: fault.ClientMissing},
		{name: "a command that fails at once", worker: "sh -c 'echo no such table; exit 6'", outcome: retire.Fail, reason: "exit code 6: no such table", status: bead.Failed, fault: fault.ShortFailure},
		{name: "a command that fails after a change", worker: "sh -c 'echo half > half.txt; exit 6'", outcome: retire.Fail, reason: "exit code 6", status: bead.Failed, salvaged: "half.txt"},
		{name: "unmerged", script: "echo a > README; git commit -qam a; a=$(git rev-parse HEAD); git reset -q --hard HEAD~1; echo b > README; git commit -qam b; git merge $a || true",
			outcome: retire.Fail, reason: "unmerged paths: README", status: bead.Failed, salvaged: "README"},
		{name: "killed", script: "kill -KILL $$", outcome: retire.Fail, reason: "the worker was ended from outside 3 times, at last by SIGKILL", status: bead.Failed},
		{name: "aborted", script: "kill -ABRT $$", outcome: retire.Fail, reason: "killed by SIGABRT", status: bead.Failed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := newKennel(t, "")
			rec := k.sling(tt.script, func(b *bead.Bead) {
				b.Worker = tt.worker
				if tt.change != nil {
					tt.change(b)
				}
			})
			k.until("it is retired", k.retired(rec.AssignmentID))
			end := k.record(rec.AssignmentID)
			if end.Outcome != tt.outcome || !strings.Contains(end.Reason, tt.reason) {
				t.Errorf("record says %s: %q", end.Outcome, end.Reason)
			}
			if end.Fault.Kind != tt.fault {
				t.Errorf("fault %+v", end.Fault)
			}
			if b := k.bead(rec.BeadID); b.Status != tt.status || !strings.Contains(b.CloseReason, tt.reason) {
				t.Errorf("bead is %s: %q", b.Status, b.CloseReason)
			}
			if all, _, _ := k.rig.Queue.Queue(); len(all) != 0 {
				t.Errorf("merge requests: %+v", all)
			}
			if tt.salvaged != "" {
				if end.Salvage != "refs/chipset/salvage/"+string(rec.AssignmentID) {
					t.Fatalf("saved on %q", end.Salvage)
				}
				if files := strings.Fields(k.git("ls-tree", "-r", "--name-only", end.Salvage)); !slices.Contains(files, tt.salvaged) {
					t.Errorf("saved %v", files)
				}
			}
			if k.hook().Status != hook.Completed {
				t.Errorf("hook %+v", k.hook())
			}
		})
	}
}

// TestPolecatCannotStart: what stands in the way of a worker is the attempt's
// failure, once, and no loop.
func TestPolecatCannotStart(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, reason string
		fault        fault.Kind
		hinder       func(k *kennel)
		change       func(b *bead.Bead)
	}{
		{name: "foreign repository", reason: "worktree: ", fault: fault.WorktreeFailed, hinder: func(k *kennel) {
			k.write(".chipset/worktrees/"+string(alpha)+"/.git/HEAD", "ref: refs/heads/mine\n")
			k.write(".chipset/worktrees/"+string(alpha)+"/mine.txt", "keep\n")
		}},
		{name: "folder with a repository", reason: "worktree: ", fault: fault.WorktreeFailed, hinder: func(k *kennel) {
			k.write(".chipset/worktrees/"+string(alpha)+"/clone/.git/HEAD", "ref: refs/heads/mine\n")
			k.write(".chipset/worktrees/"+string(alpha)+"/mine.txt", "keep\n")
		}},
		{name: "no such target", reason: "nothing to work on: target branch main: not found", fault: fault.TargetGone, hinder: func(k *kennel) { k.git("branch", "-m", "trunk") }},
		{name: "no right to write", reason: "access to a file is refused: worktree: ", fault: fault.NoPermission, hinder: func(k *kennel) {
			if os.Geteuid() == 0 {
				k.t.Skip("no file is closed to root")
			}
			common := filepath.Join(k.dir, ".git")
			if err := os.Chmod(common, 0o555); err != nil {
				k.t.Fatal(err)
			}
			k.t.Cleanup(func() { _ = os.Chmod(common, 0o755) })
		}},
		{name: "no command", reason: "worker ", fault: fault.BadWorker, change: func(b *bead.Bead) { b.Worker = "\"" }},
		{name: "no log", reason: "worker sh: ", fault: fault.WorktreeFailed, hinder: func(k *kennel) {
			if err := os.RemoveAll(filepath.Join(k.dir, ".chipset/logs")); err != nil {
				k.t.Fatal(err)
			}
			k.write(".chipset/logs", "a file\n")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := newKennel(t, "")
			if tt.hinder != nil {
				tt.hinder(k)
			}
			rec := k.sling("echo x > x.txt", func(b *bead.Bead) {
				if tt.change != nil {
					tt.change(b)
				}
			})
			k.until("it is retired", k.retired(rec.AssignmentID))
			if b := k.bead(rec.BeadID); b.Status != bead.Failed || !strings.HasPrefix(b.CloseReason, tt.reason) {
				t.Errorf("bead is %s: %q", b.Status, b.CloseReason)
			}
			if f := k.record(rec.AssignmentID).Fault; f.Kind != tt.fault || f.Class != fault.Environment || !strings.HasPrefix(f.Reason, tt.reason) {
				t.Errorf("fault %+v", f)
			}
			if strings.Contains(tt.name, "repository") && !k.working("mine.txt")() {
				t.Error("the foreign file is gone")
			}
		})
	}
}

func TestPolecatEnvironment(t *testing.T) {
	t.Setenv("CHIPSET_AGENT", "somebody-else")
	t.Setenv("GIT_DIR", "/nowhere")
	t.Setenv("LANG_OF_TEST", "one")
	p := &Polecat{base: base{Agent: Agent{Rig: &rig.Rig{Dir: "/rig"}, ID: alpha}}}
	env := p.environment(surroundings{bin: "/opt/chipset/bin", inherited: ownEnvironment(), identity: []string{"GIT_AUTHOR_NAME=me"},
		preset: []string{"LANG_OF_TEST=two", "PATH=/only"}}, p.identity(
		hook.WorkItem{BeadID: "tt-1", AssignmentID: "as-1", Session: "ses-1"}))
	values := map[string]string{}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if _, twice := values[name]; twice {
			t.Errorf("%s stands twice", name)
		}
		values[name] = value
	}
	for name, want := range map[string]string{"CHIPSET_DIR": "/rig", "CHIPSET_AGENT": string(alpha), "CHIPSET_BEAD": "tt-1", "CHIPSET_ASSIGNMENT": "as-1",
		"CHIPSET_SESSION": "ses-1", "GIT_DIR": "", "LANG_OF_TEST": "two", "PATH": "/opt/chipset/bin:/only", "GIT_AUTHOR_NAME": "me"} {
		if values[name] != want {
			t.Errorf("%s is %q, not %q", name, values[name], want)
		}
	}
}

func TestPolecatWorkerReports(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	rec := k.sling("echo x > x.txt; sleep 60")
	k.until("the worker works", k.working("x.txt"))
	h := k.hook()
	_, won, err := carry.Publish(t.Context(), k.rig, retire.Record{AssignmentID: rec.AssignmentID, AgentID: alpha, Session: h.WorkItem.Session,
		Outcome: retire.Block, Reason: "which of the two?"})
	if err != nil || !won {
		t.Fatalf("won %v, %v", won, err)
	}
	if _, won, err = carry.Publish(t.Context(), k.rig, retire.Record{AssignmentID: rec.AssignmentID, AgentID: alpha, Outcome: retire.Done}); won || err != nil {
		t.Fatalf("the second record: won %v, %v", won, err)
	}
	k.until("it is retired", k.retired(rec.AssignmentID))
	if b := k.bead(rec.BeadID); b.Status != bead.Failed || b.CloseReason != "blocked: which of the two?" {
		t.Errorf("bead is %s: %q", b.Status, b.CloseReason)
	}
}

func TestPolecatTakenAway(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	rec := k.sling("echo half > half.txt; sleep 60")
	k.until("the worker works", k.working("half.txt"))
	if _, err := carry.Unsling(t.Context(), k.rig, rec.BeadID, "mayor"); err != nil {
		t.Fatal(err)
	}
	k.until("the worker is given up", func() bool { return k.p.worker == nil })
	if files := k.git("ls-tree", "--name-only", "refs/chipset/salvage/"+string(rec.AssignmentID)); !strings.Contains(files, "half.txt") {
		t.Errorf("saved %q", files)
	}
	if b := k.bead(rec.BeadID); b.Status != bead.Open {
		t.Errorf("bead is %s", b.Status)
	}
	// The same polecat takes the next assignment of the same bead.
	second := k.slingBead(rec.BeadID)
	k.until("it works again", k.working("half.txt"))
	if branch := k.gitAt(k.rig.Worktree(alpha), "rev-parse", "--abbrev-ref", "HEAD"); branch != second.Branch || branch != "polecat/"+string(rec.BeadID)+"-2" {
		t.Errorf("the second assignment works on %s", branch)
	}
}

func TestPolecatAbort(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	rec := k.sling("echo half > half.txt; sleep 60")
	k.until("the worker works", k.working("half.txt"))
	send := func(from state.AgentID, kind nudge.Type) nudge.Nudge {
		n, err := k.rig.Slot(alpha).Send(t.Context(), nudge.Nudge{From: from, Type: kind, Message: "enough", RequiresResponse: true,
			Ref: &nudge.Ref{AssignmentID: rec.AssignmentID}}, k.rig.Clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	asked := send("witness", nudge.HealthCheck)
	k.until("the check is answered", func() bool {
		n, err := k.rig.Slot("witness").Latest()
		return err == nil && n.InReplyTo != nil && n.InReplyTo.Equal(asked.Timestamp.Time) && strings.Contains(n.Message, "worker running")
	})
	send("witness", nudge.Abort)
	k.until("the abort is refused", func() bool {
		left, _, err := k.rig.Slot(alpha).Unseen()
		return err == nil && len(left) == 0
	})
	if k.hook().Status != hook.Active {
		t.Fatal("a witness has aborted a worker")
	}
	send("mayor", nudge.Abort)
	k.until("it is retired", k.retired(rec.AssignmentID))
	if b := k.bead(rec.BeadID); b.Status != bead.Failed || b.CloseReason != "aborted: enough" {
		t.Errorf("bead is %s: %q", b.Status, b.CloseReason)
	}
}

func TestPolecatTouchesOnProgressOnly(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	k.sling("while [ ! -e $CHIPSET_DIR/quiet ]; do echo tick; sleep 0.02; done; echo q > quiet.txt; sleep 60")
	k.until("the worker runs", func() bool { return k.p.worker != nil })
	began := k.hook().LastActivity
	k.until("progress is written", func() bool { return k.hook().LastActivity.After(began.Time) })
	k.write("quiet", "")
	k.until("the worker is quiet", k.working("quiet.txt"))
	looks := 0
	var last, quiet state.Time
	k.until("it was quiet for a while", func() bool {
		if h := k.hook(); h.LastActivity != last {
			last, looks = h.LastActivity, 0
		}
		quiet = k.rig.Clock.Now()
		looks++
		return looks > 10 && quiet.Sub(last.Time) > 500*time.Millisecond
	})
}

// TestPolecatTouchesOnWork: a quiet build is no stall.
func TestPolecatTouchesOnWork(t *testing.T) {
	t.Parallel()
	if goruntime.GOOS != "linux" {
		t.Skip("processor time of others is known on Linux only")
	}
	k := newKennel(t, "")
	k.sling("while [ ! -e $CHIPSET_DIR/enough ]; do :; done")
	k.until("the worker runs", func() bool { return k.p.worker != nil })
	began := k.hook().LastActivity
	k.until("its work is seen", func() bool { return k.hook().LastActivity.After(began.Time) })
	k.write("enough", "")
	k.until("it ends", k.hookIs(hook.Completed))
}

func TestPolecatShutdown(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	ask := func(session state.SessionID) mail.Name {
		n, err := k.rig.Sender.Send(t.Context(), mail.Message{From: state.Human, To: alpha, Type: mail.ShutdownRequest, Subject: "please end",
			Ref: &mail.Ref{Session: session}})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	stale := ask("ses-earlier")
	rec := k.sling("echo x > x.txt; while [ ! -e $CHIPSET_DIR/go ]; do sleep 0.01; done")
	k.until("the worker works", k.working("x.txt"))
	if e, err := k.rig.Mailbox(alpha).Get(stale); err != nil || !e.Read || k.p.state.ShuttingDown {
		t.Fatalf("stale request %+v, %v", e, err)
	}
	name := ask(k.p.Session)
	k.until("it is asked", func() bool { return k.p.state.ShuttingDown })
	if k.p.finished {
		t.Fatal("it ended with a worker at work")
	}
	k.write("go", "")
	k.until("it ends", func() bool { return k.p.finished })
	if b := k.bead(rec.BeadID); b.Status != bead.Done {
		t.Errorf("bead is %s: %s", b.Status, b.CloseReason)
	}
	if e, err := k.rig.Mailbox(alpha).Get(name); err != nil || !e.Read {
		t.Errorf("request %+v, %v", e, err)
	}
	answers, _, _ := k.rig.Mailbox(state.Human).Unread()
	if len(answers) != 1 || answers[0].Type != mail.ShutdownResponse || answers[0].InReplyTo != string(name) {
		t.Errorf("answers %+v", answers)
	}
}

func TestPolecatClaims(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "dispatch: {strategy: auto_claim}\n")
	b, err := k.rig.Beads.Add(bead.Bead{Title: "claim me", Description: "echo x > x.txt"}, "tt", k.rig.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	k.until("it is done", func() bool { return k.bead(b.ID).Status == bead.Done })
	if rec, err := k.rig.Dispatch.Get(string(b.ID)); err != nil || rec.By != alpha || rec.Stage != dispatch.Confirmed {
		t.Errorf("dispatch %+v, %v", rec, err)
	}
}

func TestPolecatCorruptHook(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	path := k.rig.Tree.Abs(k.rig.Hooks.Path(string(alpha)))
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := k.p.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "{" {
		t.Errorf("the hook is %q, %v", data, err)
	}
	if kept, err := k.rig.Tree.Quarantined(); err != nil || len(kept) != 1 || !kept[0].Copied {
		t.Errorf("quarantine %+v, %v", kept, err)
	}
}
