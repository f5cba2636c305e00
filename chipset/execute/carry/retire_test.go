package carry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/retire"
)

var errKilled = errors.New("killed here")

// TestFinishSurvivesEveryCrash ends the pipeline after each of its durable
// effects, and goes on from the disk: alone, and with every effect in a life of
// its own. The result is always that of a run without any crash.
func TestFinishSurvivesEveryCrash(t *testing.T) {
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			a, rec := s.play(t)
			var effects []string
			end, err := Finish(t.Context(), RetireDeps{Rig: a.rig, Step: func(e string) error { effects = append(effects, e); return nil }}, rec)
			a.must(err)
			want := a.outcome()
			if want.Bead != string(s.bead) || end.Stage != s.stage {
				t.Fatalf("without a crash: %+v", want)
			}
			if s.saved != (want.Salvage != "") {
				t.Errorf("work that does not land is saved on %q", want.Salvage)
			}
			if len(want.Requests) > 0 && !strings.HasSuffix(want.Requests[0], " to main") {
				t.Errorf("it is to land elsewhere: %q", want.Requests)
			}
			if !want.WorktreeClean {
				t.Error("the worktree is not free")
			}
			if s.thorough {
				for i := range effects {
					s.crashAfter(t, i, effects, want)
				}
			}
			s.crashEverywhere(t, want)
		})
	}
}

// crashAfter kills the pipeline after its i-th effect.
func (s *scene) crashAfter(t *testing.T, i int, effects []string, want outcome) {
	t.Helper()
	a, rec := s.play(t)
	n := 0
	_, err := Finish(t.Context(), RetireDeps{Rig: a.rig, Step: func(string) error {
		if n++; n > i {
			return errKilled
		}
		return nil
	}}, rec)
	if !errors.Is(err, errKilled) {
		t.Fatalf("after %s: %v", effects[i], err)
	}
	a.finishFromDisk()
	if diff := cmp.Diff(want, a.outcome()); diff != "" {
		t.Errorf("killed after %s (of %v):\n%s", effects[i], effects, diff)
	}
}

