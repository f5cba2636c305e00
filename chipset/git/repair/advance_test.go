package repair

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/chipset/git"
)

// step is main at old, and new a commit on top of it that changes, adds and removes files, and changes modes, links
// and what is a directory.
func step(f *fixture) (old, new git.Hash) {
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

// TestRepairInterruptedAdvance builds what a kill leaves and checks that the repair leads back to a clean checkout at
// old, and that the advance then succeeds.
func TestRepairInterruptedAdvance(t *testing.T) {
	cases := map[string]struct {
		restored string
		kill     func(f *fixture, old, new git.Hash)
	}{
		"nothing written": {"[]", func(*fixture, git.Hash, git.Hash) {}},
		"some files": {"[a.txt added/new gone]", func(f *fixture, old, new git.Hash) {
			f.write(f.TopLevel(), "a.txt", "one\nTWO\nthree\n")
			f.write(f.TopLevel(), "added/new", "n\n")
			f.must(os.Remove(filepath.Join(f.TopLevel(), "gone")))
		}},
		"cut off": {"[a.txt added/new]", func(f *fixture, old, new git.Hash) {
			f.write(f.TopLevel(), "a.txt", "one\nTW")
			f.write(f.TopLevel(), "added/new", "")
		}},
		"unlinked": {"[a.txt dir/only]", func(f *fixture, old, new git.Hash) {
			f.must(os.Remove(filepath.Join(f.TopLevel(), "a.txt")))
			f.must(os.RemoveAll(filepath.Join(f.TopLevel(), "dir")))
		}},
		"modes, links, directories": {"[link tool was file was file/below]", func(f *fixture, old, new git.Hash) {
			f.must(os.Chmod(filepath.Join(f.TopLevel(), "tool"), 0o755))
			f.must(os.Remove(filepath.Join(f.TopLevel(), "link")))
			f.must(os.Symlink("kept", filepath.Join(f.TopLevel(), "link")))
			f.must(os.Remove(filepath.Join(f.TopLevel(), "was file")))
			f.write(f.TopLevel(), "was file/below", "w\n")
		}},
		"index written, ref not": {"[a.txt added/new dir/only gone link tool was file was file/below]", func(f *fixture, old, new git.Hash) {
			f.git(f.TopLevel(), "merge", "-q", "--ff-only", string(new))
			f.git(f.TopLevel(), "update-ref", "refs/heads/main", string(old))
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			old, new := step(f)
			c.kill(f, old, new)
			f.write(f.TopLevel(), "kept", "a person's")
			f.write(f.CommonDir(), "index.lock", "half an index")
			f.write(f.CommonDir(), "ORIG_HEAD.lock", "")
			f.write(f.CommonDir(), "refs/heads/main.lock", "")
			_, err := Advance(f.ctx, f.Repo, "main", old, new, false)
			f.wantErr(err, git.ErrLocked)
			for _, restored := range []string{c.restored, "[]"} {
				repaired, err := Advance(f.ctx, f.Repo, "main", old, new, true)
				f.must(err)
				slices.Sort(repaired.Restored)
				if repaired.Checkout != f.TopLevel() || repaired.Left != nil || fmt.Sprint(repaired.Restored) != restored {
					t.Fatalf("%+v, not %s", repaired, restored)
				}
				if status := f.git(f.TopLevel(), "status", "--porcelain", "-uall"); status != " M kept" {
					t.Fatalf("after %+v:\n%s", repaired, status)
				}
			}
			f.wantGone(f.TopLevel(), "added")
			f.must(f.Repo.Advance(f.ctx, "main", old, new))
			f.wantFile(f.TopLevel(), "kept", "a person's")
			repaired, err := Advance(f.ctx, f.Repo, "main", old, new, true)
			f.must(err)
			if repaired.Restored != nil {
				t.Errorf("%+v", repaired)
			}
		})
	}
}

// What a person has staged is theirs, also where their file looks as if a kill had left it.
func TestRepairLeavesWhatIsStaged(t *testing.T) {
	for name, file := range map[string]func(f *fixture){
		"and removed":    func(f *fixture) { f.must(os.Remove(filepath.Join(f.TopLevel(), "a.txt"))) },
		"and made new's": func(f *fixture) { f.write(f.TopLevel(), "a.txt", "one\nTWO\nthree\n") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			old, new := step(f)
			f.write(f.TopLevel(), "a.txt", "staged\n")
			f.git(f.TopLevel(), "add", "a.txt")
			file(f)
			repaired, err := Advance(f.ctx, f.Repo, "main", old, new, true)
			f.must(err)
			if staged := f.git(f.TopLevel(), "cat-file", "blob", ":a.txt"); staged != "staged" || !slices.Contains(repaired.Left, "a.txt") {
				t.Errorf("staged is %q; %+v", staged, repaired)
			}
		})
	}
}

