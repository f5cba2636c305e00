package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tears are what a power cut or a hand can do to git's own files of a worktree.
var tears = map[string]func(f *fixture, w *Worktree, admin string){
	"link torn":       func(f *fixture, w *Worktree, _ string) { f.write(w.Path(), ".git", "gitd") },
	"link gone":       func(f *fixture, w *Worktree, _ string) { f.must(os.Remove(filepath.Join(w.Path(), ".git"))) },
	"link astray":     func(f *fixture, w *Worktree, _ string) { f.write(w.Path(), ".git", "gitdir: /nowhere\n") },
	"HEAD empty":      func(f *fixture, _ *Worktree, admin string) { f.write(admin, "HEAD", "") },
	"HEAD zeros":      func(f *fixture, _ *Worktree, admin string) { f.write(admin, "HEAD", strings.Repeat("\x00", 41)) },
	"HEAD gone":       func(f *fixture, _ *Worktree, admin string) { f.must(os.Remove(filepath.Join(admin, "HEAD"))) },
	"HEAD to nothing": func(f *fixture, _ *Worktree, admin string) { f.write(admin, "HEAD", strings.Repeat("1", 40)+"\n") },
	"index empty":     func(f *fixture, _ *Worktree, admin string) { f.write(admin, "index", "") },
	"index torn":      func(f *fixture, _ *Worktree, admin string) { f.must(os.Truncate(filepath.Join(admin, "index"), 50)) },
	"index gone":      func(f *fixture, _ *Worktree, admin string) { f.must(os.Remove(filepath.Join(admin, "index"))) },
	"gitdir empty":    func(f *fixture, _ *Worktree, admin string) { f.write(admin, "gitdir", "") },
	"gitdir gone":     func(f *fixture, _ *Worktree, admin string) { f.must(os.Remove(filepath.Join(admin, "gitdir"))) },
	"commondir empty": func(f *fixture, _ *Worktree, admin string) { f.write(admin, "commondir", "") },
	"commondir gone":  func(f *fixture, _ *Worktree, admin string) { f.must(os.Remove(filepath.Join(admin, "commondir"))) },
	"locked": func(f *fixture, _ *Worktree, admin string) {
		f.write(admin, "index.lock", "")
		f.write(admin, "index", "")
	},
	"registry gone":    func(f *fixture, _ *Worktree, admin string) { f.must(os.RemoveAll(admin)) },
	"branch file torn": func(f *fixture, _ *Worktree, _ string) { f.write(f.common, "refs/heads/polecat/x", "") },
	"commit not there": func(f *fixture, _ *Worktree, _ string) {
		f.write(f.common, "refs/heads/polecat/x", strings.Repeat("1", 40)+"\n")
	},
	"link and gitdir": func(f *fixture, w *Worktree, admin string) {
		f.write(w.Path(), ".git", "")
		f.write(admin, "gitdir", "")
	},
	"everything": func(f *fixture, w *Worktree, admin string) {
		for _, name := range []string{"gitdir", "HEAD", "commondir", "index"} {
			f.write(admin, name, "")
		}
		f.must(os.Remove(filepath.Join(w.Path(), ".git")))
	},
}

// Whatever of git's own files is torn, what the worktree holds can be saved afterwards: commits and files.
func TestMend(t *testing.T) {
	for name, tear := range tears {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			w := f.prepared()
			base := f.head(f.TopLevel())
			own := f.commit(w.Path(), map[string]string{"own.txt": "committed"})
			f.write(w.Path(), "new.txt", "not committed")
			admin, err := f.gitDirOf(w.Path())
			f.must(err)
			if found, err := f.Wounds(f.ctx, w.Path(), Hint{Branch: "polecat/x"}); err != nil || len(found) > 0 {
				t.Fatalf("a whole one has wounds: %v, %v", found, err)
			}
			tear(f, w, admin)
			found, err := f.Wounds(f.ctx, w.Path(), Hint{Branch: "polecat/x"})
			if err != nil || len(found) == 0 {
				t.Fatalf("not noticed: %v", err)
			}
			_, err = f.Mend(f.ctx, w.Path(), Hint{Branch: "polecat/x", Base: base})
			f.must(err)
			if found, err := f.Wounds(f.ctx, w.Path(), Hint{Branch: "polecat/x"}); err != nil || len(found) > 0 {
				t.Errorf("left: %v, %v", found, err)
			}
			f.git(w.Path(), "status")
			saved, err := w.Salvage(f.ctx, SalvageRequest{Base: base, Ref: "refs/chipset/salvage/as-1", Message: "m", AgentID: "a"})
			f.must(err)
			if !saved.Saved || f.git(f.TopLevel(), "show", string(saved.Hash)+":new.txt") != "not committed" ||
				f.git(f.TopLevel(), "show", string(saved.Hash)+":own.txt") != "committed" {
				t.Errorf("saved %+v", saved)
			}
			if reached, err := f.IsAncestor(f.ctx, own, saved.Hash); name != "registry gone" && (err != nil || !reached) && !strings.HasPrefix(name, "commit") {
				t.Errorf("the commit is not among what was saved: %v", err)
			}
			f.must(f.PrepareWorktree(f.ctx, w.Path(), "polecat/y", base))
			f.wantPrepared(w, "polecat/y", base)
		})
	}
}

