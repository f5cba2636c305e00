package repair

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git"
)

// tears are what a power cut or a hand can do to git's own files of a worktree.
var tears = map[string]func(f *fixture, w *git.Worktree, admin string){
	"link torn":       func(f *fixture, w *git.Worktree, _ string) { f.write(w.Path(), ".git", "gitd") },
	"link gone":       func(f *fixture, w *git.Worktree, _ string) { f.must(os.Remove(filepath.Join(w.Path(), ".git"))) },
	"link astray":     func(f *fixture, w *git.Worktree, _ string) { f.write(w.Path(), ".git", "gitdir: /nowhere\n") },
	"HEAD empty":      func(f *fixture, _ *git.Worktree, admin string) { f.write(admin, "HEAD", "") },
	"HEAD zeros":      func(f *fixture, _ *git.Worktree, admin string) { f.write(admin, "HEAD", strings.Repeat("\x00", 41)) },
	"HEAD of nothing": func(f *fixture, _ *git.Worktree, admin string) { f.write(admin, "HEAD", strings.Repeat("0", 40)+"\n") },
	"HEAD gone":       func(f *fixture, _ *git.Worktree, admin string) { f.must(os.Remove(filepath.Join(admin, "HEAD"))) },
	"HEAD to nothing": func(f *fixture, _ *git.Worktree, admin string) { f.write(admin, "HEAD", strings.Repeat("1", 40)+"\n") },
	"index empty":     func(f *fixture, _ *git.Worktree, admin string) { f.write(admin, "index", "") },
	"index torn": func(f *fixture, _ *git.Worktree, admin string) {
		f.must(os.Truncate(filepath.Join(admin, "index"), 50))
	},
	"index gone":      func(f *fixture, _ *git.Worktree, admin string) { f.must(os.Remove(filepath.Join(admin, "index"))) },
	"gitdir empty":    func(f *fixture, _ *git.Worktree, admin string) { f.write(admin, "gitdir", "") },
	"gitdir gone":     func(f *fixture, _ *git.Worktree, admin string) { f.must(os.Remove(filepath.Join(admin, "gitdir"))) },
	"commondir empty": func(f *fixture, _ *git.Worktree, admin string) { f.write(admin, "commondir", "") },
	"commondir gone":  func(f *fixture, _ *git.Worktree, admin string) { f.must(os.Remove(filepath.Join(admin, "commondir"))) },
	"locked": func(f *fixture, _ *git.Worktree, admin string) {
		f.write(admin, "index.lock", "")
		f.write(admin, "index", "")
	},
	"registry gone":    func(f *fixture, _ *git.Worktree, admin string) { f.must(os.RemoveAll(admin)) },
	"branch file torn": func(f *fixture, _ *git.Worktree, _ string) { f.write(f.CommonDir(), "refs/heads/polecat/x", "") },
	"commit not there": func(f *fixture, _ *git.Worktree, _ string) {
		f.write(f.CommonDir(), "refs/heads/polecat/x", strings.Repeat("1", 40)+"\n")
	},
	"link and gitdir": func(f *fixture, w *git.Worktree, admin string) {
		f.write(w.Path(), ".git", "")
		f.write(admin, "gitdir", "")
	},
	"everything": func(f *fixture, w *git.Worktree, admin string) {
		for _, name := range []string{"gitdir", "HEAD", "commondir", "index"} {
			f.write(admin, name, "")
		}
		f.must(os.Remove(filepath.Join(w.Path(), ".git")))
	},
}

