package git

import (
	"os"
	"path/filepath"
	"testing"
)

func (f *fixture) admin(w *Worktree) string {
	f.Helper()
	dir, err := f.gitDirOf(w.Path())
	f.must(err)
	return dir
}

// A worktree is taken over without a salvage only when nothing in it could be lost.
func TestPrepareIdleRefuses(t *testing.T) {
	for name, disturb := range map[string]func(f *fixture, w *Worktree){
		"nothing there": func(f *fixture, w *Worktree) { f.must(os.RemoveAll(w.Path())) },
		"never was":     func(f *fixture, w *Worktree) { f.git(f.TopLevel(), "worktree", "remove", "--force", w.Path()) },
		"a change":      func(f *fixture, w *Worktree) { f.write(w.Path(), "a.txt", "changed\n") },
		"a staged one": func(f *fixture, w *Worktree) {
			f.write(w.Path(), "a.txt", "changed\n")
			f.git(w.Path(), "add", "-A")
			f.write(w.Path(), "a.txt", "one\ntwo\nthree\n")
		},
		"an untracked file":     func(f *fixture, w *Worktree) { f.write(w.Path(), "new", "new\n") },
		"a file below .chipset": func(f *fixture, w *Worktree) { f.write(w.Path(), ".chipset/new", "new\n") },
		"a repository inside":   func(f *fixture, w *Worktree) { f.git(w.Path(), "init", "-q", "inner") },
		"on a branch":           func(f *fixture, w *Worktree) { f.git(w.Path(), "checkout", "-q", "polecat/x") },
		"a commit of its own": func(f *fixture, w *Worktree) {
			f.commit(w.Path(), map[string]string{"n": "n"})
		},
		"a commit that only the branch has": func(f *fixture, w *Worktree) {
			f.git(f.TopLevel(), "branch", "polecat/y", string(f.commit(w.Path(), map[string]string{"n": "n"})))
		},
		"a conflict": func(f *fixture, w *Worktree) { f.conflict(w.Path(), "merge") },
		"a bisect":   func(f *fixture, w *Worktree) { f.git(w.Path(), "bisect", "start") },
		"no link":    func(f *fixture, w *Worktree) { f.must(os.Remove(filepath.Join(w.Path(), ".git"))) },
		"another's link": func(f *fixture, w *Worktree) {
			f.write(w.Path(), ".git", "gitdir: "+f.CommonDir()+"\n")
		},
		"a broken index": func(f *fixture, w *Worktree) {
			f.write(f.admin(w), "index", "nonsense")
		},
		"files that only its own commit ignores": func(f *fixture, w *Worktree) {
			f.git(w.Path(), "checkout", "-q", "-b", "polecat/z")
			f.commit(w.Path(), map[string]string{"sub/.gitignore": "hidden\n"})
			f.git(w.Path(), "checkout", "-q", "--detach")
			f.write(w.Path(), "sub/hidden", "of another bead\n")
		},
		"the branch in use": func(f *fixture, w *Worktree) { f.git(f.TopLevel(), "checkout", "-q", "-b", "polecat/y") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.prepared()
			f.must(f.ReleaseWorktree(f.ctx, w.Path(), ""))
			base, admin := f.head(f.TopLevel()), f.admin(w)
			disturb(f, w)
			before, _ := os.ReadFile(filepath.Join(admin, "HEAD"))
			if f.PrepareIdle(f.ctx, w.Path(), "polecat/y", base) {
				t.Fatal("taken for idle")
			}
			after, _ := os.ReadFile(filepath.Join(admin, "HEAD"))
			if string(before) != string(after) {
				t.Errorf("HEAD moved from %q to %q", before, after)
			}
		})
	}
	f := newFixture(t)
	if f.PrepareIdle(f.ctx, f.TopLevel(), "polecat/y", f.head(f.TopLevel())) {
		t.Error("took the main worktree")
	}
}

