package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// diverged is a branch with two commits, and a target that moved on meanwhile.
func diverged(f *fixture) (w *Worktree, head, onto Hash) {
	f.Helper()
	w = f.prepared()
	f.commit(w.Path(), map[string]string{"b": "b"})
	head = f.commit(w.Path(), map[string]string{"c": "c"})
	onto = f.commit(f.TopLevel(), map[string]string{"d": "d"})
	return w, head, onto
}

func TestRebase(t *testing.T) {
	f := newFixture(t)
	w, _, onto := diverged(f)
	f.git(f.TopLevel(), "config", "rebase.backend", "apply")
	f.git(f.TopLevel(), "config", "rebase.rebaseMerges", "true")
	f.git(w.Path(), "commit", "-q", "--amend", "--no-edit", "--author", "Worker <w@example.org>")
	head := f.head(w.Path())
	for _, key := range []string{"user.name", "user.email"} {
		f.git(f.TopLevel(), "config", "--unset", key)
	}
	candidate, err := w.Rebase(f.ctx, head, onto, "refinery")
	f.must(err)
	f.wantPrepared(w, "", candidate)
	if n, err := f.CountCommits(f.ctx, onto, candidate); err != nil || n != 2 {
		t.Errorf("%d commits %v", n, err)
	}
	if who := f.git(w.Path(), "log", "-1", "--format=%an %cn"); who != "Worker refinery" {
		t.Errorf("%q", who)
	}
	f.wantTree(string(candidate), ".gitignore", "a.txt", "b", "c", "d")
	if held, _, err := f.ResolveRef(f.ctx, "refs/heads/polecat/x"); err != nil || held != head {
		t.Errorf("the branch moved to %v %v", held, err)
	}
	// Already there, and already landed.
	if again, err := w.Rebase(f.ctx, candidate, onto, "refinery"); err != nil || again != candidate {
		t.Errorf("%v %v", again, err)
	}
	if landed, err := w.Rebase(f.ctx, onto, candidate, "refinery"); err != nil || landed != candidate {
		t.Errorf("%v %v", landed, err)
	}
}

func TestRebaseFlattensAndDropsEmpty(t *testing.T) {
	f := newFixture(t)
	w, _, _ := diverged(f)
	f.git(w.Path(), "merge", "-q", "--no-edit", "main")
	head := f.commit(w.Path(), map[string]string{"e": "e"})
	onto := f.commit(f.TopLevel(), map[string]string{"b": "b"}) // the same change as a commit of the branch
	candidate, err := w.Rebase(f.ctx, head, onto, "refinery")
	f.must(err)
	if n, err := f.CountCommits(f.ctx, onto, candidate); err != nil || n != 2 {
		t.Errorf("%d commits %v", n, err)
	}
	// Linear history is needed even where the target did not move.
	merged := f.head(f.TopLevel())
	f.git(w.Path(), "checkout", "-q", "--detach", string(merged))
	f.git(w.Path(), "checkout", "-q", "-b", "s")
	f.commit(w.Path(), map[string]string{"s": "s"})
	f.git(w.Path(), "checkout", "-q", "--detach", string(merged))
	f.git(w.Path(), "merge", "-q", "--no-ff", "--no-edit", "s")
	candidate, err = w.Rebase(f.ctx, f.head(w.Path()), merged, "refinery")
	f.must(err)
	if c, err := f.commitRange(f.ctx, merged, candidate); err != nil || c.fork != merged {
		t.Errorf("%+v %v, want a linear range on %s", c, err, merged)
	}
}

func TestBroughtBy(t *testing.T) {
	f := newFixture(t)
	w, first, top := f.prepared(), Hash(""), f.TopLevel()
	one := f.commit(w.Path(), map[string]string{"one": "1"})
	two := f.commit(w.Path(), map[string]string{"two": "2"})
	check := func(what string, head, onto, want Hash) {
		t.Helper()
		got, found, err := f.BroughtBy(f.ctx, head, onto)
		if err != nil || found != (want != "") || found && got != want {
			t.Errorf("%s: %v %v %v, want %v", what, got, found, err, want)
		}
	}
	f.commit(top, map[string]string{"other": "o"})
	f.git(top, "cherry-pick", string(two))
	first = f.head(top)
	check("the younger one is there, the older is missing", two, first, "")
	f.git(top, "cherry-pick", string(one))
	both := f.head(top)
	check("in another order", two, f.commit(top, map[string]string{"more": "m"}), both)
	check("a part", one, f.head(top), both)
	f.git(top, "merge", "-q", "--no-edit", string(two))
	check("merged later", two, f.head(top), two)

	three := f.commit(w.Path(), map[string]string{"three": "3"})
	check("squashed", three, f.commit(top, map[string]string{"three": "3", "four": "4"}), "")
	_, _, err := f.BroughtBy(f.ctx, Hash(strings.Repeat("1", 40)), three)
	if err == nil {
		t.Error("a commit that is not there is held")
	}
}