// Whatever of git's own files is torn, what the worktree holds can be saved afterwards: commits and files.
func TestWorktree(t *testing.T) {
	for name, tear := range tears {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			w := f.prepared()
			base := f.head(f.TopLevel())
			own := f.commit(w.Path(), map[string]string{"own.txt": "committed"})
			f.write(w.Path(), "new.txt", "not committed")
			admin, err := w.GitDir()
			f.must(err)
			if found, err := CheckWorktree(f.ctx, f.Repo, w.Path(), Known{Branch: "polecat/x"}); err != nil || len(found) > 0 {
				t.Fatalf("a whole one has wounds: %v, %v", found, err)
			}
			tear(f, w, admin)
			found, err := CheckWorktree(f.ctx, f.Repo, w.Path(), Known{Branch: "polecat/x"})
			if err != nil || len(found) == 0 {
				t.Fatalf("not noticed: %v", err)
			}
			mended, err := Worktree(f.ctx, f.Repo, w.Path(), Known{Branch: "polecat/x", Base: base})
			f.must(err)
			kept, err := filepath.Glob(filepath.Join(f.CommonDir(), "chipset-aside", "worktrees-*", "*"))
			if told := strings.Contains(fmt.Sprint(mended), "what it held is kept as "); err != nil || told != (len(kept) == 1) {
				t.Errorf("kept %q, told %v", kept, mended)
			}
			if found, err := CheckWorktree(f.ctx, f.Repo, w.Path(), Known{Branch: "polecat/x"}); err != nil || len(found) > 0 {
				t.Errorf("left: %v, %v", found, err)
			}
			f.git(w.Path(), "status")
			saved, err := w.Salvage(f.ctx, git.SalvageRequest{Base: base, Ref: "refs/chipset/salvage/as-1", Message: "m", AgentID: "a"})
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

// An index without entries, the smallest there is, is whole.
func TestEmptyIndexIsWhole(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	f.git(w.Path(), "read-tree", "--empty")
	if found, err := CheckWorktree(f.ctx, f.Repo, w.Path(), Known{Branch: "polecat/x"}); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// ruins are what a power cut can leave of one file or folder.
var ruins = map[string]func(f *fixture, path string){
	"missing": func(*fixture, string) {},
	"empty":   func(f *fixture, path string) { f.write(filepath.Dir(path), filepath.Base(path), "") },
	"zeros": func(f *fixture, path string) {
		f.write(filepath.Dir(path), filepath.Base(path), strings.Repeat("\x00", 300))
	},
	"garbage":  func(f *fixture, path string) { f.write(filepath.Dir(path), filepath.Base(path), "\x01garbage\xff") },
	"a folder": func(f *fixture, path string) { f.write(path, "x", "x") },
}

// Whatever any one of git's own files of a worktree became, one call makes the worktree usable, and the work is saved.
func TestWorktreeIsUsableAfterOneCall(t *testing.T) {
	for _, file := range []string{"HEAD", "gitdir", "commondir", "index", "logs", "logs/HEAD", "", ".git"} {
		for ruin, leave := range ruins {
			if file == ".git" && ruin == "a folder" {
				continue // somebody's own repository
			}
			t.Run(file+" "+ruin, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				w := f.prepared()
				base := f.head(f.TopLevel())
				f.commit(w.Path(), map[string]string{"own.txt": "committed"})
				f.write(w.Path(), "new.txt", "not committed")
				admin, err := w.GitDir()
				f.must(err)
				path := filepath.Join(admin, file)
				if file == ".git" {
					path = filepath.Join(w.Path(), file)
				}
				f.must(os.RemoveAll(path))
				leave(f, path)
				_, err = Worktree(f.ctx, f.Repo, w.Path(), Known{Branch: "polecat/x", Base: base})
				f.must(err)
				if found, err := CheckWorktree(f.ctx, f.Repo, w.Path(), Known{Branch: "polecat/x"}); err != nil || len(found) > 0 {
					t.Errorf("left: %v, %v", found, err)
				}
				if _, _, err := w.HeadBranch(f.ctx); err != nil {
					t.Error(err)
				}
				f.git(w.Path(), "status")
				f.git(f.TopLevel(), "worktree", "list")
				saved, err := w.Salvage(f.ctx, git.SalvageRequest{Base: base, Ref: "refs/chipset/salvage/as-1", Message: "m", AgentID: "a"})
				f.must(err)
				if !saved.Saved || f.git(f.TopLevel(), "show", string(saved.Hash)+":new.txt") != "not committed" ||
					f.git(f.TopLevel(), "show", string(saved.Hash)+":own.txt") != "committed" {
					t.Errorf("saved %+v", saved)
				}
				f.must(f.PrepareWorktree(f.ctx, w.Path(), "polecat/y", base))
				f.wantPrepared(w, "polecat/y", base)
				f.commit(w.Path(), map[string]string{"next.txt": "next"})
			})
		}
	}
}

// The same of a worktree that was never checked out, or whose worker removed every file: it is in nobody's way, and a
// commit that only its reflog names is kept.
func TestWorktreeWithoutFiles(t *testing.T) {
	for _, file := range []string{"HEAD", "gitdir", "commondir", "index", "logs", "", ".git"} {
		for ruin, leave := range ruins {
			for _, gone := range []bool{false, true} {
				if file == ".git" && (gone || ruin == "a folder") {
					continue
				}
				t.Run(fmt.Sprintf("%s %s %v", file, ruin, gone), func(t *testing.T) {
					t.Parallel()
					f := newFixture(t)
					w := f.prepared()
					base := f.head(f.TopLevel())
					own := f.commit(w.Path(), map[string]string{"own.txt": "committed"})
					f.git(w.Path(), "checkout", "-q", "--detach")
					f.git(f.TopLevel(), "branch", "-q", "-D", "polecat/x")
					admin, err := w.GitDir()
					f.must(err)
					f.must(os.Remove(filepath.Join(w.Path(), "own.txt")))
					f.must(os.Remove(filepath.Join(w.Path(), "a.txt")))
					f.must(os.Remove(filepath.Join(w.Path(), ".gitignore")))
					path := filepath.Join(admin, file)
					if file == ".git" {
						path = filepath.Join(w.Path(), file)
					}
					if gone {
						f.must(os.RemoveAll(w.Path()))
					}
					f.must(os.RemoveAll(path))
					leave(f, path)
					for range 2 {
						_, err := Worktree(f.ctx, f.Repo, w.Path(), Known{Base: base})
						f.must(err)
					}
					if found, err := CheckWorktree(f.ctx, f.Repo, w.Path(), Known{}); err != nil || len(found) > 0 {
						t.Errorf("left: %v, %v", found, err)
					}
					if _, _, err := w.HeadBranch(f.ctx); err != nil && !errors.Is(err, git.ErrNotWorktree) {
						t.Error(err)
					}
					_, logErr := os.Lstat(filepath.Join(admin, "logs", "HEAD"))
					if kept := f.git(f.TopLevel(), "for-each-ref", "--contains", string(own)); file == "HEAD" && kept == "" {
						t.Errorf("the commit is nowhere (%v)", logErr)
					}
					f.must(f.PrepareWorktree(f.ctx, w.Path(), "polecat/y", base))
					f.wantPrepared(w, "polecat/y", base)
				})
			}
		}
	}
}

// Without a journal the end of a file may be zeros, which is also what an index without a checksum ends in.
func TestWorktreeOfAnIndexThatEndsInZeros(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	admin, err := w.GitDir()
	f.must(err)
	path := filepath.Join(admin, "index")
	whole, err := os.ReadFile(path)
	f.must(err)
	f.write(admin, "index", string(whole[:40])+strings.Repeat("\x00", len(whole)-40))
	_, err = Worktree(f.ctx, f.Repo, w.Path(), Known{})
	f.must(err)
	if status := f.git(w.Path(), "status", "--porcelain"); status != "" {
		t.Error(status)
	}
}

// An index that git wrote without a checksum is whole.
func TestIndexWithoutAChecksumIsWhole(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	admin, err := w.GitDir()
	f.must(err)
	whole, err := os.ReadFile(filepath.Join(admin, "index"))
	f.must(err)
	f.write(admin, "index", string(whole[:len(whole)-20])+strings.Repeat("\x00", 20))
	if found, err := CheckWorktree(f.ctx, f.Repo, w.Path(), Known{}); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// A repair that was killed between any two of its steps is completed by the next.
func TestWorktreeAfterAKilledRepair(t *testing.T) {
	for _, registry := range []bool{true, false} {
		f := newFixture(t)
		w := f.prepared()
		base := f.head(f.TopLevel())
		own := f.commit(w.Path(), map[string]string{"own.txt": "committed"})
		f.git(w.Path(), "checkout", "-q", "--detach")
		f.git(f.TopLevel(), "branch", "-q", "-D", "polecat/x")
		admin, err := w.GitDir()
		f.must(err)
		f.write(admin, "HEAD", "")
		tree, err := examine(f.ctx, f.Repo, w.Path(), Known{})
		f.must(err)
		head, err := tree.newHead(f.ctx, Known{Base: base})
		f.must(err)
		f.must(tree.writeFresh(head))
		f.must(tree.setAside(admin)) // here the kill comes
		if !registry {
			f.must(os.Remove(filepath.Dir(admin))) // by another git, which found it empty
		}
		_, err = Worktree(f.ctx, f.Repo, w.Path(), Known{Base: base})
		f.must(err)
		if got := f.head(w.Path()); got != own {
			t.Errorf("HEAD is %s, want %s", got, own)
		}
		if status := f.git(w.Path(), "status", "--porcelain"); status != "" {
			t.Error(status)
		}
	}
}

// Nothing is mended that is not torn, or that belongs to somebody else.
func TestWorktreeLeavesAlone(t *testing.T) {
	f := newFixture(t)
	empty := filepath.Join(f.TopLevel(), "wt", "empty")
	f.must(os.MkdirAll(empty, 0o755))
	foreign := filepath.Join(f.TopLevel(), "wt", "foreign")
	f.write(foreign, "notes.txt", "a person's")
	w := f.prepared()
	f.git(w.Path(), "checkout", "-q", "--orphan", "fresh")
	for _, path := range []string{empty, foreign, filepath.Join(f.TopLevel(), "wt", "none"), f.TopLevel(), w.Path()} {
		if found, err := Worktree(f.ctx, f.Repo, path, Known{}); err != nil || len(found) > 0 {
			t.Errorf("%s: %v, %v", path, found, err)
		}
	}
}

// A registration whose folder is gone does not keep git from its other worktrees.
func TestWorktreeRegistrationWithoutFolder(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	admin, err := w.GitDir()
	f.must(err)
	f.must(os.RemoveAll(w.Path()))
	f.write(admin, "commondir", "")
	if _, err := f.ListWorktrees(f.ctx); err == nil {
		t.Skip("this git reads its list without it")
	}
	_, err = Worktree(f.ctx, f.Repo, w.Path(), Known{})
	f.must(err)
	if list, err := f.ListWorktrees(f.ctx); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// A folder of the rig's own is a worktree also when a power cut left neither its registration nor its link.
func TestWorktreeOwnFolder(t *testing.T) {
	f := newFixture(t)
	base := f.head(f.TopLevel())
	w := f.prepared()
	f.write(w.Path(), "new.txt", "not committed")
	f.must(os.RemoveAll(filepath.Join(f.CommonDir(), "worktrees")))
	f.must(os.Remove(filepath.Join(w.Path(), ".git")))
	if found, err := CheckWorktree(f.ctx, f.Repo, w.Path(), Known{}); err != nil || len(found) > 0 {
		t.Errorf("without a word of whose it is: %v, %v", found, err)
	}
	mended, err := Worktree(f.ctx, f.Repo, w.Path(), Known{Own: true})
	if err != nil || len(mended) == 0 || !mended[0].Unknown {
		t.Fatalf("mended %+v, %v", mended, err)
	}
	saved, err := w.Salvage(f.ctx, git.SalvageRequest{Base: base, Ref: "refs/chipset/salvage/lost", Message: "m", AgentID: "a"})
	f.must(err)
	if !saved.Saved || f.git(f.TopLevel(), "show", string(saved.Hash)+":new.txt") != "not committed" {
		t.Errorf("saved %+v", saved)
	}
	f.must(f.PrepareDetached(f.ctx, w.Path(), base))
}

// Nor is a repository of somebody's own taken for one of the rig's.
func TestWorktreeLeavesOwnRepositories(t *testing.T) {
	f := newFixture(t)
	path := filepath.Join(f.TopLevel(), "wt", "theirs")
	f.write(path, "a.txt", "x")
	f.git(path, "init", "-q")
	if found, err := Worktree(f.ctx, f.Repo, path, Known{Own: true, Branch: "polecat/x"}); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	f.wantErr(f.PrepareDetached(f.ctx, path, f.head(f.TopLevel())), git.ErrForeignDirectory)
}

// TestWorktreeWithARepositoryInThePlaceOfItsLink: a worker runs "rm -rf .git && git init". What it made is kept aside,
// its files are a change of the worktree, and the next one can be prepared.
func TestWorktreeWithARepositoryInThePlaceOfItsLink(t *testing.T) {
	for _, empty := range []bool{false, true} {
		f := newFixture(t)
		base := f.head(f.TopLevel())
		w := f.prepared()
		f.must(os.Remove(filepath.Join(w.Path(), ".git")))
		f.git(w.Path(), "init", "-q")
		f.write(w.Path(), "mine.txt", "own")
		f.git(w.Path(), "add", ".")
		if empty {
			f.must(os.Remove(filepath.Join(w.Path(), "mine.txt")))
			for _, name := range strings.Fields(f.git(f.TopLevel(), "ls-files")) {
				f.must(os.Remove(filepath.Join(w.Path(), name)))
			}
		}
		if found, err := CheckWorktree(f.ctx, f.Repo, w.Path(), Known{}); err != nil || len(found) > 0 {
			t.Errorf("without a word of whose it is: %v, %v", found, err)
		}
		mended, err := Worktree(f.ctx, f.Repo, w.Path(), Known{Own: true})
		if err != nil || len(mended) == 0 || mended[0].Lost || !strings.Contains(mended[0].String(), "is a repository of its own") {
			t.Fatalf("empty %v: mended %+v, %v", empty, mended, err)
		}
		kept, err := filepath.Glob(filepath.Join(f.CommonDir(), "chipset-aside", "*", ".git", "objects"))
		if err != nil || len(kept) != 1 || !strings.Contains(fmt.Sprint(mended), "is kept as "+filepath.Dir(kept[0])) {
			t.Errorf("empty %v: kept %v, %v; told %v", empty, kept, err, mended)
		}
		if !empty {
			saved, err := w.Salvage(f.ctx, git.SalvageRequest{Base: base, Ref: "refs/chipset/salvage/mine", Message: "m", AgentID: "a"})
			f.must(err)
			if !saved.Saved || f.git(f.TopLevel(), "show", string(saved.Hash)+":mine.txt") != "own" {
				t.Errorf("saved %+v", saved)
			}
		}
		f.must(f.PrepareDetached(f.ctx, w.Path(), base))
		if found, err := CheckWorktree(f.ctx, f.Repo, w.Path(), Known{Own: true}); err != nil || len(found) > 0 {
			t.Errorf("empty %v: afterwards %v, %v", empty, found, err)
		}
	}
}

// A branch is put back on what its reflog or its records tell of, and a whole one stays.
func TestRestoreRef(t *testing.T) {
	f := newFixture(t)
	first := f.head(f.TopLevel())
	f.git(f.TopLevel(), "branch", "polecat/z", string(first))
	f.write(f.CommonDir(), "refs/heads/polecat/z", "")
	f.must(RestoreRef(f.ctx, f.Repo, "refs/heads/polecat/z", "", first))
	if h, found, err := f.ResolveRef(f.ctx, "refs/heads/polecat/z"); err != nil || !found || h != first {
		t.Errorf("%s %v %v", h, found, err)
	}
	second := f.commit(f.TopLevel(), map[string]string{"b": "b"})
	f.must(RestoreRef(f.ctx, f.Repo, "refs/heads/polecat/z", second))
	if h, _, _ := f.ResolveRef(f.ctx, "refs/heads/polecat/z"); h != first {
		t.Errorf("moved to %s", h)
	}
	f.write(f.CommonDir(), "refs/heads/polecat/z", string(second)+"\n") // by somebody who keeps no reflog
	f.must(RestoreRef(f.ctx, f.Repo, "refs/heads/polecat/z", first))
	if h, _, _ := f.ResolveRef(f.ctx, "refs/heads/polecat/z"); h != second {
		t.Errorf("taken back to %s", h)
	}
	f.write(f.CommonDir(), "refs/heads/polecat/z", "")
	f.must(RestoreRef(f.ctx, f.Repo, "refs/heads/polecat/z", second)) // the reflog knows better
	if h, _, _ := f.ResolveRef(f.ctx, "refs/heads/polecat/z"); h != first {
		t.Errorf("restored to %s", h)
	}
}

// A branch that is gone is told of while its reflog names a commit that is there: else nobody was told of it.
func TestLostRef(t *testing.T) {
	f := newFixture(t)
	log := func(h string) {
		f.write(f.CommonDir(), "logs/refs/heads/snapshots", strings.Repeat("0", 40)+" "+h+" n <n@n> 1 +0000\tm\n")
	}
	for _, c := range []struct {
		commit string
		broken int
	}{{string(f.head(f.TopLevel())), 1}, {strings.Repeat("1", 40), 0}} {
		log(c.commit)
		broken, err := BrokenRefs(f.ctx, f.Repo, "refs/heads/snapshots")
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
		f.write(f.CommonDir(), "logs/refs/heads/snapshots", text)
		if broken, err := BrokenRefs(f.ctx, f.Repo, "refs/heads/snapshots"); err != nil || len(broken) != 1 {
			t.Errorf("%s: %v, %v", name, broken, err)
		}
	}
}

// The ref of nobody goes when it names nothing, wherever it stands, and only then.
func TestRemoveRef(t *testing.T) {
	f := newFixture(t)
	const ref = git.Ref("refs/chipset/snapshot/x")
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
				f.write(f.CommonDir(), "packed-refs", c.packed+" "+string(ref)+"\n")
			}
			if c.loose != "" {
				f.write(f.CommonDir(), string(ref), c.loose)
			}
			f.must(RemoveRef(f.ctx, f.Repo, ref))
			if there, err := f.RefExists(f.ctx, ref); err != nil || there != c.stays {
				t.Errorf("there: %v, %v", there, err)
			}
			f.must(os.RemoveAll(filepath.Join(f.CommonDir(), "packed-refs")))
		})
	}
}

