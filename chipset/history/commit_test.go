package history

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

func TestCommitKeepsCheckoutAndIndex(t *testing.T) {
	y := newYard(t)
	gittest.Write(t, y.Dir, "staged", "s\n")
	y.git("add", "staged")
	gittest.Write(t, y.Dir, "README", "changed\n")
	index, err := os.ReadFile(y.Dir + "/.git/index")
	must(t, err)
	head, status := y.git("rev-parse", "HEAD"), y.git("status", "--porcelain")
	y.plant("mail/mayor/.tmp-1-abc", "unfinished")
	y.plant("mail/mayor/odd \"name\"\n\\.json", "{}")
	first := y.commit()
	if !first.Made || y.git("rev-parse", "chipset/audit") != string(first.Commit) {
		t.Fatalf("no commit: %+v", first)
	}
	if again := y.commit(); again.Made || again.Commit != first.Commit {
		t.Errorf("nothing was new, but %+v", again)
	}
	after, err := os.ReadFile(y.Dir + "/.git/index")
	must(t, err)
	if string(index) != string(after) || y.git("rev-parse", "HEAD") != head || y.git("status", "--porcelain") != status {
		t.Error("the checkout or the index was touched")
	}
	held := y.git("ls-tree", "-r", "-z", "--name-only", "chipset/audit")
	if strings.Contains(held, ".tmp-") || strings.Contains(held, "/run/") || !strings.Contains(held, "odd \"name\"\n\\.json") {
		t.Errorf("the snapshot holds %q", held)
	}
	if refs := y.git("for-each-ref", "refs/chipset/snapshot"); refs != "" {
		t.Errorf("left behind: %s", refs)
	}
	if out := y.git("fsck", "--strict"); out != "" {
		t.Errorf("fsck: %s", out)
	}
	y.git("show", "--quiet", "chipset/audit")
}

// TestCommitRefusals: the branch is the rig's own, and no option of git.
func TestCommitRefusals(t *testing.T) {
	y := newYard(t)
	y.commit()
	y.git("worktree", "add", "-q", gittest.Dir(t)+"/w", "chipset/audit")
	c, err := NewRecorder(y.Rig)
	must(t, err)
	if _, err := c.Commit(t.Context(), ""); !errors.Is(err, git.ErrBranchInUse) {
		t.Errorf("checked out: %v", err)
	}
	for _, ref := range []string{"--exec=x", "-m", "a..b", "refs/heads/x", "a b", ""} {
		y.Def.Audit.Ref = ref
		if _, err := NewRecorder(y.Rig); err == nil {
			t.Errorf("audit.ref %q is taken", ref)
		}
	}
	for _, ref := range []string{"--all", "nothing", "a..b", "\x00"} {
		if _, err := Verify(t.Context(), y.Rig, ref); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("verify %q: %v", ref, err)
		}
	}
	if _, err := Verify(t.Context(), y.Rig, "main"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("a branch without the state tree: %v", err)
	}
}

// TestAfterAKill: what a commit that was killed left behind stops no later one.
func TestAfterAKill(t *testing.T) {
	y := newYard(t)
	first := y.commit()
	y.git("update-ref", "refs/chipset/snapshot/left", "HEAD")
	lock := y.Dir + "/.git/refs/heads/chipset/audit.lock"
	gittest.Write(t, y.Dir, ".git/refs/heads/chipset/audit.lock", "")
	gittest.Write(t, y.Dir, ".git/refs/chipset/snapshot/left.lock", "")
	old := y.now.Add(-time.Hour)
	must(t, os.Chtimes(lock, old, old))
	y.act()
	y.plant("handoff/mayor/2026-03-05T10-30-00.000000000Z.json", `{"agent_id":"mayor","summary":"s","timestamp":"2026-03-05T10:30:00Z"}`)
	if out := y.commit(); !out.Made || out.Commit == first.Commit {
		t.Errorf("no commit: %+v", out)
	}
	if refs := y.git("for-each-ref", "refs/chipset/snapshot"); refs != "" {
		t.Errorf("left behind: %s", refs)
	}
	y.verify("")
}

// TestBesideARunningRig: however objects move while a snapshot is taken, no
// history shows one vanish or go back.
func TestBesideARunningRig(t *testing.T) {
	y := newYard(t)
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for _, id := range agents() {
		busy.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				y.churn(id, n)
			}
		})
	}
	c, err := NewRecorder(y.Rig)
	must(t, err)
	made := 0
	for made < 15 && !t.Failed() {
		out, err := c.Commit(t.Context(), "")
		if err != nil {
			t.Error(err)
		}
		if out.Made {
			made++
		}
	}
	close(stop)
	busy.Wait()
	report := y.verify("")
	t.Logf("%d snapshots, %d changes", report.Commits, report.Changes)
}

// churn sends, reads and archives mail, moves a bead, and puts what does not belong into quarantine.
func (y *yard) churn(id state.AgentID, n int) {
	ctx := y.t.Context()
	name, err := y.Sender.Send(ctx, mail.Message{From: id, To: id, Type: mail.Coordination, Subject: "s", Timestamp: state.At(y.now)})
	if err == nil {
		err = y.Mailbox(id).MarkRead(ctx, name)
	}
	if err == nil && n%3 == 0 {
		_, err = y.Mailbox(id).ArchiveOld(ctx, "mayor", y.now.Add(time.Hour), false)
	}
	if err == nil && n%7 == 0 {
		_, err = y.Tree.Quarantine(y.Mailbox(id).Dir().Join(string(name)), "a test", state.At(y.now))
		if errors.Is(err, state.ErrNotFound) {
			err = nil
		}
	}
	if err == nil {
		var b bead.Bead
		if b, err = y.Beads.Add(bead.Bead{Title: "Thing"}, "gt", state.At(y.now)); err == nil {
			_, err = y.Beads.Update(ctx, string(b.ID), func(b *bead.Bead) error { return b.Become(bead.Cancelled, "", state.At(y.now)) })
		}
	}
	if err != nil && y.t.Context().Err() == nil {
		y.t.Error(err)
	}
}
