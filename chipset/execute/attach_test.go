package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/retire"
)

// byHand is what the client does while a person has it: it says that it is there, and stays until the file go is.
const byHand = "echo hand > hand.txt; until test -e go; do sleep 0.02; done; rm go\n"

// attach takes the session of the kennel's polecat over, as another process does. The terminal is the null device.
func (k *kennel) attach(ctx context.Context) <-chan error { return k.attachTelling(ctx, k.t.Logf) }

// attachTelling is attach for who reads what it says.
func (k *kennel) attachTelling(ctx context.Context, say func(string, ...any)) <-chan error {
	k.t.Helper()
	r, err := rig.Open(k.t.Context(), k.dir, time.Now)
	if err != nil {
		k.t.Fatal(err)
	}
	r.Def = k.rig.Def
	terminal, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = terminal.Close() })
	p := NewPolecat(Agent{Rig: r, ID: alpha, Session: state.NewSessionID(), Self: k.p.Self, Say: say})
	done := make(chan error, 1)
	go func() { done <- p.Attach(ctx, terminal) }()
	return done
}

func (k *kennel) leave() { k.write(".chipset/worktrees/polecat-alpha/go", "") }

// known is true once the worker works, and its client's session is known.
func (k *kennel) known() bool {
	return k.working("half.txt")() && agentcli.ReadProgress(k.rig.Tree, k.hook().WorkItem.Session) != nil
}

func (k *kennel) lent() bool { return k.p.state.Phase == polecat.Lent }

// TestAttach: a person takes a session over and leaves it again. Before, meanwhile and after it is one session in one
// worktree, with one client at a time, and nobody is charged.
func TestAttach(t *testing.T) {
	k, calls := fakeClient(t, "", begins+half, byHand, begins+commits+finished)
	rec := k.sling("do it")
	k.until("the worker works", k.known)
	session := k.hook().WorkItem.Session
	done := k.attach(t.Context())
	k.until("the person has it", k.working("hand.txt"))

	if l := k.hook().WorkItem.Lease; l == nil || l.By != state.Human || l.PID != os.Getpid() || l.StartTime == 0 || !k.lent() {
		t.Errorf("the lease says %+v", l)
	}
	if err := <-k.attach(t.Context()); !errors.Is(err, state.ErrConflict) || !strings.Contains(err.Error(), "human has it since") {
		t.Errorf("a second person: %v", err)
	}
	k.leave()
	if err := <-done; err != nil {
		t.Error(err)
	}
	k.until("it is retired", k.retired(rec.AssignmentID))

	all := calls()
	if len(all) != 3 {
		t.Fatalf("it ran %d times: %q", len(all), all)
	}
	if args, _, _ := strings.Cut(all[1], "\n"); strings.Contains(args, "-p") || strings.Contains(args, "stream-json") || !strings.Contains(args, "--resume sess-1") ||
		strings.Contains(args, "--settings") || !strings.Contains(args, "--mcp-config") {
		t.Errorf("the person's client was called with %q", args)
	}
	if !strings.Contains(all[2], "--resume sess-1") || !strings.Contains(all[2], "taken over by a person") {
		t.Errorf("it went on with %q", all[2])
	}
	if files := k.git("ls-tree", "--name-only", "polecat/"+string(rec.BeadID)); files != "README\nhalf.txt\nhand.txt\none.txt" {
		t.Errorf("the branch holds %q", files)
	}
	b := k.bead(rec.BeadID)
	if b.Status != bead.Done || b.Attempts+b.Restarts != 0 || k.record(rec.AssignmentID).Session != session {
		t.Errorf("bead is %s: %s, %s", b.Status, b.CloseReason, b.FailureCounts())
	}
	if k.hook().WorkItem.Lease != nil {
		t.Error("the lease is still on the hook")
	}
}

// TestAttachInterrupted: whatever ends while a person has the session, it goes on when they are gone.
func TestAttachInterrupted(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(k *kennel, cancel context.CancelFunc)
		// left is whether the person is still there afterwards.
		left bool
	}{
		{"the person's process is told to end", func(_ *kennel, cancel context.CancelFunc) { cancel() }, false},
		{"the rig was killed", func(k *kennel, _ context.CancelFunc) { k.crash() }, true},
		{"the rig was stopped", func(k *kennel, _ context.CancelFunc) { k.p.Close(); k.start() }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, calls := fakeClient(t, "", begins+half, byHand, begins+commits+finished)
			rec := k.sling("do it")
			k.until("the worker works", k.known)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := k.attach(ctx)
			k.until("the person has it", k.working("hand.txt"))
			tt.end(k, cancel)
			if tt.left {
				for range 3 { // it finds out, and rests
					if _, err := k.p.Tick(t.Context()); err != nil || !k.lent() {
						t.Fatalf("%v, phase %s", err, k.p.state.Phase)
					}
				}
				k.leave()
			}
			if err := <-done; err != nil && tt.left {
				t.Error(err)
			}
			k.until("it is retired", k.retired(rec.AssignmentID))
			if all := calls(); len(all) != 3 || !strings.Contains(all[2], "--resume sess-1") {
				t.Errorf("it was called with %q", all)
			}
			if b := k.bead(rec.BeadID); b.Status != bead.Done || b.Attempts+b.Restarts != 0 {
				t.Errorf("bead is %s: %s, %s", b.Status, b.CloseReason, b.FailureCounts())
			}
		})
	}
}