func TestEmptyObjects(t *testing.T) {
	f := newFixture(t)
	f.write(f.CommonDir(), "objects/aa/"+strings.Repeat("b", 38), "")
	found, err := EmptyObjects(f.Repo)
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	f.must(RemoveEmptyObjects(f.Repo))
	f.wantGone(f.CommonDir(), "objects/aa/"+strings.Repeat("b", 38))
	f.git(f.TopLevel(), "fsck")
}

// Where nothing was ever committed in a worktree whose files are gone, nothing is lost with its HEAD; else it may be.
func TestHeadOfAFolderWithoutFiles(t *testing.T) {
	for _, committed := range []bool{false, true} {
		f := newFixture(t)
		w := f.prepared()
		admin, err := w.GitDir()
		f.must(err)
		if committed {
			f.git(w.Path(), "commit", "-q", "--allow-empty", "-m", "x")
		}
		f.must(os.Remove(filepath.Join(w.Path(), "a.txt")))
		f.must(os.Remove(filepath.Join(w.Path(), ".gitignore")))
		f.write(admin, "HEAD", "")
		found, err := CheckWorktree(f.ctx, f.Repo, w.Path(), Known{Branch: "polecat/x"})
		if err != nil || len(found) != 1 || found[0].Lost != committed {
			t.Errorf("committed %v: %+v, %v", committed, found, err)
		}
	}
}

