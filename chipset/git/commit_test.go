package git

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func (f *fixture) wantTree(revision string, want ...string) {
	f.Helper()
	out, err := f.read(f.ctx, "ls-tree", "-r", "-z", "--name-only", "--full-tree", revision)
	f.must(err)
	slices.Sort(want)
	if got := fields(out); !slices.Equal(got, want) {
		f.Fatalf("%s holds %q, want %q", revision, got, want)
	}
}

func TestCommitAll(t *testing.T) {
	f := newFixture(t)
	for _, key := range []string{"user.name", "user.email"} {
		f.git(f.TopLevel(), "config", "--unset", key)
	}
	w := f.prepared()
	base := f.head(w.Path())
	result, err := w.CommitAll(f.ctx, "nothing", "polecat-alpha")
	f.must(err)
	if result.Made || result.Hash != base {
		t.Fatalf("%+v", result)
	}
	f.must(os.Remove(filepath.Join(w.Path(), "a.txt")))
	f.write(w.Path(), "a.txt/now a directory", "x")
	f.write(w.Path(), "new\nline", "x")
	f.write(w.Path(), "--all", "x")
	f.write(w.Path(), ":(exclude)magic", "x")
	f.write(w.Path(), "[ab]*", "x")
	f.write(w.Path(), "ignored/x", "x")
	f.write(w.Path(), ".chipset/state/x", "x")
	f.write(w.Path(), "sub/.chipset/x", "x")
	f.git(w.Path(), "add", "-f", ".chipset/state/x")
	f.git(w.Path(), "init", "-q", "empty inner")
	f.git(w.Path(), "init", "-q", "inner")
	f.git(filepath.Join(w.Path(), "inner"), "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "--allow-empty", "-m", "x")
	admin, err := f.gitDirOf(w.Path())
	f.must(err)
	f.write(admin, "index.lock", "") // the worker was killed in the middle of an add
	result, err = w.CommitAll(f.ctx, "-m looks like an option\n\n# not a comment\n", "polecat-alpha")
	f.must(err)
	if !result.Made || result.Hash != f.head(w.Path()) || !slices.Equal(result.Embedded, []string{"empty inner", "inner"}) {
		t.Fatalf("%+v", result)
	}
	f.wantTree("polecat/x", ".gitignore", "--all", ":(exclude)magic", "[ab]*", "a.txt/now a directory", "new\nline", "sub/.chipset/x")
	if got := f.git(w.Path(), "log", "-1", "--format=%an <%ae> %cn%n%B"); got != "polecat-alpha <polecat-alpha@chipset.invalid> polecat-alpha\n-m looks like an option\n\n# not a comment\n" {
		t.Errorf("%q", got)
	}
	again, err := w.CommitAll(f.ctx, "again", "polecat-alpha")
	f.must(err)
	if again.Made || again.Hash != result.Hash {
		t.Errorf("%+v", again)
	}
	f.wantFile(w.Path(), ".chipset/state/x", "x")
}

func TestCommitAllLeavesTrackedChipsetAlone(t *testing.T) {
	f := newFixture(t)
	f.commit(f.TopLevel(), map[string]string{".chipset/chipset.yaml": "agents"})
	w := f.prepared()
	f.write(w.Path(), ".chipset/chipset.yaml", "changed")
	result, err := w.CommitAll(f.ctx, "m", "polecat-alpha")
	f.must(err)
	if result.Made {
		t.Error("committed .chipset")
	}
	f.wantTree("polecat/x", ".gitignore", "a.txt", ".chipset/chipset.yaml")
}

func TestCommitAllConcludesMergeButNotRebase(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	f.conflict(w.Path(), "merge")
	f.write(w.Path(), "a.txt", "resolved\n")
	f.git(w.Path(), "add", "a.txt")
	result, err := w.CommitAll(f.ctx, "merged", "polecat-alpha")
	f.must(err)
	if !result.Made || len(strings.Fields(f.git(w.Path(), "rev-list", "--parents", "-1", "HEAD"))) != 3 {
		t.Errorf("%+v", result)
	}
	f.conflict(w.Path(), "rebase")
	f.write(w.Path(), "a.txt", "resolved again\n")
	f.git(w.Path(), "add", "a.txt")
	_, err = w.CommitAll(f.ctx, "m", "polecat-alpha")
	var inProgress *InProgressError
	if !errors.As(err, &inProgress) || inProgress.Operation != OperationRebase {
		t.Errorf("%v", err)
	}
}

const salvageRef Ref = "refs/chipset/salvage/as-k3f9q"

func TestSalvage(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	base := f.head(w.Path())
	q := SalvageRequest{Base: base, Ref: salvageRef, Message: "salvage", AgentID: "polecat-alpha"}
	saved, err := w.Salvage(f.ctx, q)
	f.must(err)
	if saved.Saved {
		t.Fatalf("saved nothing: %+v", saved)
	}

	f.write(w.Path(), "a.txt", "changed\n")
	f.write(w.Path(), "new\nline", "x")
	f.write(w.Path(), "ignored/x", "x")
	f.write(w.Path(), "staged", "x")
	f.git(w.Path(), "add", "staged")
	f.git(w.Path(), "init", "-q", "inner")
	f.write(w.Path(), "inner/deep/file", "x")
	f.git(filepath.Join(w.Path(), "inner"), "init", "-q", "innermost")
	f.write(w.Path(), "inner/innermost/y", "y")
	before := f.git(w.Path(), "status", "--porcelain", "-uall")
	saved, err = w.Salvage(f.ctx, q)
	f.must(err)
	if !saved.Saved || saved.Ref != salvageRef {
		t.Fatalf("%+v", saved)
	}
	f.wantTree(string(salvageRef), ".gitignore", "a.txt", "new\nline", "staged", "inner/deep/file", "inner/innermost/y")
	if after := f.git(w.Path(), "status", "--porcelain", "-uall"); after != before || f.head(w.Path()) != base {
		t.Errorf("the worktree was touched:\n%s\n%s", before, after)
	}
	again, err := w.Salvage(f.ctx, q)
	f.must(err)
	if again != saved {
		t.Errorf("saved twice: %+v %+v", again, saved)
	}
	f.write(w.Path(), "a.txt", "more\n")
	third, err := w.Salvage(f.ctx, q)
	f.must(err)
	if third.Ref != salvageRef+"-2" || f.git(w.Path(), "show", string(third.Ref)+":a.txt") != "more" {
		t.Errorf("%+v", third)
	}
	admin, err := f.gitDirOf(w.Path())
	f.must(err)
	if left, _ := filepath.Glob(filepath.Join(admin, "chipset-salvage-*")); left != nil {
		t.Errorf("left %q", left)
	}
}

func TestSalvageOfCommitsAlone(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	base := f.head(w.Path())
	head := f.commit(w.Path(), map[string]string{"b": "b"})
	saved, err := w.Salvage(f.ctx, SalvageRequest{Base: base, Ref: salvageRef})
	f.must(err)
	if !saved.Saved || saved.Hash != head {
		t.Errorf("%+v, want %s itself", saved, head)
	}
	if saved, err = w.Salvage(f.ctx, SalvageRequest{Base: head, Ref: salvageRef + "x"}); err != nil || saved.Saved {
		t.Errorf("%+v %v", saved, err)
	}
	if saved, err = w.Salvage(f.ctx, SalvageRequest{Ref: salvageRef + "x"}); err != nil || saved.Hash != head {
		t.Errorf("without a base: %+v %v", saved, err)
	}
}

func TestSalvageInTheMiddle(t *testing.T) {
	harms := map[string]func(f *fixture, w *Worktree){
		"merge":       func(f *fixture, w *Worktree) { f.conflict(w.Path(), "merge") },
		"rebase":      func(f *fixture, w *Worktree) { f.conflict(w.Path(), "rebase") },
		"cherry-pick": func(f *fixture, w *Worktree) { f.conflict(w.Path(), "cherry-pick") },
		"orphan": func(f *fixture, w *Worktree) {
			f.git(w.Path(), "checkout", "-q", "--orphan", "lost")
			f.write(w.Path(), "a.txt", "<<<<<<< theirs")
		},
		"index corrupt, .git gone, locked": func(f *fixture, w *Worktree) {
			admin, err := f.gitDirOf(w.Path())
			f.must(err)
			f.write(admin, "index", "rubbish")
			f.write(admin, "index.lock", "rubbish")
			f.must(os.Remove(filepath.Join(w.Path(), ".git")))
			f.write(w.Path(), "a.txt", "<<<<<<< theirs")
		},
	}
	for name, harm := range harms {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.prepared()
			base := f.head(w.Path())
			harm(f, w)
			f.write(w.Path(), "untracked", "x")
			saved, err := w.Salvage(f.ctx, SalvageRequest{Base: base, Ref: salvageRef, Message: "m", AgentID: "a"})
			f.must(err)
			if !saved.Saved {
				t.Fatal("not saved")
			}
			f.wantTree(string(salvageRef), ".gitignore", "a.txt", "untracked")
			if text := f.git(f.TopLevel(), "show", string(salvageRef)+":a.txt"); !strings.Contains(text, "<<<<<<<") {
				t.Errorf("a.txt %q", text)
			}
			if other := map[string]string{"rebase": "ours-rebase", "merge": "theirs-merge"}[name]; other != "" { // the branch as it was, or what is merged
				f.git(f.TopLevel(), "merge-base", "--is-ancestor", other, string(salvageRef))
			}
		})
	}
}