func TestRepairLeavesWhatIsAPersons(t *testing.T) {
	f := newFixture(t)
	old, new := step(f)
	top := f.TopLevel()
	f.write(top, "a.txt", "one\nTWO\nthree\nand mine\n")
	f.write(top, "added/new", "mine\n")
	f.write(top, "gone", "mine\n")
	f.must(os.RemoveAll(filepath.Join(top, "dir")))
	f.write(top, "dir", "mine: a file where old has a directory\n")
	repaired, err := Advance(f.ctx, f.Repo, "main", old, new, true)
	f.must(err)
	slices.Sort(repaired.Left)
	if repaired.Restored != nil || !slices.Equal(repaired.Left, []string{"a.txt", "added/new", "dir/only", "gone"}) {
		t.Errorf("%+v", repaired)
	}
	f.wantFile(top, "a.txt", "one\nTWO\nthree\nand mine\n")
	f.wantFile(top, "added/new", "mine\n")
	f.wantFile(top, "dir", "mine: a file where old has a directory\n")

	f.must(os.Remove(filepath.Join(top, "a.txt")))
	f.write(top, "a.txt/inside", "mine\n")
	_, err = Advance(f.ctx, f.Repo, "main", old, new, true)
	f.must(err)
	f.wantFile(top, "a.txt/inside", "mine\n")

	f.must(os.Remove(filepath.Join(top, "was file")))
	f.write(top, "was file/below", "w\n")
	f.write(top, "was file/mine", "mine\n")
	f.must(os.Remove(filepath.Join(top, "link")))
	f.must(os.Symlink("kep", filepath.Join(top, "link"))) // a beginning of new's, but no kill cuts a link off
	repaired, err = Advance(f.ctx, f.Repo, "main", old, new, true)
	f.must(err)
	f.wantFile(top, "was file/mine", "mine\n")
	if target, err := os.Readlink(filepath.Join(top, "link")); err != nil || target != "kep" || !slices.Contains(repaired.Left, "link") {
		t.Errorf("link leads to %q (%v): %+v", target, err, repaired)
	}

	f.git(top, "commit", "-q", "--allow-empty", "-m", "person")
	_, err = Advance(f.ctx, f.Repo, "main", old, new, true)
	f.wantErr(err, git.ErrMoved)
}

// The index may say that new's file is there while a person's link leads its path elsewhere.
func TestRepairFollowsNoLink(t *testing.T) {
	f := newFixture(t)
	old, new := step(f)
	top := f.TopLevel()
	f.git(top, "merge", "-q", "--ff-only", string(new))
	f.git(top, "update-ref", "refs/heads/main", string(old))
	f.must(os.Rename(filepath.Join(top, "added"), filepath.Join(top, "mine")))
	f.must(os.Symlink("mine", filepath.Join(top, "added")))
	_, err := Advance(f.ctx, f.Repo, "main", old, new, true)
	f.must(err)
	f.wantFile(top, "mine/new", "n\n")
	if target, err := os.Readlink(filepath.Join(top, "added")); err != nil || target != "mine" {
		t.Errorf("the link leads to %q: %v", target, err)
	}
}