// A registration of the same name that belongs to another worktree stays that one's.
func TestRegistrationOfAnotherWorktree(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	head := f.head(w.Path())
	path := filepath.Join(f.TempDir(), filepath.Base(w.Path()))
	f.write(path, "new.txt", "x")
	_, err := Worktree(f.ctx, f.Repo, path, Known{Own: true})
	f.must(err)
	f.wantPrepared(w, "polecat/x", head)
	if status := f.git(path, "status", "--porcelain", "-uall"); !strings.Contains(status, "?? new.txt") {
		t.Error(status)
	}
}

// The main worktree is a person's, whatever is known of it.
func TestMainWorktreeIsNobodysLink(t *testing.T) {
	f := newFixture(t)
	damage, err := Worktree(f.ctx, f.Repo, f.TopLevel(), Known{Own: true})
	f.must(err)
	if damage != nil {
		t.Errorf("repaired %v", damage)
	}
	f.git(f.TopLevel(), "status")
}

// Where no commit is known at all, nothing is made up.
func TestWorktreeWithoutAnyCommit(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	admin, err := w.GitDir()
	f.must(err)
	f.git(f.TopLevel(), "checkout", "-q", "--orphan", "fresh")
	f.write(admin, "HEAD", "")
	f.must(os.RemoveAll(filepath.Join(admin, "logs")))
	_, err = Worktree(f.ctx, f.Repo, w.Path(), Known{})
	f.wantErr(err, git.ErrNoCommits)
}