// Nothing is mended that is not torn, or that belongs to somebody else.
func TestMendLeavesAlone(t *testing.T) {
	f := newFixture(t)
	empty := filepath.Join(f.TopLevel(), "wt", "empty")
	f.must(os.MkdirAll(empty, 0o755))
	foreign := filepath.Join(f.TopLevel(), "wt", "foreign")
	f.write(foreign, "notes.txt", "a person's")
	w := f.prepared()
	f.git(w.Path(), "checkout", "-q", "--orphan", "fresh")
	for _, path := range []string{empty, foreign, filepath.Join(f.TopLevel(), "wt", "none"), f.TopLevel(), w.Path()} {
		if found, err := f.Mend(f.ctx, path, Hint{}); err != nil || len(found) > 0 {
			t.Errorf("%s: %v, %v", path, found, err)
		}
	}
}

// A registration whose folder is gone does not keep git from its other worktrees.
func TestMendRegistrationWithoutFolder(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	admin, err := f.gitDirOf(w.Path())
	f.must(err)
	f.must(os.RemoveAll(w.Path()))
	f.write(admin, "commondir", "")
	if _, err := f.ListWorktrees(f.ctx); err == nil {
		t.Skip("this git reads its list without it")
	}
	_, err = f.Mend(f.ctx, w.Path(), Hint{})
	f.must(err)
	if list, err := f.ListWorktrees(f.ctx); err != nil || len(list) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
}

// A folder of the rig's own is a worktree also when a power cut left neither its registration nor its link.
func TestMendOwnFolder(t *testing.T) {
	f := newFixture(t)
	base := f.head(f.TopLevel())
	w := f.prepared()
	f.write(w.Path(), "new.txt", "not committed")
	f.must(os.RemoveAll(filepath.Join(f.common, "worktrees")))
	f.must(os.Remove(filepath.Join(w.Path(), ".git")))
	if found, err := f.Wounds(f.ctx, w.Path(), Hint{}); err != nil || len(found) > 0 {
		t.Errorf("without a word of whose it is: %v, %v", found, err)
	}
	mended, err := f.Mend(f.ctx, w.Path(), Hint{Own: true})
	if err != nil || len(mended) == 0 || !mended[0].Unknown {
		t.Fatalf("mended %+v, %v", mended, err)
	}
	saved, err := w.Salvage(f.ctx, SalvageRequest{Base: base, Ref: "refs/chipset/salvage/lost", Message: "m", AgentID: "a"})
	f.must(err)
	if !saved.Saved || f.git(f.TopLevel(), "show", string(saved.Hash)+":new.txt") != "not committed" {
		t.Errorf("saved %+v", saved)
	}
	f.must(f.PrepareDetached(f.ctx, w.Path(), base))
}

// Nor is a repository of somebody's own taken for one of the rig's.
func TestMendLeavesOwnRepositories(t *testing.T) {
	f := newFixture(t)
	path := filepath.Join(f.TopLevel(), "wt", "theirs")
	f.write(path, "a.txt", "x")
	f.git(path, "init", "-q")
	if found, err := f.Mend(f.ctx, path, Hint{Own: true, Branch: "polecat/x"}); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	f.wantErr(f.PrepareDetached(f.ctx, path, f.head(f.TopLevel())), ErrForeignDirectory)
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
	for _, torn := range []string{"rebase-merge/autostash", "rebase-merge/head-name", "rebase-apply/applying", "rebase-merge"} {
		t.Run(torn, func(t *testing.T) {
			f := newFixture(t)
			w := f.prepared()
			admin, err := f.gitDirOf(w.Path())
			f.must(err)
			f.write(admin, torn, "")
			f.must(f.PrepareDetached(f.ctx, w.Path(), f.head(f.TopLevel())))
			if op := operation(admin); op != NoOperation {
				t.Errorf("still in the middle of %s", op)
			}
		})
	}
}