func TestRebaseConflict(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	head := f.commit(w.Path(), map[string]string{"a.txt": "theirs\n"})
	onto := f.commit(f.TopLevel(), map[string]string{"a.txt": "ours\n"})
	_, err := w.Rebase(f.ctx, head, onto, "refinery")
	var conflict *ConflictError
	if !errors.As(err, &conflict) || !slices.Equal(conflict.Paths, []string{"a.txt"}) || !strings.Contains(conflict.Output, "CONFLICT") {
		t.Fatalf("%v", err)
	}
	f.wantPrepared(w, "", head)
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	_, err = w.Rebase(ctx, head, onto, "refinery")
	f.wantErr(err, context.Canceled)
}

func (f *fixture) wantBranch(b Branch, want Hash) {
	f.Helper()
	if held, _, err := f.ResolveRef(f.ctx, b.Ref()); err != nil || held != want {
		f.Fatalf("%s holds %v (%v), want %v", b, held, err, want)
	}
}

// step is main at old, and new a commit on top of it that changes, adds and removes files, and changes modes, links
// and what is a directory.
func step(f *fixture) (old, new Hash) {
	f.Helper()
	f.must(os.Symlink("a.txt", filepath.Join(f.TopLevel(), "link")))
	old = f.commit(f.TopLevel(), map[string]string{"gone": "g\n", "dir/only": "o\n", "kept": "k\n", "tool": "#!/bin/sh\n", "was file": "w\n"})
	w := f.prepared()
	f.must(os.Chmod(filepath.Join(w.Path(), "tool"), 0o755))
	f.must(os.Remove(filepath.Join(w.Path(), "link")))
	f.must(os.Symlink("kept", filepath.Join(w.Path(), "link")))
	f.must(os.Remove(filepath.Join(w.Path(), "was file")))
	new = f.commit(w.Path(), map[string]string{"a.txt": "one\nTWO\nthree\n", "added/new": "n\n", "gone": "", "dir/only": "", "was file/below": "w\n"})
	f.must(f.ReleaseWorktree(f.ctx, w.Path(), ""))
	return old, new
}

func TestAdvance(t *testing.T) {
	f := newFixture(t)
	old, new := step(f)
	f.write(f.TopLevel(), "untracked", "mine")
	f.write(f.TopLevel(), "kept", "changed by a person")
	f.git(f.TopLevel(), "config", "branch.main.mergeOptions", "--no-ff --squash")
	f.must(f.Advance(f.ctx, "main", old, new))
	f.wantBranch("main", new)
	f.wantFile(f.TopLevel(), "added/new", "n\n")
	f.wantFile(f.TopLevel(), "kept", "changed by a person")
	f.wantGone(f.TopLevel(), "gone")
	f.must(f.Advance(f.ctx, "main", old, new))
	f.wantErr(f.Advance(f.ctx, "main", new, old), ErrMoved)
}

func TestAdvanceOfABranchNobodyHas(t *testing.T) {
	f := newFixture(t)
	old, new := step(f)
	f.git(f.TopLevel(), "checkout", "-q", "-b", "elsewhere")
	f.must(f.Advance(f.ctx, "main", old, new))
	f.wantBranch("main", new)
	f.wantErr(f.Advance(f.ctx, "nope", old, new), ErrMoved)
	newer := f.commit(f.In(f.TopLevel()).Path(), map[string]string{"x": "x"})
	f.wantErr(f.Advance(f.ctx, "main", old, newer), ErrMoved)
	f.wantErr(f.Advance(f.ctx, "main", new, newer), ErrMoved) // not a fast-forward
	f.wantBranch("main", new)
}