// TestAttachReported: what a person's client reports counts once they have left, and not before.
func TestAttachReported(t *testing.T) {
	k, calls := fakeClient(t, "", begins+half, "echo one > one.txt; git add -A; git commit -qm one\n"+byHand)
	rec := k.sling("do it")
	k.until("the worker works", k.known)
	done := k.attach(t.Context())
	k.until("the person has it", k.working("hand.txt"))
	end := polecatDone(rec.AssignmentID, k.hook().WorkItem.Session, rec.BeadID)
	if err := k.p.publish(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := k.p.Tick(t.Context()); err != nil || !k.lent() {
			t.Fatalf("%v, phase %s", err, k.p.state.Phase)
		}
	}
	if k.retired(rec.AssignmentID)() {
		t.Error("it was retired under the person")
	}
	k.leave()
	if err := <-done; err != nil {
		t.Error(err)
	}
	k.until("it is retired", k.retired(rec.AssignmentID))
	if all := calls(); len(all) != 2 {
		t.Errorf("it ran %d times", len(all))
	}
	if b := k.bead(rec.BeadID); b.Status != bead.Done {
		t.Errorf("bead is %s: %s", b.Status, b.CloseReason)
	}
}

// TestAttachTakenAway: the assignment is taken away while a person has it. They hear of it, and what they did is saved.
func TestAttachTakenAway(t *testing.T) {
	k, _ := fakeClient(t, "", begins+half, byHand)
	rec := k.sling("do it")
	k.until("the worker works", k.known)
	ctx, cancel := context.WithTimeout(t.Context(), polecatPatience)
	defer cancel()
	done := k.attach(ctx)
	k.until("the person has it", k.working("hand.txt"))
	if _, err := k.rig.Hooks.Clear(t.Context(), alpha, rec.AssignmentID, k.p.Now()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, state.ErrConflict) || !strings.Contains(err.Error(), "taken away") {
		t.Errorf("the person is told %v", err)
	}
	k.until("the work is saved", func() bool {
		return strings.Contains(k.git("for-each-ref", "refs/chipset/salvage"), string(rec.AssignmentID)) && k.p.state.Phase == polecat.Idle
	})
	if files := k.git("ls-tree", "--name-only", "refs/chipset/salvage/"+string(rec.AssignmentID)); !strings.Contains(files, "hand.txt") {
		t.Errorf("saved is %q", files)
	}
}

// TestAttachRefused: what can't be taken over is refused with the reason, and its worker works on.
func TestAttachRefused(t *testing.T) {
	refused := func(k *kennel, want string) {
		k.t.Helper()
		if err := <-k.attach(k.t.Context()); !errors.Is(err, state.ErrConflict) || !strings.Contains(err.Error(), want) {
			k.t.Errorf("%v, want %q", err, want)
		}
	}
	k := newKennel(t, "")
	refused(k, "it works on nothing: its hook is empty")
	k.sling("echo x > half.txt; sleep 60")
	k.until("the script works", k.working("half.txt"))
	refused(k, "its worker sh has no sessions that a person could take over")

	k, _ = fakeClient(t, "", late+begins+half)
	rec := k.sling("do it")
	k.until("the client starts", k.working("early.txt"))
	if err := k.p.publish(t.Context(), polecatDone(rec.AssignmentID, k.hook().WorkItem.Session, rec.BeadID)); err != nil {
		t.Fatal(err)
	}
	refused(k, "the attempt at "+string(rec.BeadID)+" is over: done")
	if _, err := os.Stat(filepath.Join(k.rig.Worktree(alpha), "early.txt")); err != nil {
		t.Error(err)
	}
}

// TestAttachFence: a worker that is about to start when a person takes over does not.
func TestAttachFence(t *testing.T) {
	k, calls := fakeClient(t, "", begins+half, begins+commits+finished)
	rec := k.sling("do it")
	k.until("the worker works", k.known)
	k.p.Close()
	k.crash()
	lease, err := k.p.takeLease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = k.p.continueSession(t.Context(), polecat.Continue{Item: *k.hook().WorkItem, Why: "x", Kept: true})
	if !errors.Is(err, state.ErrConflict) || len(calls()) != 1 {
		t.Errorf("%v, and it ran %d times", err, len(calls()))
	}
	lease.Unlock()
	k.until("it is retired", k.retired(rec.AssignmentID))
}

// polecatDone is the end that a worker reports.
func polecatDone(a state.AssignmentID, s state.SessionID, b state.BeadID) retire.Record {
	return retire.Record{AssignmentID: a, AgentID: alpha, Session: s, BeadID: b, Outcome: retire.Done}
}