// However often a reflog names a commit that is gone, the one before it is found.
func TestRestoreRefPastManyLines(t *testing.T) {
	f := newFixture(t)
	first, gone := f.head(f.TopLevel()), strings.Repeat("1", 40)
	f.git(f.TopLevel(), "branch", "polecat/z", string(first))
	log := strings.Repeat("0", 40) + " " + string(first) + " t <t> 1 +0000\n"
	for range maxTries + 1 {
		log += string(first) + " " + gone + " t <t> 1 +0000\n"
	}
	f.write(f.CommonDir(), "logs/refs/heads/polecat/z", log)
	f.write(f.CommonDir(), "refs/heads/polecat/z", gone+"\n")
	f.must(RestoreRef(f.ctx, f.Repo, "refs/heads/polecat/z"))
	if got := f.git(f.TopLevel(), "rev-parse", "polecat/z"); got != string(first) {
		t.Errorf("it is on %s", got)
	}
}

// What an operation in progress holds besides HEAD is in the new registration, and saved with the files. What is no commit is not.
func TestOperationOfATornWorktree(t *testing.T) {
	for _, file := range operations() {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			w := f.prepared()
			base := f.head(f.TopLevel())
			aside := f.commit(w.Path(), map[string]string{"aside.txt": "aside"})
			f.git(w.Path(), "reset", "-q", "--hard", string(base))
			admin, err := w.GitDir()
			f.must(err)
			for _, name := range operations() {
				f.write(admin, name, "garbage\n")
			}
			f.write(admin, file, string(aside)+"\n")
			f.write(admin, "index", "")
			_, err = Worktree(f.ctx, f.Repo, w.Path(), Known{})
			f.must(err)
			for _, name := range operations() {
				if _, err := os.Lstat(filepath.Join(admin, name)); (err == nil) != (name == file) {
					t.Errorf("%s: %v", name, err)
				}
			}
			saved, err := w.Salvage(f.ctx, git.SalvageRequest{Base: base, Ref: "refs/chipset/salvage/as-1", Message: "m", AgentID: "a"})
			f.must(err)
			if reached, err := f.IsAncestor(f.ctx, aside, saved.Hash); err != nil || !reached {
				t.Errorf("the commit is not among what was saved: %v", err)
			}
		})
	}
}