// A worker can make the next branch another name of main. Neither is moved to base with the other.
func TestPrepareIdleOfAnotherNameOfABranch(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	base := f.head(f.TopLevel())
	f.must(f.ReleaseWorktree(f.ctx, w.Path(), base))
	main := f.commit(f.TopLevel(), map[string]string{"n": "n"})
	f.git(f.TopLevel(), "symbolic-ref", "refs/heads/polecat/y", "refs/heads/main")
	if !f.PrepareIdle(f.ctx, w.Path(), "polecat/y", base) {
		t.Error("not idle")
	}
	f.wantPrepared(w, "polecat/y", base)
	f.wantBranch("main", main)
}

func TestPrepareIdle(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	kept := f.commit(w.Path(), map[string]string{"n": "n", "a.txt": "theirs\n"})
	f.write(w.Path(), "ignored/cache", "kept\n")
	f.must(f.ReleaseWorktree(f.ctx, w.Path(), ""))
	f.git(f.TopLevel(), "update-ref", "refs/chipset/landed/mr-x", string(kept))
	f.git(f.TopLevel(), "branch", "-q", "-D", "polecat/x")
	base := f.head(f.TopLevel())
	f.write(f.admin(w), "index.lock", "") // of a git that was killed
	if !f.PrepareIdle(f.ctx, w.Path(), "polecat/y", base) {
		t.Fatal("not idle")
	}
	f.wantPrepared(w, "polecat/y", base)
	f.wantGone(w.Path(), "n")
	f.wantFile(w.Path(), "ignored/cache", "kept\n")
}