func TestAdvanceRefused(t *testing.T) {
	cases := map[string]func(f *fixture){
		"changed file":      func(f *fixture) { f.write(f.TopLevel(), "a.txt", "mine\n") },
		"untracked file":    func(f *fixture) { f.write(f.TopLevel(), "added/new", "mine\n") },
		"staged change":     func(f *fixture) { f.write(f.TopLevel(), "gone", "mine\n"); f.git(f.TopLevel(), "add", "gone") },
		"locked ORIG_HEAD":  func(f *fixture) { f.write(f.CommonDir(), "ORIG_HEAD.lock", "") },
		"locked index":      func(f *fixture) { f.write(f.CommonDir(), "index.lock", "") },
		"merge in progress": func(f *fixture) { f.write(f.CommonDir(), "MERGE_HEAD", string(f.head(f.TopLevel()))+"\n") },
		"checked out twice": func(f *fixture) {
			f.git(f.TopLevel(), "worktree", "add", "-q", "--force", filepath.Join(f.TempDir(), "twice"), "main")
		},
		"bisect of it": func(f *fixture) { f.git(f.TopLevel(), "bisect", "start") },
		"bisect of more": func(f *fixture) {
			f.write(f.CommonDir(), "BISECT_LOG", "")
			f.write(f.CommonDir(), "BISECT_START", "other\n")
		},
		"bisect of it, detached": func(f *fixture) {
			f.git(f.TopLevel(), "checkout", "-q", "--detach")
			f.write(f.CommonDir(), "BISECT_START", "main\n")
		},
		"rebase of it": func(f *fixture) {
			f.git(f.TopLevel(), "checkout", "-q", "--detach")
			f.write(f.CommonDir(), "rebase-merge/head-name", "refs/heads/main\n")
		},
	}
	for name, obstruct := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.git(f.TopLevel(), "config", "branch.main.mergeOptions", "--autostash")
			old, new := step(f)
			obstruct(f)
			before := f.git(f.TopLevel(), "-c", "core.quotePath=false", "status", "--porcelain", "-uall", "--no-renames")
			err := f.Advance(f.ctx, "main", old, new)
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Path != f.TopLevel() || refused.Output == "" {
				t.Fatalf("%v", err)
			}
			f.wantBranch("main", old)
			if after := f.git(f.TopLevel(), "-c", "core.quotePath=false", "status", "--porcelain", "-uall", "--no-renames"); after != before {
				t.Errorf("touched:\n%s\n%s", before, after)
			}
		})
	}
}

// A branch whose name differs only by case is the same file on some file systems. It is never moved in the other's place.
func TestAdvanceBesideTheOtherCase(t *testing.T) {
	f := newFixture(t)
	old, new := step(f)
	f.git(f.TopLevel(), "checkout", "-q", "-b", "Main")
	f.wantErr(f.Advance(f.ctx, "main", old, new), ErrMoved)
	f.wantBranch("Main", old)
	f.wantBranch("main", old)
	f.wantGone(f.TopLevel(), "added/new")
}

// instead makes the repository's git run a shell script in place of one subcommand; $git is the real git.
func (f *fixture) instead(subcommand, script string) {
	f.Helper()
	path := filepath.Join(f.TempDir(), "git")
	f.must(os.WriteFile(path, []byte("#!/bin/sh\ngit='"+f.Repo.git+"'\nfor a; do case $a in "+subcommand+") "+script+" ;; esac; done\nexec \"$git\" \"$@\"\n"), 0o755))
	f.Repo.git = path
}

// What git's exit status says of a fast-forward is not believed: the branch is looked at.
func TestAdvanceLooksAtTheBranch(t *testing.T) {
	for name, c := range map[string]struct {
		script  string
		wantErr error // nil with refused == "": it has advanced
		refused string
	}{
		"it says so and does nothing":       {script: "exit 0", wantErr: ErrMoved},
		"it says no and does it":            {script: `"$git" "$@"; exit 1`},
		"somebody moves the branch":         {script: `"$git" -C "$PWD" update-ref refs/heads/main "$(echo x | "$git" -C "$PWD" commit-tree HEAD^{tree})"; exit 1`, wantErr: ErrMoved},
		"somebody's changes are in the way": {script: "echo in the way >&2; exit 1", refused: "in the way"},
		"somebody takes the lock":           {script: ": >.git/index.lock; exit 128", refused: "index.lock exists"},
		"it fails":                          {script: "exit 128", wantErr: &Error{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			old, new := step(f)
			f.instead("merge", c.script)
			err := f.Advance(f.ctx, "main", old, new)
			var refused *RefusedError
			var failed *Error
			switch _, anyError := c.wantErr.(*Error); {
			case c.refused != "":
				if !errors.As(err, &refused) || !strings.Contains(refused.Output, c.refused) {
					t.Errorf("%v", err)
				}
			case anyError:
				if !errors.As(err, &failed) || errors.As(err, &refused) || errors.Is(err, ErrMoved) {
					t.Errorf("%v", err)
				}
			default:
				f.wantErr(err, c.wantErr)
			}
		})
	}
}