// crashEverywhere kills the pipeline once after every effect, each time in the
// life that comes to it first.
func (s *scene) crashEverywhere(t *testing.T, want outcome) {
	t.Helper()
	a, rec := s.play(t)
	died := map[string]bool{}
	for {
		_, err := Finish(t.Context(), RetireDeps{Rig: a.rig, Step: func(e string) error {
			if died[e] {
				return nil
			}
			died[e] = true
			return errKilled
		}}, rec)
		if err == nil {
			break
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		a.reopen()
		rec, err = a.rig.Retire.Get(string(a.as))
		a.must(err)
	}
	if diff := cmp.Diff(want, a.outcome()); diff != "" {
		t.Errorf("killed %d times:\n%s", len(died), diff)
	}
}

func (a *attempt) finishFromDisk() {
	a.t.Helper()
	a.reopen()
	rec, err := a.rig.Retire.Get(string(a.as))
	a.must(err)
	rec, err = Finish(a.t.Context(), RetireDeps{Rig: a.rig}, rec)
	a.must(err)
	if !rec.Stage.Final() {
		a.t.Errorf("Finish left %s", rec.Stage)
	}
}

func TestPublish(t *testing.T) {
	a := newAttempt(t, nil)
	offer := func(as state.AssignmentID, s state.SessionID) (bool, error) {
		_, won, err := Publish(t.Context(), a.rig, retire.Record{AssignmentID: as, AgentID: alpha, Session: s, Outcome: retire.Done})
		return won, err
	}
	if won, err := offer("as-other", ""); won || !errors.Is(err, state.ErrConflict) {
		t.Errorf("another assignment: %v, %v", won, err)
	}
	if won, err := offer(a.as, "ses-old"); won || !errors.Is(err, state.ErrConflict) {
		t.Errorf("another session: %v, %v", won, err)
	}
	first := a.publish(retire.Fail, strings.Repeat("x", 2*flow.MaxReason)+"\xff")
	if len(first.Reason) > flow.MaxReason+8 || first.BeadID != a.bead || first.Branch == "" || first.Stage != retire.Published {
		t.Errorf("record %+v", first)
	}
	again, won, err := Publish(t.Context(), a.rig, retire.Record{AssignmentID: a.as, AgentID: alpha, Outcome: retire.Done})
	if err != nil || won || again.Outcome != retire.Fail {
		t.Errorf("the second: won %v, %v, %+v", won, err, again)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Finish(cancelled, RetireDeps{Rig: a.rig}, first); !errors.Is(err, context.Canceled) {
		t.Errorf("Finish under a cancelled context: %v", err)
	}
}

// Somebody else ends the attempt after this process has looked and before it
// writes: the first end stays, and both hear of it.
func TestPublishAtOnce(t *testing.T) {
	a := newAttempt(t, nil)
	var once sync.Once
	clock := a.rig.Clock
	a.rig.Clock = func() time.Time {
		once.Do(func() {
			other, err := rig.Open(t.Context(), a.rig.Dir, time.Now)
			a.must(err)
			_, won, err := Publish(t.Context(), other, retire.Record{AssignmentID: a.as, AgentID: alpha, Outcome: retire.Fail, Reason: "first"})
			if err != nil || !won {
				t.Errorf("the first: won %t, %v", won, err)
			}
		})
		return clock()
	}
	rec, won, err := Publish(t.Context(), a.rig, retire.Record{AssignmentID: a.as, AgentID: alpha, Outcome: retire.Done, Reason: "second"})
	if err != nil || won || rec.Reason != "first" {
		t.Errorf("the second: won %t, %v, %+v", won, err, rec)
	}
}

// The bead is taken away after the work is committed: nothing is submitted.
func TestFinishLosesTheBead(t *testing.T) {
	a := newAttempt(t, nil)
	rec := a.publish(retire.Done, "")
	end, err := Finish(t.Context(), RetireDeps{Rig: a.rig, Step: func(effect string) error {
		if effect != string(retire.Committed) {
			return nil
		}
		_, err := a.rig.Beads.Update(t.Context(), string(a.bead), func(b *bead.Bead) error {
			return b.Become(bead.Open, "", a.rig.Clock.Now())
		})
		return err
	}}, rec)
	a.must(err)
	all, _, err := a.rig.Queue.Queue()
	a.must(err)
	if end.Stage != retire.Stale || len(all) > 0 {
		t.Errorf("%s, requests %v", end.Stage, all)
	}
}

// TestFinishSendsUnderAnotherName: somebody's message has the very nanosecond
// that the record fixed.
func TestFinishSendsUnderAnotherName(t *testing.T) {
	a := newAttempt(t, nil)
	rec := a.publish(retire.Fail, "no luck")
	taken := false
	_, err := Finish(t.Context(), RetireDeps{Rig: a.rig, Step: func(e string) error {
		if e != string(retire.Submitted) || taken {
			return nil
		}
		taken = true
		now, err := a.rig.Retire.Get(string(a.as))
		if err != nil {
			return err
		}
		n := mail.Name(now.ReportName)
		_, err = a.rig.Sender.Send(t.Context(), mail.Message{From: alpha, To: "mayor", Type: mail.Coordination, Subject: "in the way", Timestamp: n.Time()})
		return err
	}}, rec)
	a.must(err)
	entries, _, err := a.rig.Mailbox("mayor").List()
	a.must(err)
	if !taken || len(entries) != 2 || entries[1].ID != "report-"+string(a.as) {
		t.Errorf("mail %+v", entries)
	}
	if end, _ := a.rig.Retire.Get(string(a.as)); mail.Name(end.ReportName) != entries[1].Name {
		t.Errorf("the record names %s", end.ReportName)
	}
}

func TestFinishWithoutAnybodyToTell(t *testing.T) {
	a := newAttempt(t, nil)
	rec := a.publish(retire.Fail, "no luck")
	for _, id := range []string{"mayor", "witness"} {
		a.must(os.Remove(a.rig.Tree.Abs(a.rig.Agents.Path(id))))
	}
	end, err := Finish(t.Context(), RetireDeps{Rig: a.rig}, rec)
	if err != nil || end.Stage != retire.Released {
		t.Errorf("%s, %v", end.Stage, err)
	}
	if h, _ := a.rig.Hooks.Get(string(alpha)); h.Status != hook.Completed {
		t.Errorf("hook %+v", h)
	}
	lost, err := a.rig.Events.About(string(a.bead), 99, func(e *event.Event) bool { return e.Type == event.MailUndeliverable("", "", event.Work{}, "").Type })
	if err != nil || len(lost) != 2 {
		t.Errorf("of letters about %s that nobody got the log says %+v, %v", a.bead, lost, err)
	}
}

// A hook that is gone, or was never there, needs no clearing. A hook that can't be read may.
func TestFinishWithoutAHook(t *testing.T) {
	a := newAttempt(t, nil)
	a.write("one.txt", "one\n")
	rec := a.publish(retire.Done, "")
	file := a.rig.Tree.Abs(a.rig.Hooks.Path(string(alpha)))
	a.must(os.Rename(file, file+".aside"))
	a.must(os.Mkdir(file, 0o700))
	if after, err := Finish(t.Context(), RetireDeps{Rig: a.rig}, rec); err == nil {
		t.Errorf("it is %s, though nobody knows what is on the hook", after.Stage)
	}
	a.must(os.Remove(file))
	a.reopen()
	rec, err := Finish(t.Context(), RetireDeps{Rig: a.rig}, rec)
	b, beadErr := a.rig.Beads.Get(string(a.bead))
	if err != nil || beadErr != nil || rec.Stage != retire.Released || b.Status != bead.Done {
		t.Errorf("%s, bead %s, %v, %v", rec.Stage, b.Status, err, beadErr)
	}
}

// An end that can't be recorded is not published.
func TestPublishThatCantBeRecorded(t *testing.T) {
	a := newAttempt(t, nil)
	dir := a.rig.Tree.Abs(retire.Dir)
	a.must(os.RemoveAll(dir))
	a.must(os.WriteFile(dir, nil, 0o600))
	if rec, won, err := Publish(t.Context(), a.rig, retire.Record{AssignmentID: a.as, AgentID: alpha, Session: "ses-one", Outcome: retire.Fail, Reason: "no luck"}); err == nil || won {
		t.Errorf("%+v, won %t, %v", rec, won, err)
	}
}

// Work that was done is published as done also where the worktree is gone by then: there is nothing to sync.
func TestPublishWithoutAWorktree(t *testing.T) {
	a := newAttempt(t, nil)
	a.must(os.RemoveAll(a.worktree()))
	if rec := a.publish(retire.Done, ""); !rec.Settled {
		t.Errorf("%+v", rec)
	}
}

// TestOperationInProgress: work in the middle of a rebase is not submitted, and the reason says what to do: the paths, or
// that it is to be finished.
func TestOperationInProgress(t *testing.T) {
	for _, conflict := range []bool{false, true} {
		a := newAttempt(t, nil)
		commit := func(text string) {
			a.write("x.txt", text)
			a.git(a.worktree(), "add", "-A")
			a.git(a.worktree(), "commit", "-qm", text)
		}
		commit("one\n")
		base := a.git(a.worktree(), "rev-parse", "HEAD")
		commit("two\n")
		want := "a rebase is in progress"
		if conflict {
			want = "unmerged paths: x.txt"
			a.git(a.worktree(), "checkout", "-q", "-b", "other", base)
			commit("three\n")
			cmd := exec.Command("git", "rebase", "-q", "polecat/"+string(a.bead))
			cmd.Dir = a.worktree()
			if cmd.Run() == nil {
				t.Fatal("it does not conflict")
			}
		} else {
			a.git(a.worktree(), "-c", "sequence.editor=sed -i 1s/pick/edit/", "rebase", "-q", "-i", base)
		}
		rec, o := a.finished(retire.Done, "")
		if o.Bead != "failed" || !strings.Contains(rec.Reason, want) {
			t.Errorf("bead %s, %q, want %q", o.Bead, rec.Reason, want)
		}
	}
}

// finished plays the end of an attempt and returns what it came to.
func (a *attempt) finished(o retire.Outcome, reason string) (retire.Record, outcome) {
	a.t.Helper()
	rec, err := Finish(a.t.Context(), RetireDeps{Rig: a.rig}, a.publish(o, reason))
	a.must(err)
	return rec, a.outcome()
}

// Commits that only the branch holds are kept when the work is elsewhere.
func TestBranchTipIsKept(t *testing.T) {
	a := newAttempt(t, nil)
	a.write("one.txt", "one\n")
	a.git(a.worktree(), "add", "-A")
	a.git(a.worktree(), "commit", "-qm", "one")
	left := a.git(a.worktree(), "rev-parse", "HEAD")
	a.git(a.worktree(), "checkout", "-q", "--detach", "main")
	a.write("two.txt", "two\n")
	rec, o := a.finished(retire.Done, "")
	if o.Bead != "done" || strings.Contains(o.Landed, "one.txt") || rec.Salvage != salvagePrefix+string(a.as)+"-branch" {
		t.Errorf("%+v, saved on %q", o, rec.Salvage)
	}
	if kept := a.git(a.dir, "rev-parse", salvagePrefix+string(a.as)+"-branch"); kept != left {
		t.Errorf("%s is kept, not %s", kept, left)
	}
}

// A worktree that holds another assignment's work is none of this one's.
func TestWorktreeOfAnotherAssignment(t *testing.T) {
	a := newAttempt(t, nil)
	a.write("theirs.txt", "theirs\n")
	_, base, err := TargetTip(t.Context(), a.rig)
	a.must(err)
	a.must(WriteWorktree(a.rig, Worktree{AgentID: alpha, AssignmentID: "as-other", BeadID: "tt-other", Session: "ses-two", Base: base, Branch: "polecat/other"}))
	rec, o := a.finished(retire.Fail, "no luck")
	if rec.Salvage != "" || o.Saved != "" {
		t.Errorf("saved %q: %s", rec.Salvage, o.Saved)
	}
	if _, err := os.Stat(filepath.Join(a.worktree(), "theirs.txt")); err != nil {
		t.Error(err)
	}
}

// Work is submitted from its branch although the worktree holds another assignment's by now, torn or not, and although
// the target was rewritten since it began, if it stands on the target as it is now.
func TestWorkThatIsSubmittedAllTheSame(t *testing.T) {
	for name, change := range map[string]func(a *attempt, use *Worktree){
		"another's torn work in the worktree": func(a *attempt, use *Worktree) {
			a.git(a.worktree(), "checkout", "-q", "-b", "polecat/other", "main")
			elsewhere := git.Hash(a.git(a.worktree(), "commit-tree", "-m", "elsewhere", "HEAD^{tree}"))
			*use = Worktree{AgentID: alpha, AssignmentID: "as-other", BeadID: "tt-other", Session: "ses-two", Base: elsewhere, Branch: "polecat/other", Torn: true}
		},
		"a folder in the place of a lock": func(a *attempt, _ *Worktree) {
			a.write("two.txt", "two\n")
			gittest.Write(a.t, a.dir, ".git/worktrees/polecat-alpha/index.lock/x", "")
		},
		"a target that was rewritten": func(a *attempt, use *Worktree) {
			use.Base = git.Hash(a.git(a.worktree(), "commit-tree", "-m", "rewritten", "HEAD^{tree}"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttempt(t, nil)
			a.write("one.txt", "one\n")
			a.git(a.worktree(), "add", "-A")
			a.git(a.worktree(), "commit", "-qm", "one")
			use, _ := ReadWorktree(a.rig, alpha)
			change(a, &use)
			a.must(WriteWorktree(a.rig, use))
			rec, o := a.finished(retire.Done, "")
			if rec.Outcome != retire.Done || o.Bead != "done" || len(o.Requests) != 1 || !strings.Contains(o.Landed, "one.txt") {
				t.Errorf("%s %q, %+v", rec.Outcome, rec.Reason, o)
			}
		})
	}
}

// What was torn, and what does not follow from where the work began, is saved and not submitted.
func TestWorkThatIsNotSubmitted(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(a *attempt, use *Worktree)
		says  string
	}{
		"torn": {func(_ *attempt, use *Worktree) { use.Torn = true }, "objects of the worktree are missing"},
		"torn for good": {func(a *attempt, _ *Worktree) {
			a.write("one.txt", "an earlier version\n")
			a.git(a.worktree(), "add", "-A")
			a.git(a.worktree(), "commit", "-qm", "one")
			blob := a.git(a.worktree(), "rev-parse", "HEAD:one.txt")
			a.write("one.txt", "one\n")
			object := filepath.Join(a.dir, ".git", "objects", blob[:2], blob[2:])
			a.must(os.Chmod(object, 0o600))
			a.must(os.Truncate(object, 0))
		}, "objects of the worktree are missing"},
		"the newest commit is gone": {func(a *attempt, _ *Worktree) {
			for _, name := range []string{"one.txt", "two.txt"} {
				a.write(name, name)
				a.git(a.worktree(), "add", "-A")
				a.git(a.worktree(), "commit", "-qm", name)
			}
			newest := a.git(a.worktree(), "rev-parse", "HEAD")
			a.must(os.Remove(filepath.Join(a.dir, ".git", "objects", newest[:2], newest[2:])))
		}, "objects of the worktree are missing"},
		"a tree that git can't read": {func(a *attempt, _ *Worktree) {
			gittest.Write(a.t, a.dir, ".git/tree", "100644 a\x00short")
			tree := a.git(a.worktree(), "hash-object", "-w", "-t", "tree", "--literally", filepath.Join(a.dir, ".git", "tree"))
			commit := a.git(a.worktree(), "commit-tree", "-m", "malformed", "-p", "HEAD", tree)
			a.git(a.worktree(), "update-ref", "HEAD", commit)
		}, "malformed"},
		"a link that leads too far": {func(a *attempt, _ *Worktree) {
			a.must(os.Symlink(strings.Repeat("x", 4050), filepath.Join(a.worktree(), "far")))
		}, "link"},
		"the rig's own files": {func(a *attempt, _ *Worktree) {
			a.write(".chipset/mine", "mine")
			a.git(a.worktree(), "add", "-f", ".chipset/mine")
			a.git(a.worktree(), "commit", "-qm", "mine")
		}, "changes .chipset/, which is the rig's own"},
		"what every worktree gets": {func(a *attempt, _ *Worktree) {
			a.rig.Def.Worktree.Copy = []string{"conf"}
			a.write("conf/local", "mine")
		}, "commits conf, which every worktree gets"},
		"a submodule at another address": {func(a *attempt, _ *Worktree) {
			a.rig.Def.Worktree.Submodules = true
			modules := func(host string) string {
				return "[submodule \"lib\"]\n\tpath = lib\n\turl = https://" + host + "/lib\n"
			}
			gittest.Write(a.t, a.dir, ".gitmodules", modules("example.com"))
			a.git(a.dir, "add", ".gitmodules")
			a.git(a.dir, "commit", "-qm", "modules")
			a.git(a.worktree(), "merge", "-q", "--ff-only", "main")
			a.write(".gitmodules", modules("example.net"))
		}, "changes the address of the submodule lib"},
		"a history of its own": {func(a *attempt, _ *Worktree) {
			a.git(a.worktree(), "checkout", "-q", "--orphan", "own")
			a.git(a.worktree(), "commit", "-qm", "own")
		}, "no history in common"},
		"words that steer a terminal": {func(a *attempt, _ *Worktree) {
			a.git(a.worktree(), "commit", "-q", "--allow-empty", "-m", "\x1b[2J")
		}, "control characters"},
		"begun elsewhere": {func(a *attempt, use *Worktree) {
			gittest.Write(a.t, a.dir, "later.txt", "later\n")
			a.git(a.dir, "add", "later.txt")
			a.git(a.dir, "commit", "-qm", "later")
			use.Base = git.Hash(a.git(a.dir, "rev-parse", "main"))
		}, "does not descend"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttempt(t, nil)
			a.write("one.txt", "one\n")
			use, _ := ReadWorktree(a.rig, alpha)
			c.spoil(a, &use)
			a.must(WriteWorktree(a.rig, use))
			rec, o := a.finished(retire.Done, "")
			if rec.Outcome != retire.Fail || !strings.Contains(rec.Reason, c.says) || len(o.Requests) > 0 || !strings.Contains(o.Saved, "one.txt") {
				t.Errorf("%s %q, %+v", rec.Outcome, rec.Reason, o)
			}
		})
	}
}

// TestPushBranches: a person sees the branch on the remote before it lands, if that is asked for. A remote that is gone
// keeps nothing from its end.
func TestPushBranches(t *testing.T) {
	for name, c := range map[string]struct{ push, gone bool }{"asked for": {push: true}, "not asked for": {}, "the remote is gone": {push: true, gone: true}} {
		t.Run(name, func(t *testing.T) {
			a := newAttempt(t, nil)
			far := filepath.Join(a.dir, ".git", "far")
			a.git(a.dir, "init", "-q", "--bare", "-b", "main", far)
			a.git(a.dir, "remote", "add", "far", far)
			if c.gone {
				a.must(os.RemoveAll(far))
			}
			a.rig.Def.Merge.Remote, a.rig.Def.Merge.PushBranches = "far", c.push
			a.write("one.txt", "one\n")
			var said []string
			rec, err := Finish(t.Context(), RetireDeps{Rig: a.rig, Say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}, a.publish(retire.Done, ""))
			if err != nil || rec.Stage != retire.Released {
				t.Fatalf("%s, %v", rec.Stage, err)
			}
			if told := strings.Contains(strings.Join(said, "\n"), "not_pushed"); told != c.gone {
				t.Errorf("said %q", said)
			}
			if c.gone {
				return
			}
			if there := a.git(a.dir, "--git-dir="+far, "for-each-ref", "--format=%(objectname)", "refs/heads/"+rec.Branch); (there == rec.Head) != c.push {
				t.Errorf("the remote holds %q, the head is %s", there, rec.Head)
			}
		})
	}
}

// What lies in the worktree without a record is freed once it is saved, and stays where it can't be.
func TestUnknownWorkStaysUnlessItIsSaved(t *testing.T) {
	a := newAttempt(t, nil)
	a.git(a.worktree(), "checkout", "-q", "-b", "polecat/other")
	a.write("theirs.txt", "theirs\n")
	a.must(ForgetWorktree(a.rig, alpha))
	rec := a.publish(retire.Fail, "no luck")
	gittest.Write(t, a.dir, ".git/refs/chipset/salvage", "in the way of every ref below it")
	rec, err := Finish(t.Context(), RetireDeps{Rig: a.rig}, rec)
	if err != nil || rec.Stage != retire.Released {
		t.Fatalf("%s, %v", rec.Stage, err)
	}
	if _, err := os.Stat(filepath.Join(a.worktree(), "theirs.txt")); err != nil {
		t.Error(err)
	}
	told := func(e event.Event) bool {
		all, err := a.rig.Events.About(string(a.bead), 99, func(is *event.Event) bool { return is.Type == e.Type })
		a.must(err)
		return len(all) > 0
	}
	if !told(event.WorktreeNotReleased(alpha, event.Work{}, "")) {
		t.Error("nobody is told that it stays")
	}
	// Done again it is saved, and it is said where.
	a.must(os.Remove(filepath.Join(a.dir, ".git", "refs", "chipset", "salvage")))
	f := &finish{carrier: carrier{Rig: a.rig}, rec: rec}
	f.freeWorktree(t.Context())
	if !told(event.WorkerSalvaged(alpha, event.Work{}, "", "")) || a.git(a.dir, "show", salvagePrefix+"polecat-other:theirs.txt") != "theirs" {
		t.Error("nobody is told where it is")
	}
}

// An LFS object that is missing keeps work from being submitted, and a branch from being pushed: nobody else could check it out.
func TestLFSObjectsThatAreMissing(t *testing.T) {
	stub := gittest.Dir(t)
	gittest.Write(t, stub, "git-lfs", "#!/bin/sh\nread -r says <"+stub+"/says && echo \"$says\" && exit 1\necho \"$@\" >>"+stub+"/calls\n")
	if err := os.Chmod(filepath.Join(stub, "git-lfs"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", stub+string(os.PathListSeparator)+os.Getenv("PATH"))
	begin := func() *attempt {
		a := newAttempt(t, nil)
		a.write(".gitattributes", "*.bin filter=lfs\n")
		a.git(a.worktree(), "add", "-A")
		a.git(a.worktree(), "commit", "-qm", "large files")
		a.git(a.dir, "config", "filter.lfs.clean", "cat")
		a.git(a.dir, "init", "-q", "--bare", filepath.Join(a.dir, ".git", "far"))
		a.git(a.dir, "remote", "add", "far", filepath.Join(a.dir, ".git", "far"))
		return a
	}
	a := begin()
	gittest.Write(t, stub, "says", "objects: openError: large.bin (1234) could not be checked\n")
	if rec, o := a.finished(retire.Done, ""); rec.Outcome != retire.Fail || !strings.Contains(rec.Reason, "a Git LFS object is missing: large.bin") || len(o.Requests) > 0 {
		t.Errorf("%s %q, %+v", rec.Outcome, rec.Reason, o)
	}
	a = begin()
	a.rig.Def.Merge.Remote = "far"
	head := git.Hash(a.git(a.worktree(), "rev-parse", "HEAD"))
	if err := Push(t.Context(), a.rig, head, "polecat/x"); err == nil || a.git(a.dir, "ls-remote", "far") != "" {
		t.Errorf("%v; the remote has %q", err, a.git(a.dir, "ls-remote", "far"))
	}
	gittest.Write(t, stub, "says", "")
	if err := Push(t.Context(), a.rig, head, "polecat/x"); err != nil || !strings.Contains(a.git(a.dir, "ls-remote", "far"), string(head)) {
		t.Errorf("%v; the remote has %q", err, a.git(a.dir, "ls-remote", "far"))
	}
	if rec, o := a.finished(retire.Done, ""); rec.Outcome != retire.Done || len(o.Requests) != 1 {
		t.Errorf("%s %q, %+v", rec.Outcome, rec.Reason, o)
	}
	if calls, err := os.ReadFile(filepath.Join(stub, "calls")); err != nil || !strings.HasPrefix(string(calls), "push far "+string(head)+"\nfsck ") {
		t.Errorf("git LFS was called as %q, %v", calls, err)
	}
}
