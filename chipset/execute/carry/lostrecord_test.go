package carry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/retire"
)

// A worktree of which nobody knows any more what it holds is saved before it is
// freed, also when git's own files of it are torn.
func TestLostWorktreeRecordLosesNothing(t *testing.T) {
	tears := map[string]func(a *attempt){
		"record gone": func(*attempt) {},
		"link torn":   func(a *attempt) { a.write(".git", "gitdi") },
		"link and registration torn": func(a *attempt) {
			a.write(".git", "")
			admin := filepath.Join(a.rig.Git.CommonDir(), "worktrees", string(alpha))
			a.must(os.WriteFile(filepath.Join(admin, "gitdir"), nil, 0o644))
			a.must(os.WriteFile(filepath.Join(admin, "HEAD"), nil, 0o644))
		},
		"registration gone": func(a *attempt) {
			a.must(os.RemoveAll(filepath.Join(a.rig.Git.CommonDir(), "worktrees", string(alpha))))
		},
		"registration and link gone": func(a *attempt) {
			a.must(os.RemoveAll(filepath.Join(a.rig.Git.CommonDir(), "worktrees", string(alpha))))
			a.must(os.Remove(filepath.Join(a.worktree(), ".git")))
		},
		"on another branch": func(a *attempt) { a.git(a.worktree(), "checkout", "-q", "-b", "elsewhere") },
	}
	for name, tear := range tears {
		for _, lost := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				a := newAttempt(t, nil)
				a.write("precious.txt", "not committed")
				rec := a.publish(retire.Fail, "it does not work")
				if lost { // nobody owns the attempt any more
					_, err := a.rig.Beads.Update(t.Context(), string(a.bead), func(b *bead.Bead) error { return b.Become(bead.Open, "", a.now()) })
					a.must(err)
				}
				tear(a)
				a.must(ForgetWorktree(a.rig, alpha))
				done, err := Finish(t.Context(), RetireDeps{Rig: a.rig}, rec)
				if err != nil || !done.Stage.Final() {
					t.Fatalf("%+v, %v", done, err)
				}
				for ref := range strings.FieldsSeq(a.git(a.dir, "for-each-ref", "--format=%(refname)", salvagePrefix)) {
					if a.git(a.dir, "show", ref+":precious.txt") == "not committed" {
						return
					}
				}
				if data, err := os.ReadFile(filepath.Join(a.worktree(), "precious.txt")); err == nil && string(data) == "not committed" {
					return
				}
				t.Error("what was not committed is gone")
			})
		}
	}
}

// The refinery makes its worktree again when a power cut took all that git knew of
// it, and what lay there is saved first. What it knows of needs no saving.
func TestTornCandidatesAreInNobodysWay(t *testing.T) {
	y := newYard(t, "")
	id, path := y.Refinery(), y.Worktree(y.Refinery())
	_, tip, err := TargetTip(t.Context(), y.Rig)
	y.must(err)
	y.must(y.Git.PrepareDetached(t.Context(), path, tip))
	gittest.Write(t, path, "notes.txt", "somebody's")
	admin := filepath.Join(y.Git.CommonDir(), "worktrees", string(id))
	y.must(os.WriteFile(filepath.Join(admin, "HEAD"), nil, 0o644))
	y.must(MendCandidates(t.Context(), y.Rig, id))
	if refs := gittest.Run(t, y.Dir, "for-each-ref", salvagePrefix); refs != "" {
		t.Errorf("a candidate was saved: %s", refs)
	}
	y.must(os.RemoveAll(admin))
	y.must(os.Remove(filepath.Join(path, ".git")))
	y.must(MendCandidates(t.Context(), y.Rig, id))
	ref := gittest.Run(t, y.Dir, "for-each-ref", "--format=%(refname)", salvagePrefix)
	if got := gittest.Run(t, y.Dir, "show", ref+":notes.txt"); got != "somebody's" {
		t.Errorf("saved on %q: %q", ref, got)
	}
	y.must(y.Git.PrepareDetached(t.Context(), path, tip))
}
