package carry

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/retire"
)

// TestSaveWork: work of a lost record is saved by its branch's
// name, and nothing is saved where nothing would be lost.
func TestSaveWork(t *testing.T) {
	a := newAttempt(t, nil)
	if ref, err := SaveWork(t.Context(), a.rig, alpha, "m"); ref != "" || err != nil {
		t.Errorf("nothing to save: %q, %v", ref, err)
	}
	if ref, err := SaveWork(t.Context(), a.rig, "polecat-bravo", "m"); ref != "" || err != nil {
		t.Errorf("no worktree: %q, %v", ref, err)
	}
	a.write("x.txt", "x\n")
	first, err := SaveWork(t.Context(), a.rig, alpha, "m")
	if err != nil || first != salvagePrefix+string(a.as) {
		t.Errorf("saved on %q, %v", first, err)
	}
	if again, err := SaveWork(t.Context(), a.rig, alpha, "m"); again != first || err != nil {
		t.Errorf("saved again on %q, %v", again, err)
	}
	a.must(ForgetWorktree(a.rig, alpha))
	if ref, err := SaveWork(t.Context(), a.rig, alpha, "m"); err != nil || ref != salvagePrefix+"polecat-"+string(a.bead) {
		t.Errorf("without a record saved on %q, %v", ref, err)
	}
	refs := strings.Fields(a.git(a.dir, "for-each-ref", "--format=%(refname)", salvagePrefix))
	if len(refs) != 2 || !slices.Contains(refs, first) {
		t.Errorf("refs %v", refs)
	}
}

// TestSaveWorkOnNoBranch: a commit that no branch holds is saved when nothing says whose it is, unless another ref keeps it.
func TestSaveWorkOnNoBranch(t *testing.T) {
	a := newAttempt(t, nil)
	a.git(a.worktree(), "checkout", "-q", "--detach")
	a.write("loose.txt", "loose\n")
	a.git(a.worktree(), "add", "-A")
	a.git(a.worktree(), "commit", "-qm", "loose")
	a.must(ForgetWorktree(a.rig, alpha))
	head := a.git(a.worktree(), "rev-parse", "HEAD")
	ref, err := SaveWork(t.Context(), a.rig, alpha, "m")
	if err != nil || ref == "" || a.git(a.dir, "rev-parse", ref) != head {
		t.Fatalf("saved on %q, %v", ref, err)
	}
	if ref, err := SaveWork(t.Context(), a.rig, alpha, "m"); err != nil || ref != "" {
		t.Errorf("what is kept is saved again on %q, %v", ref, err)
	}
}

// A session goes on only in the worktree that it left, with nothing of git's files torn.
func TestWorktreeWhole(t *testing.T) {
	for name, c := range map[string]struct {
		session state.SessionID
		change  func(a *attempt, use *Worktree)
		whole   bool
	}{
		"as it was left":     {"ses-one", func(*attempt, *Worktree) {}, true},
		"of another":         {"ses-two", func(*attempt, *Worktree) {}, false},
		"torn by the record": {"ses-one", func(_ *attempt, use *Worktree) { use.Torn = true }, false},
		"HEAD is torn":       {"ses-one", func(a *attempt, _ *Worktree) { gittest.Write(t, a.dir, ".git/worktrees/polecat-alpha/HEAD", "") }, false},
		"the folder is gone": {"ses-one", func(a *attempt, _ *Worktree) { a.must(os.RemoveAll(a.worktree())) }, false},
		"nothing is known":   {"ses-one", func(_ *attempt, use *Worktree) { use.AssignmentID = "" }, false},
	} {
		a := newAttempt(t, nil)
		use, _ := ReadWorktree(a.rig, alpha)
		c.change(a, &use)
		a.must(WriteWorktree(a.rig, use))
		if whole, err := WorktreeWhole(t.Context(), a.rig, alpha, c.session); err != nil || whole != c.whole {
			t.Errorf("%s: %v, %v", name, whole, err)
		}
	}
}