// A worktree whose HEAD is lost with its reflog begins where its work began, and where nobody knows that, where the main one is.
func TestWorktreeBeginsAtItsBase(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	base := f.head(f.TopLevel())
	later := f.commit(f.TopLevel(), map[string]string{"later": "l"})
	admin, err := w.GitDir()
	f.must(err)
	for _, c := range []struct{ known, want git.Hash }{{base, base}, {git.Hash(strings.Repeat("1", 40)), later}, {"", later}} {
		f.must(os.RemoveAll(filepath.Join(admin, "logs")))
		f.write(admin, "HEAD", "")
		_, err = Worktree(f.ctx, f.Repo, w.Path(), Known{Base: c.known})
		f.must(err)
		if got := f.head(w.Path()); got != c.want {
			t.Errorf("with the base %q it is at %s, not at %s", c.known, got, c.want)
		}
	}
}

// Of two worktrees with folders of one name each gets its own registration back, whatever was half done for the other.
func TestWorktreeOfASecondName(t *testing.T) {
	f := newFixture(t)
	first := f.prepared()
	other := f.commit(first.Path(), map[string]string{"first": "f"})
	second := f.In(filepath.Join(f.TempDir(), filepath.Base(first.Path())))
	f.must(f.PrepareWorktree(f.ctx, second.Path(), "polecat/second", f.head(f.TopLevel())))
	own := f.commit(second.Path(), map[string]string{"second": "s"})
	admin, err := second.GitDir()
	f.must(err)
	f.write(admin, "gitdir", "")
	_, err = Worktree(f.ctx, f.Repo, second.Path(), Known{})
	f.must(err)
	f.wantPrepared(second, "polecat/second", own)
	f.wantPrepared(first, "polecat/x", other)

	fresh := filepath.Join(f.CommonDir(), "chipset-aside", "new-"+filepath.Base(first.Path()))
	f.write(fresh, "gitdir", filepath.Join(first.Path(), ".git")+"\n")
	f.write(fresh, "HEAD", string(other)+"\n")
	f.write(fresh, "commondir", "../..\n")
	f.must(os.RemoveAll(admin))
	_, err = Worktree(f.ctx, f.Repo, second.Path(), Known{Own: true, Base: own})
	f.must(err)
	if got := f.head(second.Path()); got != own {
		t.Errorf("it is at %s, not at %s", got, own)
	}
	f.wantPrepared(first, "polecat/x", other)
}