// So are those of a commit, of a rebase and of a ref.
func TestOtherExitsAreNotBelieved(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	f.write(w.Path(), "new.txt", "new\n")
	git := f.Repo.git
	f.instead("commit", "exit 1")
	if made, err := w.CommitAll(f.ctx, "m", "a"); err == nil {
		t.Errorf("a commit that fails has made %+v", made)
	}
	f.Repo.git = git
	made, err := w.CommitAll(f.ctx, "m", "a")
	f.must(err)
	onto := f.commit(f.TopLevel(), map[string]string{"onto.txt": "x"})
	f.instead("cherry-pick", "exit 0")
	if candidate, err := w.Rebase(f.ctx, made.Hash, onto, "a"); err != nil || f.git(f.TopLevel(), "log", "--format=%s", string(onto)+".."+string(candidate)) != "m" {
		t.Errorf("a cherry-pick that does nothing has made %s, %v", candidate, err)
	}
	f.Repo.git = git
	f.instead("cherry-pick", "exit 1")
	f.instead("rebase", "exit 0")
	if candidate, err := w.Rebase(f.ctx, made.Hash, onto, "a"); err == nil {
		t.Errorf("a rebase that does nothing has made %s", candidate)
	}
	f.wantPrepared(w, "", made.Hash)
	f.Repo.git = git
	f.instead("update-ref", "exit 1")
	var failed *Error
	if err := f.UpdateBranch(f.ctx, "polecat/x", onto, made.Hash); !errors.As(err, &failed) || errors.Is(err, ErrMoved) {
		t.Errorf("%v", err)
	}
	if err := f.DeleteBranches(f.ctx, BranchDeletion{Branch: "polecat/x", Holds: made.Hash}); !errors.As(err, &failed) || errors.Is(err, ErrMoved) {
		t.Errorf("%v", err)
	}
}

func TestAdvanceInALinkedCheckout(t *testing.T) {
	f := newFixture(t)
	old, new := step(f)
	f.git(f.TopLevel(), "checkout", "-q", "-b", "elsewhere")
	linked := filepath.Join(t.TempDir(), "main here")
	f.git(f.TopLevel(), "worktree", "add", "-q", linked, "main")
	f.must(f.Advance(f.ctx, "main", old, new))
	f.wantFile(linked, "added/new", "n\n")
	f.wantBranch("elsewhere", old)
	f.must(os.RemoveAll(linked))
	newer := f.commitOn(new)
	f.must(f.Advance(f.ctx, "main", new, newer)) // its directory is gone: nobody has it
	f.wantBranch("main", newer)
}

// commitOn makes a commit on parent without any checkout.
func (f *fixture) commitOn(parent Hash) Hash {
	f.Helper()
	return Hash(f.git(f.TopLevel(), "commit-tree", "-p", string(parent), "-m", "x", string(parent)+"^{tree}"))
}

// TestRefusedCause: the one line that a person sees first names the files that are in the way.
func TestRefusedCause(t *testing.T) {
	for _, tt := range []struct{ output, want string }{
		{"error: Your local changes to the following files would be overwritten by merge:\n\ta.txt\n\tb.txt\nPlease commit your changes or stash them before you merge.\nAborting\n",
			"your changes to a.txt, b.txt would be overwritten: commit or stash them"},
		{"error: The following untracked working tree files would be overwritten by merge:\n\tnew.txt\nPlease move or remove them before you merge.\nAborting\n",
			"untracked new.txt would be overwritten: move or remove what you need"},
		{"a merge is in progress", "a merge is in progress"},
		{"fatal: one\nand more\n", "fatal: one"},
	} {
		if got := (&RefusedError{Output: tt.output}).Cause(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