func TestSalvageDespiteABrokenFilter(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	f.git(f.TopLevel(), "config", "filter.broken.clean", "false")
	f.git(f.TopLevel(), "config", "filter.broken.required", "true")
	f.write(f.CommonDir(), "info/attributes", "secret filter=broken\n")
	f.write(w.Path(), "secret", "x")
	f.write(w.Path(), "zebra", "x")
	saved, err := w.Salvage(f.ctx, SalvageRequest{Ref: salvageRef, Message: "m", AgentID: "a"})
	f.must(err)
	f.wantTree(string(saved.Hash), ".gitignore", "a.txt", "secret", "zebra")
}

// Files that git can't convert are saved as they are, and nothing behind a link with them.
func TestSalvageWhatGitCantConvert(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	f.write(w.Path(), "d/file", "tracked")
	f.git(w.Path(), "add", ".")
	f.git(w.Path(), "commit", "-q", "-m", "d")
	outside := t.TempDir()
	f.must(os.WriteFile(filepath.Join(outside, "file"), []byte("a secret"), 0o600))
	f.must(os.RemoveAll(filepath.Join(w.Path(), "d")))
	f.must(os.Symlink(outside, filepath.Join(w.Path(), "d")))

	f.write(w.Path(), ".gitattributes", "* working-tree-encoding=UTF-99\n")
	f.write(w.Path(), "a \"name\"\nof two lines ü", "plain")
	f.write(w.Path(), "script", "#!/bin/sh\n")
	f.must(os.Chmod(filepath.Join(w.Path(), "script"), 0o755))
	f.must(os.Symlink("a.txt", filepath.Join(w.Path(), "link")))
	f.git(w.Path(), "init", "-q", "inner")
	f.write(w.Path(), "inner/x", "of a repository inside")

	saved, err := w.Salvage(f.ctx, SalvageRequest{Ref: salvageRef, Message: "m", AgentID: "a"})
	f.must(err)
	want := map[string]string{
		"a \"name\"\nof two lines ü": "100644 plain", "script": "100755 #!/bin/sh", "link": "120000 a.txt", "d": "120000 " + outside,
		"inner/x": "100644 of a repository inside", ".gitattributes": "100644 * working-tree-encoding=UTF-99",
	}
	for _, entry := range strings.Split(f.git(f.TopLevel(), "ls-tree", "-r", "-z", string(saved.Hash)), "\x00") {
		info, path, _ := strings.Cut(entry, "\t")
		fields := strings.Fields(info)
		if _, ok := want[path]; !ok {
			if path != "" && path != "a.txt" && path != ".gitignore" {
				t.Errorf("saved %s", entry)
			}
			continue
		}
		if got := fields[0] + " " + f.git(f.TopLevel(), "cat-file", "blob", fields[2]); got != want[path] {
			t.Errorf("%q is %q, want %q", path, got, want[path])
		}
		delete(want, path)
	}
	if len(want) > 0 {
		t.Errorf("not saved: %q", want)
	}
}

