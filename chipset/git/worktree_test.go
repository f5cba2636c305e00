package git

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func (f *fixture) wantPrepared(w *Worktree, b Branch, h Hash) {
	f.Helper()
	head, found, err := w.Head(f.ctx)
	f.must(err)
	if !found || head != h {
		f.Fatalf("HEAD %v, want %v", head, h)
	}
	if on, found, err := w.HeadBranch(f.ctx); err != nil || found != (b != "") || on != b {
		f.Fatalf("branch %q %v", on, err)
	}
	status, err := w.Status(f.ctx)
	f.must(err)
	if !status.Clean() {
		f.Fatalf("not clean: %+v", status)
	}
	f.git(w.Path(), "status") // the worker's own git must work too
}

func TestPrepareReleaseRemove(t *testing.T) {
	f := newFixture(t)
	first := f.head(f.TopLevel())
	w := f.prepared()
	f.wantPrepared(w, "polecat/x", first)
	if path, found, err := f.CheckedOutAt(f.ctx, "polecat/x"); err != nil || !found || path != w.Path() {
		t.Errorf("checked out at %q %v", path, err)
	}
	f.write(w.Path(), "a.txt", "changed")
	f.write(w.Path(), "untracked/new\nfile", "x")
	f.write(w.Path(), "ignored/cache", "warm")
	f.git(w.Path(), "init", "-q", "inner")
	second := f.commit(f.TopLevel(), map[string]string{"b": "b"})
	f.must(f.PrepareWorktree(f.ctx, w.Path(), "polecat/y", second))
	f.wantPrepared(w, "polecat/y", second)
	f.wantFile(w.Path(), "ignored/cache", "warm")
	f.wantGone(w.Path(), "untracked")
	f.wantGone(w.Path(), "inner")

	f.write(w.Path(), "a.txt", "changed")
	f.must(f.ReleaseWorktree(f.ctx, w.Path(), ""))
	f.wantPrepared(w, "", second)
	f.must(f.PrepareDetached(f.ctx, w.Path(), first))
	f.wantPrepared(w, "", first)
	f.must(w.CheckoutDetached(f.ctx, second))
	f.wantPrepared(w, "", second)
	f.wantErr(f.ForgetWorktree(w.Path()), ErrForeignDirectory) // it holds work
	f.must(os.RemoveAll(w.Path()))
	f.must(f.ForgetWorktree(w.Path()))
	if list, err := f.ListWorktrees(f.ctx); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	f.must(f.ForgetWorktree(w.Path()))
	f.wantErr(f.ReleaseWorktree(f.ctx, w.Path(), ""), ErrNotWorktree)
}

func TestMainWorktreeIsNeverForced(t *testing.T) {
	f := newFixture(t)
	top, head := f.TopLevel(), f.head(f.TopLevel())
	f.write(top, "a.txt", "precious")
	f.write(top, "untracked", "precious")
	f.wantErr(f.PrepareWorktree(f.ctx, top, "polecat/x", head), ErrForeignDirectory)
	f.wantErr(f.ReleaseWorktree(f.ctx, top, ""), ErrNotWorktree)
	f.wantErr(f.ForgetWorktree(top), ErrNotWorktree)
	f.wantErr(f.In(top).CheckoutDetached(f.ctx, head), ErrNotWorktree)
	_, err := f.In(top).Rebase(f.ctx, head, head, "refinery")
	f.wantErr(err, ErrNotWorktree)
	_, err = f.In(top).CommitAll(f.ctx, "m", "a")
	f.wantErr(err, ErrNotWorktree)
	// A directory that is no worktree must not lead git up to the main one.
	sub := filepath.Join(top, "sub")
	f.write(sub, "x", "x")
	f.wantErr(f.ReleaseWorktree(f.ctx, sub, ""), ErrNotWorktree)
	f.wantErr(f.PrepareWorktree(f.ctx, sub, "polecat/x", head), ErrForeignDirectory)
	f.wantFile(top, "a.txt", "precious")
	f.wantFile(top, "untracked", "precious")
}

