package repair

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
)

// standing is what refs and worktrees hold.
func (f *fixture) standing() string {
	text := f.git(f.TopLevel(), "for-each-ref", "--format=%(refname) %(objectname)")
	for line := range strings.SplitSeq(f.git(f.TopLevel(), "worktree", "list", "--porcelain"), "\n") {
		dir, ok := strings.CutPrefix(line, "worktree ")
		if _, err := os.Lstat(dir); ok && err == nil {
			text += "\n" + dir + "\n" + f.git(dir, "rev-parse", "HEAD") + "\n" + f.git(dir, "status", "--porcelain", "--branch", "--untracked-files=all")
		}
	}
	return text
}

// broken is a world and the repair of it.
type broken struct {
	*fixture
	// One of the two strikes.
	faults   *gittest.Faults
	refusals *gittest.Refusals
	repair   func(r *git.Repo) (any, error)
	files    bool // what stands is git's own files
}

// ownFiles are git's own files, but what is set aside, which has another name each time.
func (b *broken) ownFiles() string {
	text := ""
	for _, dir := range []string{"refs", "logs", "objects"} {
		err := filepath.WalkDir(filepath.Join(b.CommonDir(), dir), func(path string, _ fs.DirEntry, err error) error {
			text += path + "\n"
			return err
		})
		b.must(err)
	}
	aside, err := filepath.Glob(filepath.Join(b.CommonDir(), "chipset-aside", "*", "*"))
	b.must(err)
	return fmt.Sprintln(text, len(aside), "set aside")
}

func (b *broken) sweep(name string) {
	b.T.Run(name, func(t *testing.T) {
		p := gittest.Play{World: b.TopLevel(), Standing: b.standing, Do: func() (any, error) {
			r, err := git.Open(b.ctx, b.TopLevel())
			if err != nil {
				return nil, err
			}
			defer r.Close()
			return b.repair(r)
		}}
		if b.files {
			p.Standing = b.ownFiles
		}
		if b.faults == nil {
			b.refusals.Sweep(t, p, "")
			return
		}
		b.faults.Sweep(t, p)
		b.faults.Silence(t, p, 8)
	})
}

// A repair of which a git is killed says so, and done once more it repairs what it would have.
func TestGitIsKilled(t *testing.T) {
	t.Setenv("TMPDIR", gittest.Dir(t)) // where nothing waits for a disk
	faults := gittest.NewFaults(t)
	for _, name := range slices.Sorted(maps.Keys(tears)) {
		f := newFixture(t)
		w := f.prepared()
		base := f.head(f.TopLevel())
		f.commit(w.Path(), map[string]string{"own.txt": "committed"})
		f.write(w.Path(), "new.txt", "not committed")
		admin, err := w.GitDir()
		f.must(err)
		tears[name](f, w, admin)
		b := &broken{fixture: f, faults: faults, repair: func(r *git.Repo) (any, error) {
			known := Known{Branch: "polecat/x", Base: base}
			if _, err := CheckWorktree(f.ctx, r, w.Path(), known); err != nil {
				return nil, err
			}
			_, err := Worktree(f.ctx, r, w.Path(), known)
			return nil, err
		}}
		b.sweep(name)
	}

	b := halfAdvanced(t)
	b.faults = faults
	b.sweep("advance")
	b = tornRefs(t)
	b.faults = faults
	b.sweep("refs")
	b.repair = b.look
	b.sweep("look at refs")
}

// halfAdvanced is the checkout of a person in which an advance was killed.
func halfAdvanced(t *testing.T) *broken {
	t.Helper()
	f := newFixture(t)
	old, new := step(f)
	f.write(f.TopLevel(), "a.txt", "one\nTW")
	f.write(f.TopLevel(), "kept", "a person's")
	f.must(os.Remove(filepath.Join(f.TopLevel(), "gone")))
	return &broken{fixture: f, repair: func(r *git.Repo) (any, error) {
		_, err := Advance(f.ctx, r, "main", old, new, true)
		return nil, err
	}}
}

// tornRefs are a branch that can be restored, and one that is to go.
func tornRefs(t *testing.T) *broken {
	t.Helper()
	f := newFixture(t)
	old, new := step(f)
	torn := func(ref string) {
		f.git(f.TopLevel(), "branch", ref, string(old))
		f.write(f.CommonDir(), "refs/heads/"+ref, "")
	}
	torn("torn/one")
	torn("torn/two")
	f.write(f.CommonDir(), "packed-refs", strings.Repeat("2", 40)+" refs/heads/torn/packed\n"+strings.Repeat("1", 40)+" refs/heads/torn/two\n")
	return &broken{fixture: f, repair: func(r *git.Repo) (any, error) {
		found, err := BrokenRefs(f.ctx, r, "refs/heads/torn/", "refs/heads/main")
		if err == nil {
			err = RestoreRef(f.ctx, r, "refs/heads/torn/one", new)
		}
		if err == nil {
			err = RemoveRef(f.ctx, r, "refs/heads/torn/two")
		}
		return len(found) > 0 || err == nil, err
	}}
}

// look finds the broken refs, and repairs none.
func (b *broken) look(r *git.Repo) (any, error) {
	found, err := BrokenRefs(b.ctx, r, "refs/heads/torn/", "refs/heads/main", "refs/heads/none")
	if err != nil {
		return nil, err
	}
	return found, nil
}

