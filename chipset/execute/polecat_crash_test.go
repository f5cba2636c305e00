package execute

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/retire"
)

// TestPolecatSavesWhatLiesInItsFolder: a power cut can take everything away that
// says whose files these are. They are saved, and the work goes on.
func TestPolecatSavesWhatLiesInItsFolder(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	k.write(".chipset/worktrees/"+string(alpha)+"/mine.txt", "keep\n")
	rec := k.sling("echo x > x.txt")
	k.until("it is retired", k.retired(rec.AssignmentID))
	if b := k.bead(rec.BeadID); b.Status != bead.Done {
		t.Errorf("bead is %s: %q", b.Status, b.CloseReason)
	}
	saved := strings.Fields(k.git("for-each-ref", "--format=%(refname)", "refs/chipset/salvage"))
	if len(saved) != 1 || k.git("show", saved[0]+":mine.txt") != "keep" {
		t.Errorf("saved on %q", saved)
	}
}

// TestPolecatAfterAKilledWorktreeAdd: wherever git was killed while it made the
// worktree, the work begins.
func TestPolecatAfterAKilledWorktreeAdd(t *testing.T) {
	t.Parallel()
	for _, gone := range [][]string{{"index"}, {"index", "commondir"}, {"index", "HEAD"}, {"index", "commondir", "HEAD"}} {
		t.Run(strings.Join(gone, " "), func(t *testing.T) {
			k := newKennel(t, "")
			dir := filepath.Join(k.dir, ".chipset", "worktrees", string(alpha))
			k.git("worktree", "add", "-q", "--no-checkout", "--detach", dir, "HEAD")
			for _, name := range gone {
				_ = os.Remove(filepath.Join(k.dir, ".git", "worktrees", string(alpha), name)) // an index may not be there yet
			}
			rec := k.sling("echo x > x.txt")
			k.until("it is retired", k.retired(rec.AssignmentID))
			if b := k.bead(rec.BeadID); b.Status != bead.Done {
				t.Errorf("bead is %s: %q", b.Status, b.CloseReason)
			}
		})
	}
}

func TestPolecatCrash(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	rec := k.sling("[ -e $CHIPSET_DIR/again ] && { echo done > done.txt; exit 0; }; echo half > half.txt; sleep 60")
	k.until("the worker works", k.working("half.txt"))
	first := k.hook().WorkItem.Session
	old := k.p.worker.job
	k.write("again", "")
	k.crash()
	select {
	case <-old.Done():
	case <-time.After(polecatPatience):
		t.Fatal("the first worker lives on")
	}
	k.until("it is retired", k.retired(rec.AssignmentID))
	if session := k.record(rec.AssignmentID).Session; session == first {
		t.Error("the second worker has the session of the first")
	}
	if b := k.bead(rec.BeadID); b.Status != bead.Done || b.Attempts != 0 || b.Restarts != 0 {
		t.Errorf("bead %+v", b)
	}
	ref := "refs/chipset/salvage/" + string(rec.AssignmentID)
	if files := k.git("ls-tree", "--name-only", ref); !strings.Contains(files, "half.txt") {
		t.Errorf("saved %q", files)
	}
	if note, err := k.rig.Handoffs.Latest(alpha, rec.BeadID); err != nil || note == nil || note.Salvage != ref {
		t.Errorf("hand-off %+v, %v", note, err)
	}
	if files := k.git("ls-tree", "--name-only", "polecat/"+string(rec.BeadID)); files != "README\ndone.txt" {
		t.Errorf("the branch holds %q", files)
	}
}

func TestPolecatCrashAfterTheWorkerFinished(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	rec := k.sling("echo x > x.txt")
	k.until("the worker runs", func() bool { return k.p.worker != nil })
	<-k.p.worker.job.Done()
	session := k.hook().WorkItem.Session
	k.crash()
	k.until("it is retired", k.retired(rec.AssignmentID))
	if end := k.record(rec.AssignmentID); end.Outcome != retire.Done || end.Session != session || end.Stage != retire.Released {
		t.Fatalf("the record is %+v", end)
	}
	if b := k.bead(rec.BeadID); b.Status != bead.Done {
		t.Errorf("bead is %s: %s", b.Status, b.CloseReason)
	}
}

// A worker that has reported may write until it is ended: what it leaves is committed after that, or some of it would be lost.
func TestPolecatEndsTheWorkerBeforeItsWorkIsCommitted(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	k.rig.Def.Worker.Grace = polecatPatience // under load its last words take longer than the grace of the other tests
	rec := k.sling("trap 'echo late > late.txt; exit 0' TERM; echo x > x.txt; while :; do sleep 0.02; done")
	k.until("the worker works", k.working("x.txt"))
	_, won, err := carry.Publish(t.Context(), k.rig, retire.Record{AssignmentID: rec.AssignmentID, AgentID: alpha, Session: k.hook().WorkItem.Session, Outcome: retire.Done})
	if err != nil || !won {
		t.Fatal(won, err)
	}
	k.crash()
	k.until("it is retired", k.retired(rec.AssignmentID))
	if end := k.record(rec.AssignmentID); end.Outcome != retire.Done {
		t.Errorf("ended as %s: %s", end.Outcome, end.Reason)
	}
	if files := k.git("ls-tree", "--name-only", "polecat/"+string(rec.BeadID)); files != "README\nlate.txt\nx.txt" {
		t.Errorf("the branch holds %q", files)
	}
}

// The exit record of a worker that ended alone is believed only when it vouches for
// what the worker left. Everything else may be torn: it is saved, and done again.
func TestUnsettledExitIsDoneAgain(t *testing.T) {
	k := newKennel(t, "")
	rec := k.sling("echo x > x.txt")
	k.until("the worker runs", func() bool { return k.p.worker != nil })
	<-k.p.worker.job.Done()
	session := k.hook().WorkItem.Session
	path := k.rig.Tree.Abs(rig.ExitRecord(session))
	exit, found, err := process.ReadExit(path)
	if err != nil || !found || !exit.Settled {
		t.Fatalf("the worker's exit record: %+v, %t, %v", exit, found, err)
	}
	exit.Settled = false
	data, err := json.Marshal(exit)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	k.crash()
	k.until("it is retired", k.retired(rec.AssignmentID))
	if again := k.record(rec.AssignmentID).Session; again == session {
		t.Error("the session that may be torn has finished the work")
	}
	if b := k.bead(rec.BeadID); b.Status != bead.Done || b.Attempts != 0 {
		t.Errorf("bead %+v", b)
	}
	if files := k.git("ls-tree", "--name-only", "refs/chipset/salvage/"+string(rec.AssignmentID)); !strings.Contains(files, "x.txt") {
		t.Errorf("saved %q", files)
	}
}