// A branch is put back on what its reflog or its records tell of, and a whole one stays.
func TestMendRef(t *testing.T) {
	f := newFixture(t)
	first := f.head(f.TopLevel())
	f.git(f.TopLevel(), "branch", "polecat/z", string(first))
	f.write(f.common, "refs/heads/polecat/z", "")
	f.must(f.MendRef(f.ctx, "refs/heads/polecat/z", "", first))
	if h, found, err := f.ResolveRef(f.ctx, "refs/heads/polecat/z"); err != nil || !found || h != first {
		t.Errorf("%s %v %v", h, found, err)
	}
	second := f.commit(f.TopLevel(), map[string]string{"b": "b"})
	f.must(f.MendRef(f.ctx, "refs/heads/polecat/z", second))
	if h, _, _ := f.ResolveRef(f.ctx, "refs/heads/polecat/z"); h != first {
		t.Errorf("moved to %s", h)
	}
}

// A branch that is gone is told of while its reflog names a commit that is there: else nobody was told of it.
func TestLostRef(t *testing.T) {
	f := newFixture(t)
	log := func(h string) {
		f.write(f.common, "logs/refs/heads/snapshots", strings.Repeat("0", 40)+" "+h+" n <n@n> 1 +0000\tm\n")
	}
	for _, c := range []struct {
		commit string
		broken int
	}{{string(f.head(f.TopLevel())), 1}, {strings.Repeat("1", 40), 0}} {
		log(c.commit)
		broken, err := f.BrokenRefs(f.ctx, "refs/heads/snapshots")
		f.must(err)
		if len(broken) != c.broken {
			t.Errorf("%s: %v", c.commit, broken)
		}
	}
	entry := func(h string) string { return strings.Repeat("0", 40) + " " + h + " n <n@n> 1 +0000\tm\n" }
	head := entry(string(f.head(f.TopLevel())))
	many := strings.Builder{}
	for i := range 2 * maxTries {
		many.WriteString(entry(fmt.Sprintf("%040x", i+1)))
	}
	for name, text := range map[string]string{
		"longer than what is read":    strings.Repeat(head, 2*maxReflog/len(head)),
		"older than what is tried":    head + many.String(),
		"nothing there, and no end":   many.String(),
		"nothing there, and too long": strings.Repeat(entry(strings.Repeat("1", 40)), 2*maxReflog/len(head)),
	} {
		f.write(f.common, "logs/refs/heads/snapshots", text)
		if broken, err := f.BrokenRefs(f.ctx, "refs/heads/snapshots"); err != nil || len(broken) != 1 {
			t.Errorf("%s: %v, %v", name, broken, err)
		}
	}
}

// The ref of nobody goes when it names nothing, wherever it stands, and only then.
func TestDropBrokenRef(t *testing.T) {
	f := newFixture(t)
	const ref = Ref("refs/chipset/snapshot/x")
	nothing := strings.Repeat("1", 40)
	for name, c := range map[string]struct {
		loose, packed string
		stays         bool
	}{
		"to nothing":       {nothing + "\n", "", false},
		"torn":             {"\x00\x00", "", false},
		"packed":           {"", nothing, false},
		"torn over packed": {"12", string(f.head(f.TopLevel())), true},
		"whole":            {string(f.head(f.TopLevel())) + "\n", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.packed != "" {
				f.write(f.common, "packed-refs", c.packed+" "+string(ref)+"\n")
			}
			if c.loose != "" {
				f.write(f.common, string(ref), c.loose)
			}
			f.must(f.DropBrokenRef(f.ctx, ref))
			if there, err := f.RefExists(f.ctx, ref); err != nil || there != c.stays {
				t.Errorf("there: %v, %v", there, err)
			}
			f.must(os.RemoveAll(filepath.Join(f.common, "packed-refs")))
		})
	}
}

func TestEmptyObjects(t *testing.T) {
	f := newFixture(t)
	f.write(f.common, "objects/aa/"+strings.Repeat("b", 38), "")
	found, err := f.EmptyObjects()
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	f.must(f.DropEmptyObjects())
	f.wantGone(f.common, "objects/aa/"+strings.Repeat("b", 38))
	f.git(f.TopLevel(), "fsck")
}