// Whether a worker has changed anything: a file, a commit, or neither.
func TestWorktreeChanged(t *testing.T) {
	a := newAttempt(t, nil)
	changed := func(want bool, what string) {
		t.Helper()
		if got, err := WorktreeChanged(t.Context(), a.rig, alpha); err != nil || got != want {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	changed(false, "nothing")
	a.write("x.txt", "x\n")
	changed(true, "a file")
	a.git(a.worktree(), "add", "-A")
	a.git(a.worktree(), "commit", "-qm", "x")
	changed(true, "a commit")
	a.must(ForgetWorktree(a.rig, alpha))
	changed(false, "a clean worktree without a record")
}

// TestHintOfAFolderWithoutARecord: the folder of a polecat is the rig's, unless somebody has a repository of their own in it.
func TestHintOfAFolderWithoutARecord(t *testing.T) {
	a := newAttempt(t, nil)
	a.must(ForgetWorktree(a.rig, alpha))
	own := func(want bool, what string) {
		t.Helper()
		if got := HintOf(a.rig, alpha).Own; got != want {
			t.Errorf("%s: %t", what, got)
		}
	}
	own(true, "a worktree")
	a.must(os.Remove(filepath.Join(a.worktree(), ".git")))
	own(true, "files alone")
	a.git(a.worktree(), "init", "-q", "theirs")
	own(false, "a repository below it")
	a.must(os.RemoveAll(a.worktree()))
	own(true, "nothing")
}

// TestSaveWorkWithoutAFolder: the folder is gone, and with the next preparation
// the branch would be reset.
func TestSaveWorkWithoutAFolder(t *testing.T) {
	a := newAttempt(t, nil)
	a.write("x.txt", "x\n")
	a.git(a.worktree(), "add", "x.txt")
	a.git(a.worktree(), "commit", "-qm", "x")
	a.must(os.RemoveAll(a.worktree()))
	ref, err := SaveWork(t.Context(), a.rig, alpha, "m")
	if err != nil || ref != salvagePrefix+string(a.as)+"-branch" {
		t.Fatalf("saved on %q, %v", ref, err)
	}
	if files := a.git(a.dir, "ls-tree", "--name-only", ref); files != "README\nx.txt" {
		t.Errorf("saved %q", files)
	}
	a = newAttempt(t, nil)
	a.must(os.RemoveAll(a.worktree()))
	if ref, err := SaveWork(t.Context(), a.rig, alpha, "m"); err != nil || ref != "" {
		t.Errorf("no work is saved on %q, %v", ref, err)
	}
}

// An object that a power cut tore is stored again from the worktree before the work is submitted.
func TestTornObjectIsStoredAgain(t *testing.T) {
	a := newAttempt(t, nil)
	a.write("one.txt", "one, and only here\n")
	a.git(a.worktree(), "add", "-A")
	a.git(a.worktree(), "commit", "-qm", "one")
	blob := a.git(a.worktree(), "rev-parse", "HEAD:one.txt")
	object := filepath.Join(a.dir, ".git", "objects", blob[:2], blob[2:])
	a.must(os.Chmod(object, 0o600))
	a.must(os.Truncate(object, 0))
	_, o := a.finished(retire.Done, "")
	if o.Bead != "done" || a.git(a.dir, "cat-file", "blob", blob) != "one, and only here" {
		t.Errorf("%+v", o)
	}
}

// What is saved of a worktree is whole, also where a power cut left an empty object under the name of one of its files.
func TestEmptyObjectIsSavedWhole(t *testing.T) {
	a := newAttempt(t, nil)
	a.write("one.txt", "one, and only here\n")
	blob := a.git(a.worktree(), "hash-object", "one.txt")
	object := filepath.Join(a.dir, ".git", "objects", blob[:2], blob[2:])
	a.must(os.MkdirAll(filepath.Dir(object), 0o755))
	a.must(os.WriteFile(object, nil, 0o444))
	a.must(os.Truncate(filepath.Join(a.dir, ".git/worktrees/polecat-alpha/index"), 0))
	ref, err := SaveWork(t.Context(), a.rig, alpha, "saved")
	a.must(err)
	if ref == "" {
		t.Fatal("nothing is saved")
	}
	if saved := a.git(a.dir, "cat-file", "blob", ref+":one.txt"); saved != "one, and only here" {
		t.Errorf("saved is %q", saved)
	}
}

// A torn object of what is saved is taken away: git would take it for there, and store its content never again.
func TestTornObjectOfSavedWorkIsRemoved(t *testing.T) {
	a := newAttempt(t, nil)
	a.write("one.txt", "one, and only here\n")
	a.git(a.worktree(), "add", "-A")
	a.git(a.worktree(), "commit", "-qm", "one")
	blob := a.git(a.worktree(), "rev-parse", "HEAD:one.txt")
	object := filepath.Join(a.dir, ".git", "objects", blob[:2], blob[2:])
	a.must(os.Chmod(object, 0o600))
	a.must(os.WriteFile(object, []byte("torn"), 0o600))
	ref, err := SaveWork(t.Context(), a.rig, alpha, "saved")
	a.must(err)
	if ref == "" {
		t.Fatal("nothing is saved")
	}
	a.git(a.worktree(), "hash-object", "-w", "one.txt")
	if again := a.git(a.dir, "cat-file", "blob", blob); again != "one, and only here" {
		t.Errorf("stored again it is %q", again)
	}
}

// Work that has landed needs no saving, also while the branch that it was made on is checked out.
func TestLandedWorkIsNotSaved(t *testing.T) {
	a := newAttempt(t, nil)
	a.write("one.txt", "one\n")
	a.git(a.worktree(), "add", "-A")
	a.git(a.worktree(), "commit", "-qm", "one")
	a.git(a.dir, "merge", "-q", "--ff-only", a.git(a.worktree(), "rev-parse", "HEAD"))
	if ref, err := SaveWork(t.Context(), a.rig, alpha, "m"); err != nil || ref != "" {
		t.Errorf("saved on %q, %v", ref, err)
	}
}

// What a torn worktree holds is saved before anything else comes of it. An end that can't save it is no end.
func TestTornWorktreeThatCantBeSaved(t *testing.T) {
	a := newAttempt(t, nil)
	a.write("one.txt", "one\n")
	rec := a.publish(retire.Done, "")
	gittest.Write(t, a.dir, ".git/worktrees/polecat-alpha/HEAD", "")
	inTheWay := filepath.Join(a.dir, ".git", "refs", "chipset", "salvage")
	gittest.Write(t, a.dir, ".git/refs/chipset/salvage", "in the way of every ref below it")
	if rec, err := Finish(t.Context(), RetireDeps{Rig: a.rig}, rec); err == nil {
		t.Fatalf("it ends as %s, %s", rec.Outcome, rec.Stage)
	}
	a.must(os.Remove(inTheWay))
	a.reopen()
	if _, err := Finish(t.Context(), RetireDeps{Rig: a.rig}, rec); err != nil {
		t.Fatal(err)
	}
	if refs := strings.Fields(a.git(a.dir, "for-each-ref", "--format=%(refname)", "refs/chipset/salvage", "refs/heads/polecat")); !slices.ContainsFunc(refs, func(ref string) bool {
		return strings.Contains(a.git(a.dir, "ls-tree", "--name-only", ref), "one.txt")
	}) {
		t.Errorf("one.txt is on none of %q", refs)
	}
}

// Files that a power cut may have torn with HEAD are taken out of the worktree, so that they are not submitted when the
// record that says so is lost as well.
func TestTornFilesAreNotSubmittedWithoutARecord(t *testing.T) {
	a := newAttempt(t, nil)
	a.write("whole.txt", "whole\n")
	a.git(a.worktree(), "add", "-A")
	a.git(a.worktree(), "commit", "-qm", "whole")
	a.write("torn.txt", "to")
	rec := a.publish(retire.Done, "")
	gittest.Write(t, a.dir, ".git/worktrees/polecat-alpha/HEAD", "")
	ref, err := SaveWork(t.Context(), a.rig, alpha, "m")
	if err != nil || !strings.Contains(a.git(a.dir, "ls-tree", "--name-only", ref), "torn.txt") {
		t.Fatalf("saved on %q, %v", ref, err)
	}
	a.must(ForgetWorktree(a.rig, alpha))
	_, err = Finish(t.Context(), RetireDeps{Rig: a.rig}, rec)
	a.must(err)
	if o := a.outcome(); strings.Contains(o.Landed, "torn.txt") {
		t.Errorf("%+v", o)
	}
}

// A record that holds nonsense names no work, and keeps nobody from anything.
func TestRecordOfNoBranch(t *testing.T) {
	a := newAttempt(t, nil)
	use, _ := ReadWorktree(a.rig, alpha)
	use.Branch = "-"
	a.must(WriteWorktree(a.rig, use))
	a.must(os.RemoveAll(a.worktree()))
	if ref, err := SaveWork(t.Context(), a.rig, alpha, "m"); err != nil || ref != "" {
		t.Errorf("saved on %q, %v", ref, err)
	}
}