func TestPrepareHeals(t *testing.T) {
	cases := map[string]func(f *fixture, w *Worktree, admin string){
		"directory gone": func(f *fixture, w *Worktree, _ string) { f.must(os.RemoveAll(w.Path())) },
		"directory gone, locked": func(f *fixture, w *Worktree, _ string) {
			f.git(w.Path(), "worktree", "lock", w.Path())
			f.must(os.RemoveAll(w.Path()))
		},
		"empty directory, pruned": func(f *fixture, w *Worktree, admin string) {
			f.must(os.RemoveAll(admin))
			f.must(os.RemoveAll(w.Path()))
			f.must(os.Mkdir(w.Path(), 0o755))
		},
		".git gone":          func(f *fixture, w *Worktree, _ string) { f.must(os.Remove(filepath.Join(w.Path(), ".git"))) },
		".git leads to main": func(f *fixture, w *Worktree, _ string) { f.write(w.Path(), ".git", "gitdir: "+f.CommonDir()+"\n") },
		"index.lock":         func(f *fixture, _ *Worktree, admin string) { f.write(admin, "index.lock", "half") },
		"HEAD.lock":          func(f *fixture, _ *Worktree, admin string) { f.write(admin, "HEAD.lock", "") },
		"index corrupt":      func(f *fixture, _ *Worktree, admin string) { f.write(admin, "index", "rubbish") },
		"index empty":        func(f *fixture, _ *Worktree, admin string) { f.must(os.Truncate(filepath.Join(admin, "index"), 0)) },
		"index gone":         func(f *fixture, _ *Worktree, admin string) { f.must(os.Remove(filepath.Join(admin, "index"))) },
		"killed while initialising": func(f *fixture, _ *Worktree, admin string) {
			f.write(admin, "locked", "initializing")
			f.must(os.Remove(filepath.Join(admin, "index")))
		},
		"HEAD torn before anything was checked out": func(f *fixture, w *Worktree, admin string) {
			f.write(admin, "locked", "")
			f.write(admin, "HEAD", "")
			f.must(os.Remove(filepath.Join(admin, "index")))
			f.must(os.Remove(filepath.Join(w.Path(), "a.txt")))
			f.must(os.Remove(filepath.Join(w.Path(), ".gitignore")))
		},
		"killed before HEAD": func(f *fixture, w *Worktree, admin string) {
			f.must(os.Remove(filepath.Join(admin, "HEAD")))
			f.must(os.Remove(filepath.Join(w.Path(), "a.txt")))
			f.must(os.Remove(filepath.Join(w.Path(), ".gitignore")))
		},
		"merge conflict":  func(f *fixture, w *Worktree, _ string) { f.conflict(w.Path(), "merge") },
		"rebase conflict": func(f *fixture, w *Worktree, _ string) { f.conflict(w.Path(), "rebase") },
		"rebase with autostash": func(f *fixture, w *Worktree, _ string) {
			f.git(w.Path(), "config", "rebase.autoStash", "true")
			f.conflict(w.Path(), "rebase")
		},
		"cherry-pick conflict": func(f *fixture, w *Worktree, _ string) { f.conflict(w.Path(), "cherry-pick") },
		"bisect": func(f *fixture, w *Worktree, _ string) {
			first := f.head(w.Path())
			for range 4 {
				f.git(w.Path(), "commit", "-q", "--allow-empty", "-m", "e")
			}
			f.git(w.Path(), "bisect", "start", "HEAD", string(first))
			f.write(w.Path(), "a.txt", "changed")
		},
		"orphan branch": func(f *fixture, w *Worktree, _ string) { f.git(w.Path(), "checkout", "-q", "--orphan", "lost") },
		"directory for a file": func(f *fixture, w *Worktree, _ string) {
			f.must(os.Remove(filepath.Join(w.Path(), "a.txt")))
			f.write(w.Path(), "a.txt/b", "x")
		},
	}
	for name, harm := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			w := f.prepared()
			admin, err := f.gitDirOf(w.Path())
			f.must(err)
			harm(f, w, admin)
			base := f.head(f.TopLevel())
			f.must(f.PrepareWorktree(f.ctx, w.Path(), "polecat/next", base))
			f.wantPrepared(w, "polecat/next", base)
		})
	}
}