// TestRepairNeverLosesBytes throws any mixture of half-written and personal states at the repair. What is
// neither in old nor in new must still be there afterwards, and the rest must be at old.
func TestRepairNeverLosesBytes(t *testing.T) {
	f := newFixture(t)
	old, new := step(f)
	top := f.TopLevel()
	oldText := map[string]string{"a.txt": "one\ntwo\nthree\n", "gone": "g\n", "dir/only": "o\n"}
	newText := map[string]string{"a.txt": "one\nTWO\nthree\n", "added/new": "n\n"}
	rapid.Check(t, func(t *rapid.T) {
		f.git(top, "reset", "-q", "--hard", string(old))
		f.git(top, "clean", "-fdq")
		mine := map[string]string{}
		for _, path := range []string{"a.txt", "added/new", "gone", "dir/only"} {
			state := rapid.SampledFrom([]string{"old", "new", "cut", "missing", "mine"}).Draw(t, path)
			_ = os.RemoveAll(filepath.Join(top, path))
			text, present := oldText[path], oldText[path] != ""
			switch state {
			case "new":
				text, present = newText[path], newText[path] != ""
			case "cut":
				text, present = newText[path][:len(newText[path])/2], newText[path] != ""
			case "missing":
				present = false
			case "mine":
				text, present = "mine "+path+"\n", true
				mine[path] = text
			}
			if present {
				f.write(top, path, text)
			}
		}
		_, err := Advance(f.ctx, f.Repo, "main", old, new, true)
		f.must(err)
		for _, path := range []string{"a.txt", "added/new", "gone", "dir/only"} {
			want, isMine := mine[path]
			if !isMine {
				want = oldText[path]
			}
			data, err := os.ReadFile(filepath.Join(top, path))
			if string(data) != want || (err != nil) != (want == "") {
				t.Fatalf("%s holds %q (%v), want %q", path, data, err, want)
			}
		}
	})
}

// TestAdvanceSurvivesAKill kills a real fast-forward at different points of its way and repairs what it left.
func TestAdvanceSurvivesAKill(t *testing.T) {
	f := newFixture(t)
	top, files := f.TopLevel(), map[string]string{}
	for i := range 80 {
		files[fmt.Sprintf("d%d/f%03d", i%10, i)] = strings.Repeat(fmt.Sprintf("line %d\n", i), 500)
	}
	old := f.commit(top, files)
	w := f.prepared()
	for name := range files {
		files[name] = strings.ToUpper(files[name])
	}
	files["d1/f001"], files["d2/f002"] = "", ""
	new := f.commit(w.Path(), files)
	halfWay := 0
	for _, witness := range []string{".git/index.lock", "d0/f000", "d5/f055", "d9/f079"} {
		killMerge(f, new, filepath.Join(top, witness))
		repaired, err := Advance(f.ctx, f.Repo, "main", old, new, true)
		f.must(err)
		if len(repaired.Restored) > 0 {
			halfWay++
		}
		if f.head(top) == old {
			if status := f.git(top, "status", "--porcelain"); status != "" || repaired.Left != nil {
				t.Fatalf("after the kill at %s: %q\n%s", witness, repaired.Left, status)
			}
		}
		f.must(f.Repo.Advance(f.ctx, "main", old, new))
		if status := f.git(top, "status", "--porcelain"); status != "" {
			t.Fatalf("after the advance: %s", status)
		}
		f.git(top, "reset", "-q", "--hard", string(old))
	}
	t.Logf("%d of 4 kills came half-way", halfWay)
}

// killMerge starts a fast-forward in the main worktree and kills it as soon as the witness changes.
func killMerge(f *fixture, new git.Hash, witness string) {
	f.Helper()
	stamp := func() (s string) {
		if info, err := os.Lstat(witness); err == nil {
			s = fmt.Sprint(info.ModTime().UnixNano(), info.Size())
		}
		return s
	}
	before := stamp()
	cmd := exec.Command("git", "merge", "-q", "--ff-only", string(new))
	cmd.Dir = f.TopLevel()
	f.must(cmd.Start())
	for deadline := time.Now().Add(10 * time.Second); stamp() == before && time.Now().Before(deadline); {
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// An advance that adds or removes a submodule writes nothing of it, so there is nothing to take back.
func TestRepairLeavesSubmodules(t *testing.T) {
	for _, added := range []bool{false, true} {
		f := newFixture(t)
		top := f.TopLevel()
		without := f.head(top)
		f.git(top, "update-index", "--add", "--cacheinfo", "160000,"+string(without)+",lib")
		f.git(top, "commit", "-q", "-m", "lib")
		old, new := f.head(top), git.Hash(f.git(top, "commit-tree", "-m", "no lib", "-p", "HEAD", string(without)+"^{tree}"))
		if added {
			old, new = without, old
			f.git(top, "reset", "-q", "--hard", string(old))
			f.write(top, "lib", "mine")
		}
		repaired, err := Advance(f.ctx, f.Repo, "main", old, new, true)
		if err != nil || len(repaired.Restored)+len(repaired.Left) > 0 {
			t.Errorf("added %t: %+v, %v", added, repaired, err)
		}
	}
}
