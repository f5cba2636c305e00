package execute

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/retire"
)

// half leaves a part of the work in the worktree, and works on.
const half = "echo half > half.txt; sleep 60\n"

// rewriteExit changes the exit record of a session.
func (k *kennel) rewriteExit(s state.SessionID, change func(*process.Exit)) {
	k.t.Helper()
	path := k.rig.Tree.Abs(rig.ExitRecord(s))
	exit, found, err := process.ReadExit(path)
	if err != nil || !found {
		k.t.Fatalf("the exit record: %t, %v", found, err)
	}
	change(&exit)
	data, err := json.Marshal(exit)
	if err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// TestSessionOutlivesItsProcess: the session of a client goes on where it stopped, in the worktree as it
// was, if that can be known to be whole. Otherwise its work is saved and begun again.
func TestSessionOutlivesItsProcess(t *testing.T) {
	stop := func(k *kennel) { k.p.Close() }
	kill := func(k *kennel) { // rig, supervisor and worker at once
		s := k.hook().WorkItem.Session
		exit, _, err := k.rig.WorkerExit(s)
		if err != nil {
			k.t.Fatal(err)
		}
		for _, pid := range []int{exit.SupervisorPID, -exit.PGID} {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				k.t.Fatal(err)
			}
		}
		<-k.p.worker.job.Done()
	}
	// As a record from before a power cut would be.
	forget := func(change func(*process.Exit)) func(*kennel) {
		return func(k *kennel) {
			kill(k)
			k.rewriteExit(k.hook().WorkItem.Session, change)
		}
	}
	tests := []struct {
		name string
		end  func(*kennel)
		goes bool
	}{
		{"the rig was stopped", stop, true},
		{"the rig was killed", func(*kennel) {}, true},
		{"everything was killed", kill, true},
		{"a git was killed with it", func(k *kennel) {
			stop(k)
			k.write(".git/worktrees/polecat-alpha/index.lock", "")
		}, true},
		{"another boot", forget(func(x *process.Exit) { x.BootID = "another" }), false},
		{"another boot of the same name", forget(func(x *process.Exit) { x.BootedAt = state.At(x.BootedAt.Add(-time.Hour)) }), false},
		{"another mount", forget(func(x *process.Exit) { x.Mount++ }), false},
		{"what it left was not synced", func(k *kennel) {
			stop(k)
			k.rewriteExit(k.hook().WorkItem.Session, func(x *process.Exit) { x.Settled = false })
		}, false},
		{"its worktree is torn", func(k *kennel) {
			stop(k)
			k.write(".git/worktrees/polecat-alpha/HEAD", "")
		}, false},
		{"the worktree is gone", func(k *kennel) {
			stop(k)
			if err := os.RemoveAll(k.rig.Worktree(alpha)); err != nil {
				k.t.Fatal(err)
			}
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k, calls := fakeClient(t, "", begins+half, begins+commits+finished)
			k.rig.Git.LockGrace = 100 * time.Millisecond
			rec := k.sling("do it")
			k.until("the worker works", k.working("half.txt"))
			first := k.hook().WorkItem.Session
			tt.end(k)
			k.crash()
			k.until("it is retired", k.retired(rec.AssignmentID))
			all := calls()
			if len(all) != 2 {
				t.Fatalf("it ran %d times", len(all))
			}
			resumed := strings.Contains(all[1], "--resume sess-1") && strings.Contains(all[1], "What happened: the rig ended while you worked")
			if resumed != tt.goes {
				t.Errorf("it was called with %q", all[1])
			}
			if goes := k.record(rec.AssignmentID).Session == first; goes != tt.goes {
				t.Errorf("the same session: %t", goes)
			}
			files := k.git("ls-tree", "--name-only", "polecat/"+string(rec.BeadID))
			if want := map[bool]string{true: "README\nhalf.txt\none.txt", false: "README\none.txt"}[tt.goes]; files != want {
				t.Errorf("the branch holds %q", files)
			}
			if b := k.bead(rec.BeadID); b.Status != bead.Done || b.Attempts+b.Restarts != 0 {
				t.Errorf("bead is %s: %s, %s", b.Status, b.CloseReason, b.FailureCounts())
			}
		})
	}
}

// TestSessionOutlivesManyProcesses: what a session was told and has cost is known to each process after it.
func TestSessionOutlivesManyProcesses(t *testing.T) {
	k, calls := fakeClient(t, ", resumes: 1", begins+finished, speaks+half, speaks+half, speaks+commits+finished)
	rec := k.sling("do it")
	for range 2 {
		k.until("the worker works", k.working("half.txt"))
		if err := os.Remove(filepath.Join(k.rig.Worktree(alpha), "half.txt")); err != nil {
			t.Fatal(err)
		}
		k.crash()
		if left := k.p.worker.preset.MaxResumes() - k.p.worker.talk.resumed; left != 0 {
			t.Errorf("it may be resumed %d times", left)
		}
	}
	k.until("it is retired", k.retired(rec.AssignmentID))
	if all := calls(); len(all) != 4 || !strings.Contains(all[3], "--resume sess-1") {
		t.Errorf("it was called with %q", all)
	}
	if end := k.record(rec.AssignmentID); end.Outcome != retire.Done {
		t.Errorf("ended as %s: %s", end.Outcome, end.Reason)
	}
}

// TestSessionIsGone: a session that its client can't load any more begins again, once, and nobody is charged.
func TestSessionIsGone(t *testing.T) {
	const gone = `echo '{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: sess-1"]}'` + "\nexit 1\n"
	k, calls := fakeClient(t, "", begins+half, gone, begins+commits+finished)
	rec := k.sling("do it")
	k.until("the worker works", k.working("half.txt"))
	k.crash()
	k.until("it is retired", k.retired(rec.AssignmentID))
	if all := calls(); len(all) != 3 || strings.Contains(all[2], "--resume") {
		t.Errorf("it was called with %q", all)
	}
	if b := k.bead(rec.BeadID); b.Status != bead.Done || b.Attempts+b.Restarts != 0 {
		t.Errorf("bead is %s: %s, %s", b.Status, b.CloseReason, b.FailureCounts())
	}
	if note, err := k.rig.Handoffs.Latest(alpha, rec.BeadID); err != nil || note == nil || !strings.Contains(note.Summary, "can't load the session any more") {
		t.Errorf("hand-off %+v, %v", note, err)
	}
}
