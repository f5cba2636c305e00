package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// What a worker leaves where git writes keeps it neither from the commit of its work nor from the next bead.
func TestUnblock(t *testing.T) {
	const next = "refs/heads/polecat/next"
	mkdir := func(f *fixture, path string) {
		f.must(errors.Join(os.MkdirAll(path, 0o755), os.WriteFile(filepath.Join(path, "x"), nil, 0o600)))
	}
	pipe := func(f *fixture, path string) {
		f.must(os.MkdirAll(filepath.Dir(path), 0o755))
		f.must(errors.Join(os.RemoveAll(path), syscall.Mkfifo(path, 0o600)))
	}
	write := func(f *fixture, path, text string) {
		f.must(os.MkdirAll(filepath.Dir(path), 0o755))
		f.must(os.WriteFile(path, []byte(text), 0o600))
	}
	for name, spoil := range map[string]func(f *fixture, common, admin, own string){
		"a folder for the lock of HEAD":     func(f *fixture, _, admin, _ string) { mkdir(f, filepath.Join(admin, "HEAD.lock")) },
		"a folder for the lock of an index": func(f *fixture, _, admin, _ string) { mkdir(f, filepath.Join(admin, "index.lock")) },
		"a pipe for the lock of an index":   func(f *fixture, _, admin, _ string) { pipe(f, filepath.Join(admin, "index.lock")) },
		"a link for the lock of HEAD": func(f *fixture, _, admin, _ string) {
			f.must(os.Symlink("/nowhere", filepath.Join(admin, "HEAD.lock")))
		},
		"a pipe for the way to a worktree": func(f *fixture, common, _, _ string) {
			pipe(f, filepath.Join(common, "worktrees", "zz", "gitdir"))
		},
		"a lock of its branch":              func(f *fixture, common, _, own string) { write(f, filepath.Join(common, own+".lock"), "") },
		"a folder for the lock of a branch": func(f *fixture, common, _, own string) { mkdir(f, filepath.Join(common, own+".lock")) },
		"a folder for the reflog of its branch": func(f *fixture, common, _, own string) {
			f.must(os.RemoveAll(filepath.Join(common, "logs", own)))
			mkdir(f, filepath.Join(common, "logs", own))
		},
		"a file for the folder of reflogs": func(f *fixture, common, _, _ string) {
			f.must(os.RemoveAll(filepath.Join(common, "logs/refs/heads/polecat")))
			write(f, filepath.Join(common, "logs/refs/heads/polecat"), "")
		},
		"the next branch: a lock":                func(f *fixture, common, _, _ string) { write(f, filepath.Join(common, next+".lock"), "") },
		"the next branch: no commit":             func(f *fixture, common, _, _ string) { write(f, filepath.Join(common, next), "junk") },
		"the next branch: a pipe":                func(f *fixture, common, _, _ string) { pipe(f, filepath.Join(common, next)) },
		"the next branch: a pipe for its reflog": func(f *fixture, common, _, _ string) { pipe(f, filepath.Join(common, "logs", next)) },
		"the next branch: a folder for its reflog": func(f *fixture, common, _, _ string) {
			mkdir(f, filepath.Join(common, "logs", next))
		},
		"an index of a terabyte": func(f *fixture, _, admin, _ string) { f.must(os.Truncate(filepath.Join(admin, "index"), 1<<40)) },
		"a branch of a terabyte": func(f *fixture, common, _, _ string) {
			write(f, filepath.Join(common, "refs/heads/polecat/large"), "")
			f.must(os.Truncate(filepath.Join(common, "refs/heads/polecat/large"), 1<<40))
		},
		"the next branch: another one below": func(f *fixture, common, _, _ string) {
			write(f, filepath.Join(common, next, "x"), f.git(f.TopLevel(), "rev-parse", "main")+"\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			w := f.prepared()
			branch, _, err := w.HeadBranch(f.ctx)
			f.must(err)
			spoil(f, f.CommonDir(), f.git(w.Path(), "rev-parse", "--absolute-git-dir"), string(branch.Ref()))
			write(f, filepath.Join(w.Path(), "new"), "")
			f.must(f.Unblock(w.Path(), "refs/heads/polecat/"))
			f.must(w.KeepTo(f.ctx, branch))
			made, err := w.CommitAll(f.ctx, "new", "polecat-alpha")
			if f.must(err); !made.Made {
				t.Errorf("%+v", made)
			}
			f.must(f.PrepareWorktree(f.ctx, w.Path(), "polecat/next", made.Hash))
		})
	}
}

func TestUnblockGivesRights(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	branch, _, err := w.HeadBranch(f.ctx)
	f.must(err)
	admin := f.git(w.Path(), "rev-parse", "--absolute-git-dir")
	log := filepath.Join(f.CommonDir(), "logs", string(branch.Ref()))
	f.must(os.MkdirAll(filepath.Join(w.Path(), "sub"), 0o755))
	closed := []string{filepath.Join(w.Path(), "sub"), w.Path(), filepath.Join(admin, "logs"), admin, log, filepath.Dir(log),
		filepath.Join(f.CommonDir(), string(branch.Ref())), filepath.Join(f.CommonDir(), "refs/heads/polecat")}
	for _, path := range closed {
		f.must(os.Chmod(path, 0))
	}
	f.must(f.Unblock(w.Path(), "refs/heads/polecat/"))
	f.must(f.PrepareWorktree(f.ctx, w.Path(), branch, f.head(f.TopLevel())))
	for _, path := range closed {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(path, "sub") {
			continue // no file was in it
		}
		if f.must(err); info.Mode()&0o600 != 0o600 {
			t.Errorf("%s has the rights %s", path, info.Mode())
		}
	}
}

// A file in the place of the folder of branches that holds a commit is somebody's branch.
func TestUnblockKeepsABranch(t *testing.T) {
	f := newFixture(t)
	f.git(f.TopLevel(), "branch", "polecat")
	f.must(f.Unblock(filepath.Join(t.TempDir(), "none"), "refs/heads/polecat/"))
	f.must(f.FreeBranch(f.ctx, "polecat/next"))
	f.git(f.TopLevel(), "rev-parse", "--verify", "refs/heads/polecat")
}

// The reflog of the next branch can be written, whatever rights a worker left it.
func TestFreeBranchGivesRights(t *testing.T) {
	f := newFixture(t)
	f.git(f.TopLevel(), "branch", "polecat/x")
	log := filepath.Join(f.CommonDir(), "logs/refs/heads/polecat/x")
	f.must(os.Chmod(log, 0))
	f.must(f.FreeBranch(f.ctx, "polecat/x"))
	if info, err := os.Lstat(log); err != nil || info.Mode()&0o600 != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// What is behind a link is not in the worktree: it is gone, and nothing of it is committed. So is what is below a file.
func TestSortOut(t *testing.T) {
	f := newFixture(t)
	outside := t.TempDir()
	for _, dir := range []string{outside, f.top} {
		f.write(dir, "sub/deep/x", "x")
	}
	f.must(os.Symlink(filepath.Join(outside, "sub"), filepath.Join(f.top, "link")))
	there, gone, problems := place{workTree: f.top}.sortOut([]string{"sub/deep/x", "link", "link/deep/x", "link/deep", "none", "a.txt/x", "a.txt"})
	if !slices.Equal(there, []string{"sub/deep/x", "link", "a.txt"}) || !slices.Equal(gone, []string{"link/deep/x", "link/deep", "none", "a.txt/x"}) || len(problems) > 0 {
		t.Errorf("there %q, gone %q, %v", there, gone, problems)
	}
}