// TestAttachTornWorktree: nobody is put to work where a power cut may have torn what the session left.
func TestAttachTornWorktree(t *testing.T) {
	k, _ := fakeClient(t, "", begins+half, byHand)
	k.sling("do it")
	k.until("the worker works", k.known)
	use, known := carry.ReadWorktree(k.rig, alpha)
	if use.Torn = true; !known {
		t.Fatal("nothing says whose worktree it is")
	}
	if err := carry.WriteWorktree(k.rig, use); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := k.attach(ctx)
	var err error
	k.until("it is refused", func() bool {
		select {
		case err = <-done:
			return true
		default:
			return k.working("hand.txt")()
		}
	})
	if !errors.Is(err, state.ErrConflict) || !strings.Contains(err.Error(), "has changed since it ended") {
		t.Errorf("the person is told %v", err)
	}
}

// late is a client that says its session when it is asked to.
const late = "echo x > early.txt; until test -e begin; do sleep 0.02; done; rm begin\n"

// TestAttachWaits: a client that has not said yet which session it began is waited for, until it ends.
func TestAttachWaits(t *testing.T) {
	for _, tt := range []struct {
		name, run string
		end       func(k *kennel, leave context.CancelFunc)
		want      error
		says      string
	}{
		{"it begins", late + begins + half, func(k *kennel, _ context.CancelFunc) {
			k.write(".chipset/worktrees/polecat-alpha/begin", "")
			k.until("the person has it", k.working("hand.txt"))
			k.leave()
		}, nil, ""},
		{"it ends", late + "exit 3\n", func(k *kennel, _ context.CancelFunc) {
			k.write(".chipset/worktrees/polecat-alpha/begin", "")
		}, state.ErrConflict, "its worker ended before it began a session"},
		{"the person leaves", late + begins + half, func(_ *kennel, leave context.CancelFunc) { leave() }, context.Canceled, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k, _ := fakeClient(t, "", tt.run, byHand)
			k.sling("do it")
			k.until("the client starts", k.working("early.txt"))
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			said := make(chan string, 10)
			done := k.attachTelling(ctx, func(format string, args ...any) { said <- fmt.Sprintf(format, args...) })
			if line := <-said; line != "waiting for polecat-alpha's session to begin" {
				t.Errorf("the person is told %q", line)
			}
			tt.end(k, leave)
			if err := <-done; !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// What can't be known of a session keeps a person from it, and what can't be locked is not started.
func TestAttachKnowsOrRefuses(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	k.rig.Def.Worker.Default = "claude"
	k.dead()
	item := *k.hook().WorkItem
	if got, err := k.p.attachable(); err != nil || got.AssignmentID != item.AssignmentID {
		t.Errorf("%+v, %v", got, err)
	}
	for name, c := range map[string]struct {
		hinder func(do func())
		fails  func(err error) bool
	}{
		"no hook": {func(do func()) { k.spoilt(hook.Dir, do) }, func(err error) bool { return !errors.Is(err, state.ErrConflict) }},
		"no bead": {func(do func()) { k.spoilt(bead.Dir, do) }, func(err error) bool { return !errors.Is(err, state.ErrConflict) }},
		"no such worker": {func(do func()) {
			k.rig.Def.Worker.Default = "\""
			do()
			k.rig.Def.Worker.Default = "claude"
		}, func(err error) bool { var f *startFailure; return errors.As(err, &f) }},
		"another client": {func(do func()) {
			k.rig.Def.Worker.Default = "sh"
			do()
			k.rig.Def.Worker.Default = "claude"
		}, func(err error) bool { return errors.Is(err, state.ErrConflict) }},
	} {
		c.hinder(func() {
			if _, err := k.p.attachable(); err == nil || !c.fails(err) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if _, err := k.p.workerEnded(t.Context(), item); !errors.Is(err, state.ErrConflict) || !strings.Contains(err.Error(), "no session to resume") {
		t.Errorf("without a session: %v", err)
	}
	k.write(".chipset/"+string(rig.ExitRecord(deadSession)), "{")
	if _, err := k.p.workerEnded(t.Context(), item); err == nil || errors.Is(err, state.ErrConflict) {
		t.Errorf("with a torn record: %v", err)
	}
	if err := k.p.taken(); !strings.Contains(err.Error(), "it is being taken over or back just now") {
		t.Error(err)
	}

	brief := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	held, err := k.rig.Tree.Lock(t.Context(), state.LockHook, string(alpha), hook.Dir)
	k.fail(err)
	if job, err := k.p.startUnlessLent(brief(), process.Spec{ID: "ses-1"}); !errors.Is(err, state.ErrLockTimeout) || job != nil {
		t.Errorf("started without the lock: %v", err)
	}
	held.Unlock()
	lease, err := k.p.takeLease(t.Context())
	k.fail(err)
	if err := k.p.takeBack(t.Context()); !errors.Is(err, state.ErrConflict) || k.p.lease(nil) != polecat.LeaseHeld {
		t.Errorf("taken back from who has it: %v", err)
	}
	lease.Unlock()
	k.fail(os.Remove(k.rig.Tree.Abs(k.rig.Hooks.Path(string(alpha)))))
	k.fail(k.p.takeBack(t.Context())) // the next decision tells of the hook
	if got := k.p.lease(nil); got != polecat.NoLease {
		t.Errorf("the lease is %q", got)
	}
}