// Ignored files that steer whoever works next don't survive; caches do, and what is inside of them.
func TestNothingSteersTheNext(t *testing.T) {
	f := newFixture(t)
	f.Steering = []string{".steer", ".env.*"}
	f.commit(f.TopLevel(), map[string]string{".gitignore": "ignored/\n.env.*\n*.local\n", ".steer/tracked": "x", "sub/x": "x"})
	w := f.prepared()
	base := f.head(f.TopLevel())
	left := map[string]bool{".env.x": false, "sub/.env.y": false, ".steer/x.local": false, "ignored/.env.z": true, "y.local": true, ".steer/tracked": true}
	plant := func() {
		for name := range left {
			f.write(w.Path(), name, "x")
		}
	}
	check := func() {
		t.Helper()
		for name, stays := range left {
			if _, err := os.Lstat(filepath.Join(w.Path(), name)); (err == nil) != stays {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	f.must(f.ReleaseWorktree(f.ctx, w.Path(), ""))
	plant()
	if f.PrepareIdle(f.ctx, w.Path(), "polecat/y", base) {
		t.Error("taken for idle")
	}
	f.must(f.PrepareWorktree(f.ctx, w.Path(), "polecat/y", base))
	check()
	plant()
	f.must(f.ReleaseWorktree(f.ctx, w.Path(), ""))
	check()
	if !f.PrepareIdle(f.ctx, w.Path(), "polecat/z", base) {
		t.Error("what is tracked, or inside of an ignored folder, makes it busy")
	}
}

// What this process left is idle also when its branch is gone by now, but not when that branch is to be reset.
func TestLeaveWorktree(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	base := f.head(f.TopLevel())
	head := f.commit(w.Path(), map[string]string{"n": "n"})
	if f.LeaveWorktree(f.ctx, f.TopLevel()) {
		t.Fatal("left the main worktree")
	}
	if !f.LeaveWorktree(f.ctx, w.Path()) {
		t.Fatal("not left")
	}
	if got := f.head(w.Path()); got != head {
		t.Errorf("HEAD is %s, want %s", got, head)
	}
	if _, on, err := w.HeadBranch(f.ctx); on || err != nil {
		t.Errorf("on a branch: %v", err)
	}
	if f.LeaveWorktree(f.ctx, w.Path()) {
		t.Error("left again although nothing says that a branch holds it")
	}
	if f.PrepareIdle(f.ctx, w.Path(), "polecat/x", base) {
		t.Error("the only branch that holds it was reset")
	}
	f.must(f.DeleteBranches(f.ctx, BranchDeletion{Branch: "polecat/x", Holds: head, Keep: "refs/chipset/landed/mr-x"}))
	if !f.PrepareIdle(f.ctx, w.Path(), "polecat/y", base) {
		t.Fatal("not idle")
	}
	f.wantPrepared(w, "polecat/y", base)
	f.wantGone(w.Path(), "n")

	f.conflict(w.Path(), "merge")
	if f.LeaveWorktree(f.ctx, w.Path()) {
		t.Error("left in the middle of a merge")
	}
}

// Whatever a test command left behind, and whatever names a worker gave to branches, the candidate is the same.
func TestRebaseOverWhatIsLeftOver(t *testing.T) {
	for name, disturb := range map[string]func(f *fixture, w *Worktree, head, onto Hash){
		"nothing":          func(*fixture, *Worktree, Hash, Hash) {},
		"a changed file":   func(f *fixture, w *Worktree, _, _ Hash) { f.write(w.Path(), "a.txt", "built\n") },
		"a file of head's": func(f *fixture, w *Worktree, _, _ Hash) { f.write(w.Path(), "theirs", "built\n") },
		"an ignored one":   func(f *fixture, w *Worktree, _, _ Hash) { f.write(w.Path(), "ignored/theirs", "built\n") },
		"a hidden change":  hide("--assume-unchanged"),
		"a skipped file":   hide("--skip-worktree"),
		"a branch named as head": func(f *fixture, _ *Worktree, head, _ Hash) {
			f.git(f.TopLevel(), "update-ref", "refs/heads/"+string(head), string(head))
		},
		"a branch named as onto": func(f *fixture, _ *Worktree, head, onto Hash) {
			f.git(f.TopLevel(), "update-ref", "refs/heads/"+string(onto), string(head))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.prepared()
			f.write(w.Path(), "ignored/theirs", "theirs\n")
			f.git(w.Path(), "add", "-f", "ignored/theirs")
			head := f.commit(w.Path(), map[string]string{"theirs": "theirs\n"})
			onto := f.commit(f.TopLevel(), map[string]string{"ours": "ours\n", "a.txt": "ours\n"})
			f.git(w.Path(), "checkout", "-q", "--detach", string(onto))
			disturb(f, w, head, onto)
			candidate, err := w.Rebase(f.ctx, head, onto, "refinery")
			f.must(err)
			if c, err := f.commitRange(f.ctx, onto, candidate); err != nil || c.fork != onto || c.count != 1 {
				t.Errorf("%+v %v", c, err)
			}
			if b, found, err := w.HeadBranch(f.ctx); found || err != nil {
				t.Errorf("on branch %s %v", b, err)
			}
			f.wantFile(w.Path(), "theirs", "theirs\n")
			f.wantFile(w.Path(), "ignored/theirs", "theirs\n")
			for _, h := range []Hash{head, onto} {
				if got, found, err := f.ResolveRef(f.ctx, Ref("refs/heads/"+string(h))); err != nil || found && got != head {
					t.Errorf("the branch %s was moved to %s: %v", h, got, err)
				}
			}
		})
	}
}

func hide(how string) func(*fixture, *Worktree, Hash, Hash) {
	return func(f *fixture, w *Worktree, _, _ Hash) {
		f.git(w.Path(), "update-index", how, "a.txt")
		f.write(w.Path(), "a.txt", "built\n")
	}
}

// A checkout that did something says so; an update-ref from elsewhere does not, nor does a worktree of the rig's.
func TestCheckoutMade(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	below := filepath.Dir(w.Path())
	made := func(h Hash) bool {
		t.Helper()
		is, err := f.CheckoutMade(h, below)
		f.must(err)
		return is
	}
	if h := f.commit(f.TopLevel(), map[string]string{"b": "b"}); !made(h) {
		t.Error("a commit of the person's")
	}
	sly := f.commit(w.Path(), map[string]string{"sly": "x"})
	f.git(w.Path(), "update-ref", "refs/heads/main", string(sly))
	if made(sly) {
		t.Error("an update-ref of a worker's")
	}
	f.git(f.TopLevel(), "update-ref", "refs/heads/main", string(f.commit(w.Path(), map[string]string{"slyer": "x"})))
	if made(f.head(w.Path())) {
		t.Error("an update-ref in the checkout")
	}
	if h, known := f.PlainRef("refs/heads/main"); !known || h != f.head(w.Path()) {
		t.Errorf("%s %v", h, known)
	}
}