// A ref without a reflog is restored to the first commit of the given ones that is there, or not at all.
func TestRestoreRefWithoutAReflog(t *testing.T) {
	f := newFixture(t)
	first := f.head(f.TopLevel())
	second := f.commit(f.TopLevel(), map[string]string{"b": "b"})
	const ref = git.Ref("refs/chipset/snapshot/x")
	gone := git.Hash(strings.Repeat("1", 40))
	for _, c := range []struct {
		instead []git.Hash
		want    string
	}{{[]git.Hash{"", "garbage", gone, first, second}, string(first)}, {[]git.Hash{gone, ""}, ""}, {nil, ""}} {
		f.write(f.CommonDir(), string(ref), "torn")
		err := RestoreRef(f.ctx, f.Repo, ref, c.instead...)
		if errors.Is(err, git.ErrNoCommits) != (c.want == "") || err != nil && c.want != "" {
			t.Errorf("%q: %v", c.instead, err)
		}
		if c.want == "" {
			f.wantFile(f.CommonDir(), string(ref), "torn")
		} else if got := f.git(f.TopLevel(), "rev-parse", string(ref)); got != c.want {
			t.Errorf("%q: restored to %s", c.instead, got)
		}
	}
	if err := RestoreRef(f.ctx, f.Repo, "refs/../x", first); err == nil {
		t.Error("what is no ref is restored")
	}
}