// conflict leaves an operation in dir stopped at a conflict in a.txt.
func (f *fixture) conflict(dir, how string) {
	f.Helper()
	base := f.head(dir)
	f.git(dir, "checkout", "-q", "-b", "theirs-"+how)
	f.commit(dir, map[string]string{"a.txt": "theirs\n"})
	f.git(dir, "checkout", "-q", "-b", "ours-"+how, string(base))
	f.commit(dir, map[string]string{"a.txt": "ours\n"})
	if out, err := f.tryGit(dir, how, "theirs-"+how); err == nil {
		f.Fatalf("%s did not conflict: %s", how, out)
	}
}

func TestPrepareRefuses(t *testing.T) {
	f := newFixture(t)
	head := f.head(f.TopLevel())
	w := f.prepared()
	other := filepath.Join(filepath.Dir(w.Path()), "other")
	f.wantErr(f.PrepareWorktree(f.ctx, other, "polecat/x", head), ErrBranchInUse)
	f.wantErr(f.PrepareWorktree(f.ctx, other, "main", head), ErrBranchInUse)
	f.wantGone(other, "")

	f.write(other, "precious", "x")
	f.wantErr(f.PrepareWorktree(f.ctx, other, "polecat/y", head), ErrForeignDirectory)
	f.wantFile(other, "precious", "x")
	link := filepath.Join(filepath.Dir(w.Path()), "link")
	f.must(os.Symlink(other, link))
	f.wantErr(f.PrepareWorktree(f.ctx, link, "polecat/y", head), ErrForeignDirectory)
	f.must(os.Remove(link))
	f.must(os.Symlink(w.Path(), link)) // another agent's worktree
	f.wantErr(f.PrepareWorktree(f.ctx, link, "polecat/y", head), ErrForeignDirectory)
	f.wantPrepared(w, "polecat/x", head)

	f.must(os.Remove(filepath.Join(w.Path(), ".git")))
	f.git(w.Path(), "init", "-q")
	f.wantErr(f.PrepareWorktree(f.ctx, w.Path(), "polecat/y", head), ErrForeignDirectory)
	f.wantFile(w.Path(), "a.txt", "one\ntwo\nthree\n")
}

func TestLiveLockIsWaitedFor(t *testing.T) {
	f := newFixture(t)
	f.LockGrace = 1 << 40 // forever
	w := f.prepared()
	admin, err := f.gitDirOf(w.Path())
	f.must(err)
	f.write(admin, "index.lock", "")
	done := make(chan error, 1)
	go func() { done <- f.ReleaseWorktree(f.ctx, w.Path(), "") }()
	f.must(os.Remove(filepath.Join(admin, "index.lock")))
	f.must(<-done)
}

func TestStatus(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	f.write(w.Path(), "a.txt", "changed")
	f.write(w.Path(), "new\nline ü", "x")
	f.write(w.Path(), "ignored/x", "x")
	f.write(w.Path(), ".chipset/x", "x")
	f.git(w.Path(), "init", "-q", "inner")
	f.write(w.Path(), "inner/x", "x")
	f.git(w.Path(), "config", "status.showUntrackedFiles", "no")
	f.git(w.Path(), "config", "color.ui", "always")
	status, err := w.Status(f.ctx)
	f.must(err)
	if !slices.Equal(status.Dirty, []string{"a.txt", "new\nline ü"}) || !slices.Equal(status.Embedded, []string{"inner"}) || status.Unmerged != nil {
		t.Errorf("%+v", status)
	}
	f.must(f.ReleaseWorktree(f.ctx, w.Path(), ""))
	f.conflict(w.Path(), "merge")
	status, err = w.Status(f.ctx)
	f.must(err)
	if !slices.Equal(status.Unmerged, []string{"a.txt"}) || status.Operation != OperationMerge || status.Clean() {
		t.Errorf("%+v", status)
	}
	_, err = w.CommitAll(f.ctx, "m", "polecat-alpha")
	var unmerged *UnmergedError
	if !errors.As(err, &unmerged) || !slices.Equal(unmerged.Paths, []string{"a.txt"}) {
		t.Errorf("%v", err)
	}
}