func TestSalvageSaysWhatItCouldNotRead(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	f.write(w.Path(), "open", "x")
	f.git(w.Path(), "init", "-q", "inner")
	f.write(w.Path(), "inner/x", "x")
	f.write(w.Path(), "inner/.git/config", "rubbish [")
	f.must(os.Remove(filepath.Join(w.Path(), "a.txt")))
	f.must(syscall.Mkfifo(filepath.Join(w.Path(), "a.txt"), 0o600))
	saved, err := w.Salvage(f.ctx, SalvageRequest{Ref: salvageRef, Message: "m", AgentID: "a"})
	var incomplete *IncompleteError
	if !errors.As(err, &incomplete) || !saved.Saved || incomplete.Error() == "" {
		t.Fatalf("%+v %v", saved, err)
	}
	f.wantTree(string(saved.Hash), ".gitignore", "a.txt", "inner/x", "open")
}

// Repositories inside of repositories are saved to some depth, and what is below that is said.
func TestSalvageOfNestedRepositories(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	at := w.Path()
	for range maxNesting + 3 {
		at = filepath.Join(at, "in")
		f.git(filepath.Dir(at), "init", "-q", "in")
		f.write(at, "x", "x")
	}
	saved, err := w.Salvage(f.ctx, SalvageRequest{Ref: salvageRef, Message: "m", AgentID: "a"})
	var incomplete *IncompleteError
	if !errors.As(err, &incomplete) || !strings.Contains(incomplete.Output, "nested too deeply") || f.git(f.TopLevel(), "show", string(saved.Hash)+":in/in/in/x") != "x" {
		t.Errorf("%+v %v", saved, err)
	}
}