// Broken refs are found whether git packed them or not, each once. A lock is no ref, nor is a file in the place of their folder.
func TestBrokenRefs(t *testing.T) {
	f := newFixture(t)
	gone := strings.Repeat("1", 40)
	f.write(f.CommonDir(), "packed-refs", gone+" refs/chipset/a/packed\n")
	f.write(f.CommonDir(), "refs/chipset/a/torn", "torn")
	f.write(f.CommonDir(), "refs/chipset/a/deep/torn", "torn")
	f.write(f.CommonDir(), "refs/chipset/a/whole", string(f.head(f.TopLevel()))+"\n")
	f.write(f.CommonDir(), "refs/chipset/a/torn.lock", "")
	f.write(f.CommonDir(), "refs/chipset/file", "no folder")
	broken, err := BrokenRefs(f.ctx, f.Repo, "refs/chipset/a/", "refs/chipset/file/", "refs/chipset/a/torn", "refs/chipset/none/", "refs/chipset/none")
	var names []string
	for _, b := range broken {
		names = append(names, string(b.Ref))
	}
	if want := "refs/chipset/a/deep/torn refs/chipset/a/packed refs/chipset/a/torn"; err != nil || strings.Join(names, " ") != want {
		t.Errorf("%v, %v", broken, err)
	}
}