// A repair during which a call on a file fails says so, and done once more it repairs what it would have.
func TestCallsFail(t *testing.T) {
	t.Setenv("TMPDIR", gittest.Dir(t)) // where nothing waits for a disk
	refusals := &gittest.Refusals{}
	for _, c := range []struct {
		name string
		tear func(f *fixture, w *git.Worktree, admin string)
	}{
		{"branch", tears["branch file torn"]},
		{"everything", tears["everything"]},
		{"registry", func(f *fixture, _ *git.Worktree, admin string) {
			f.must(os.RemoveAll(filepath.Dir(admin)))
			f.write(f.CommonDir(), "worktrees", "")
		}},
		{"folder", func(f *fixture, w *git.Worktree, admin string) {
			f.must(os.RemoveAll(w.Path()))
			f.write(admin, "HEAD", "")
		}},
	} {
		f := newFixture(t)
		w := f.prepared()
		base := f.head(f.TopLevel())
		f.commit(w.Path(), map[string]string{"own.txt": "committed"})
		f.write(w.Path(), "new.txt", "not committed")
		f.git(w.Path(), "checkout", "-q", "--detach")
		f.commit(w.Path(), map[string]string{"loose.txt": "on no branch"})
		f.git(w.Path(), "checkout", "-q", "polecat/x")
		admin, err := w.GitDir()
		f.must(err)
		c.tear(f, w, admin)
		b := &broken{fixture: f, refusals: refusals, repair: func(r *git.Repo) (any, error) {
			_, err := Worktree(f.ctx, r, w.Path(), Known{Branch: "polecat/x", Base: base})
			return nil, err
		}}
		b.sweep(c.name)
	}
	b := halfAdvanced(t)
	b.refusals = refusals
	b.sweep("advance")
	b = tornRefs(t)
	b.refusals = refusals
	b.sweep("refs")
	b.repair = b.look
	b.sweep("look at refs")
	for _, c := range []struct {
		name   string
		repair func(f *fixture, r *git.Repo) error
	}{
		{"obstacles", func(f *fixture, r *git.Repo) error {
			found, err := Obstacles(f.ctx, r, "refs/heads/polecat/", "refs/chipset/")
			for _, file := range found {
				if err == nil {
					_, err = SetAside(r, file)
				}
			}
			return err
		}},
		{"objects", func(_ *fixture, r *git.Repo) error { return RemoveEmptyObjects(r) }},
		{"keep files", func(_ *fixture, r *git.Repo) error { _, err := RemoveKeepFiles(r, time.Now(), 0); return err }},
	} {
		f := newFixture(t)
		f.write(f.CommonDir(), "refs/chipset", "")
		f.write(f.CommonDir(), "logs/refs/heads/polecat", "torn")
		f.write(f.CommonDir(), "objects/11/"+strings.Repeat("1", 38), "")
		f.write(f.CommonDir(), "objects/pack/pack-1.keep", keepMark)
		b := &broken{fixture: f, refusals: refusals, files: true, repair: func(r *git.Repo) (any, error) { return nil, c.repair(f, r) }}
		b.sweep(c.name)
	}
}

// What was moved leads to itself again. What leads elsewhere, or is torn, is left alone.
func TestRelink(t *testing.T) {
	f := newFixture(t)
	f.prepared()
	top := filepath.Join(filepath.Dir(f.TopLevel()), "moved")
	f.must(os.Rename(f.TopLevel(), top))
	r, err := git.Open(f.ctx, top)
	f.must(err)
	w := r.In(filepath.Join(top, ".chipset", "worktrees", "polecat alpha"))
	if _, err := f.tryGit(w.Path(), "status"); err == nil {
		t.Fatal("it leads to itself although it was moved")
	}
	f.must(Relink(r, w.Path()))
	f.git(w.Path(), "status")
	if list := f.git(top, "worktree", "list", "--porcelain"); !strings.Contains(list, w.Path()) {
		t.Errorf("registered:\n%s", list)
	}
	admin, err := w.GitDir()
	f.must(err)
	read := func(name string) string {
		data, err := os.ReadFile(name)
		f.must(err)
		return string(data)
	}
	for _, c := range []struct{ link, gitdir string }{
		{"torn", filepath.Join(w.Path(), ".git") + "\n"},
		{"gitdir: " + admin + "\n", "/another/folder/.git\n"},
		{"gitdir: " + admin + "\n", ""},
		{"gitdir: " + filepath.Join(filepath.Dir(admin), "none") + "\n", filepath.Join(w.Path(), ".git") + "\n"},
	} {
		f.write(w.Path(), ".git", c.link)
		f.write(admin, "gitdir", c.gitdir)
		f.must(Relink(r, w.Path()))
		if link, gitdir := read(filepath.Join(w.Path(), ".git")), read(filepath.Join(admin, "gitdir")); link != c.link || gitdir != c.gitdir {
			t.Errorf("%q and %q became %q and %q", c.link, c.gitdir, link, gitdir)
		}
	}
	// One of the two leads here: the other follows.
	f.write(w.Path(), ".git", "gitdir: "+admin+"\n")
	f.write(admin, "gitdir", "/nowhere/"+filepath.Base(w.Path())+"/.git\n")
	f.must(Relink(r, w.Path()))
	if got := read(filepath.Join(admin, "gitdir")); got != filepath.Join(w.Path(), ".git")+"\n" {
		t.Errorf("gitdir %q", got)
	}
	f.write(w.Path(), ".git", "gitdir: /elsewhere/"+filepath.Base(admin)+"\n")
	f.must(Relink(r, w.Path()))
	if got := read(filepath.Join(w.Path(), ".git")); got != "gitdir: "+admin+"\n" {
		t.Errorf(".git %q", got)
	}
}