// Whatever a power cut tore of one worktree's registration keeps no other from being made or used.
func TestPrepareBesideATornRegistration(t *testing.T) {
	for _, name := range []string{"commondir", "gitdir", "HEAD", "index", "."} {
		for torn, spoil := range map[string]func(path string) error{
			"gone":  os.RemoveAll,
			"empty": func(path string) error { return os.WriteFile(path, nil, 0o644) },
			"zeros": func(path string) error { return os.WriteFile(path, make([]byte, 8), 0o644) },
		} {
			if name == "." && torn != "gone" {
				continue
			}
			t.Run(name+" "+torn, func(t *testing.T) {
				f := newFixture(t)
				other := f.prepared()
				f.must(spoil(filepath.Join(f.admin(other), name)))
				head := f.head(f.TopLevel())
				w := f.In(filepath.Join(filepath.Dir(other.Path()), "bravo"))
				for range 2 {
					f.must(f.PrepareWorktree(f.ctx, w.Path(), "polecat/z", head))
					f.wantPrepared(w, "polecat/z", head)
				}
				f.must(f.ReleaseWorktree(f.ctx, w.Path(), ""))
			})
		}
	}
}

// A link to a registration that is gone, beside which nothing was ever checked out, is in nobody's way.
func TestPrepareOverLinkAlone(t *testing.T) {
	f := newFixture(t)
	path := filepath.Join(f.TopLevel(), "wt", "refinery")
	f.write(path, ".git", "gitdir: "+filepath.Join(f.common, "worktrees", "refinery")+"\n")
	f.must(f.PrepareDetached(f.ctx, path, f.head(f.TopLevel())))
	f.wantFile(path, "a.txt", "one\ntwo\nthree\n")
}

// An operation of which git can't read its own records any more is ended all the same.
func TestPrepareEndsTornOperations(t *testing.T) {
	for _, torn := range []string{"rebase-merge/autostash", "rebase-merge/head-name", "rebase-apply/applying", "rebase-merge",
		"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "sequencer/todo", "BISECT_LOG"} {
		t.Run(torn, func(t *testing.T) {
			f := newFixture(t)
			w := f.prepared()
			admin, err := w.GitDir()
			f.must(err)
			f.write(admin, torn, "")
			f.must(f.PrepareDetached(f.ctx, w.Path(), f.head(f.TopLevel())))
			if op := operation(admin); op != NoOperation {
				t.Errorf("still in the middle of %s", op)
			}
		})
	}
}

// A repository was copied whole. The worktrees that stand elsewhere are still those of the other one, and what lands in
// the copy does not touch their files.
func TestWorktreesOfTheCopiedRepository(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	old := f.head(w.Path())
	copied := filepath.Join(t.TempDir(), "copy")
	f.must(os.CopyFS(copied, os.DirFS(f.TopLevel())))
	r, err := Open(f.ctx, copied)
	f.must(err)
	if at, found, err := f.CheckedOutAt(f.ctx, "polecat/x"); err != nil || !found {
		t.Errorf("%q %v %v", at, found, err)
	}
	if at, found, err := r.CheckedOutAt(f.ctx, "polecat/x"); err != nil || found {
		t.Errorf("the copy has it checked out at %q: %v", at, err)
	}
	new := f.commit(copied, map[string]string{"landed": "x"})
	f.must(r.Advance(f.ctx, "polecat/x", old, new))
	f.wantGone(w.Path(), "landed")
	f.wantPrepared(w, "polecat/x", old)

	f.must(os.RemoveAll(filepath.Join(f.TopLevel(), ".git"))) // no other repository knows it any more
	if _, found, err := r.CheckedOutAt(f.ctx, "polecat/x"); err != nil || !found {
		t.Errorf("%v %v", found, err)
	}
}