// A title of an agent's becomes a message that Inspect lets pass.
func TestCommitMessageIsPlain(t *testing.T) {
	got := string(commitMessage("a \x1b]0;t\a \u202eb\u009b\x00\r\rc\r\nd"))
	if steering().MatchString(got) || got != "a ]0;t b\n\nc\nd\n" {
		t.Errorf("%q", got)
	}
}

// A worker can write the HEAD of its worktree and its branch: a commit of the rig's moves no other branch for that.
func TestKeepToKeepsOtherBranches(t *testing.T) {
	for name, spoil := range map[string]func(f *fixture, w *Worktree){
		"HEAD leads to another branch": func(f *fixture, w *Worktree) {
			f.must(os.WriteFile(filepath.Join(f.git(w.Path(), "rev-parse", "--absolute-git-dir"), "HEAD"), []byte("ref: refs/heads/main\n"), 0o644))
		},
		"the branch leads to another one": func(f *fixture, w *Worktree) {
			f.git(f.TopLevel(), "symbolic-ref", f.git(w.Path(), "symbolic-ref", "HEAD"), "refs/heads/main")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.prepared()
			main := f.head(f.TopLevel())
			branch, found, err := w.HeadBranch(f.ctx)
			if f.must(err); !found {
				t.Fatal("no branch")
			}
			spoil(f, w)
			f.must(os.WriteFile(filepath.Join(w.Path(), "new"), nil, 0o644))
			f.must(w.KeepTo(f.ctx, branch))
			made, err := w.CommitAll(f.ctx, "new", "polecat-alpha")
			if f.must(err); !made.Made || f.git(f.TopLevel(), "rev-parse", "main") != string(main) {
				t.Errorf("%+v, main is at %s", made, f.git(f.TopLevel(), "rev-parse", "main"))
			}
			f.git(f.TopLevel(), "symbolic-ref", string(branch.Ref()), "refs/heads/main")
			f.git(f.TopLevel(), "reset", "-q", "--soft", string(made.Hash))
			f.must(f.PrepareWorktree(f.ctx, w.Path(), branch, main))
			if got := f.git(f.TopLevel(), "rev-parse", "main"); got != string(made.Hash) {
				t.Errorf("to prepare the branch has moved main to %s", got)
			}
		})
	}
	f := newFixture(t)
	w := f.prepared()
	f.git(w.Path(), "checkout", "-q", "--orphan", "other")
	var bad *UnfitError
	if err := w.KeepTo(f.ctx, "other"); !errors.As(err, &bad) {
		t.Errorf("a branch without commits: %v", err)
	}
}

// What git refuses because of a file's content is the fault of the work: git would refuse it every time.
func TestCommitAllRefusesWhatGitCantTake(t *testing.T) {
	for name, spoil := range map[string]func(f *fixture, w *Worktree){
		"an encoding": func(f *fixture, w *Worktree) { f.write(w.Path(), ".gitattributes", "x working-tree-encoding=UTF-16\n") },
		"a filter that must succeed": func(f *fixture, w *Worktree) {
			f.git(f.TopLevel(), "config", "filter.strict.clean", "false")
			f.git(f.TopLevel(), "config", "filter.strict.required", "true")
			f.write(w.Path(), ".gitattributes", "x filter=strict\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.prepared()
			f.write(w.Path(), "x", "plain\n")
			spoil(f, w)
			_, err := w.CommitAll(f.ctx, "m", "polecat-alpha")
			var unfit *UnfitError
			if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "x") {
				t.Errorf("%v", err)
			}
		})
	}
}
