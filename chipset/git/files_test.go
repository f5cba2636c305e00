package git

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// counted makes the repository's git write down what is run, and returns what was since the last call.
func (f *fixture) counted() func() []string {
	f.Helper()
	dir := f.TempDir()
	log, script := filepath.Join(dir, "log"), filepath.Join(dir, "git")
	text := fmt.Sprintf("#!/bin/sh\necho \"$*\" | sed 's/.*submodule.recurse=false //; s/--[a-z-]*=[^ ]*[^-]* //' >>'%s'\nexec '%s' \"$@\"\n", log, f.Repo.git)
	f.must(os.WriteFile(script, []byte(text), 0o755))
	f.Repo.git = script
	return func() []string {
		data, _ := os.ReadFile(log)
		_ = os.Remove(log)
		return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	}
}

func (f *fixture) wantProcesses(run func() []string, n int) {
	f.Helper()
	if got := run(); len(got) != n && (n > 0 || got[0] != "") {
		f.Errorf("%d processes, want %d:\n%s", len(got), n, strings.Join(got, "\n"))
	}
}

// What is read from git's files is what git says, whatever is done with refs meanwhile.
func TestRefsAreReadAsGitReadsThem(t *testing.T) {
	f := newFixture(t)
	first := f.head(f.TopLevel())
	second := f.commit(f.TopLevel(), map[string]string{"b": "b"})
	names := []string{"refs/heads/a", "refs/heads/a/b", "refs/heads/ü", "refs/chipset/x/y", "refs/heads/sym"}
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom(names).Draw(rt, "ref")
		switch rapid.IntRange(0, 6).Draw(rt, "op") {
		case 0, 1:
			_, _ = f.tryGit(f.TopLevel(), "update-ref", name, string(first))
		case 2:
			_, _ = f.tryGit(f.TopLevel(), "update-ref", "--no-deref", name, string(second))
		case 3:
			_, _ = f.tryGit(f.TopLevel(), "update-ref", "--no-deref", "-d", name)
		case 4:
			f.git(f.TopLevel(), "pack-refs", "--all", "--prune")
		case 5:
			_, _ = f.tryGit(f.TopLevel(), "symbolic-ref", "refs/heads/sym", "refs/heads/main")
		case 6:
			_, _ = f.tryGit(f.TopLevel(), "pack-refs", "--all", "--no-prune")
		}
		for _, name := range names {
			want, err := f.tryGit(f.TopLevel(), "rev-parse", "--verify", "--quiet", name)
			h, found, failed := f.ResolveRef(f.ctx, Ref(name))
			if failed != nil || found != (err == nil) || found && string(h) != want {
				rt.Fatalf("%s is %q (%v, %v), git says %q", name, h, found, failed, want)
			}
		}
	})
}

func TestRefsThatOnlyGitCanRead(t *testing.T) {
	f := newFixture(t)
	path := filepath.Join(f.CommonDir(), "refs", "heads", "odd")
	for _, content := range []string{"", "nonsense\n", strings.Repeat("0", 40) + "\n", string(f.head(f.TopLevel())), "ref: refs/heads/main\n"} {
		f.must(os.WriteFile(path, []byte(content), 0o644))
		if h, known := f.looseRef("refs/heads/odd"); known {
			t.Errorf("%q is %s", content, h)
		}
	}
	f.must(os.Remove(path))
	if _, found, err := f.ResolveRef(f.ctx, "refs/heads/odd"); found || err != nil {
		t.Errorf("a ref that does not exist: %v, %v", found, err)
	}
	// A tag may be called like a branch, with all of its name.
	f.git(f.TopLevel(), "update-ref", "refs/tags/refs/heads/odd", "HEAD")
	if _, found, err := f.ResolveRef(f.ctx, "refs/heads/odd"); found || err != nil {
		t.Errorf("found the tag: %v, %v", found, err)
	}
	// A packed ref is there also when its commit is not.
	f.write(f.CommonDir(), "packed-refs", strings.Repeat("1", 40)+" refs/heads/odd\n")
	if h, found, err := f.ResolveRef(f.ctx, "refs/heads/odd"); !found || err != nil || h != Hash(strings.Repeat("1", 40)) {
		t.Errorf("%s %v, %v", h, found, err)
	}
}

// A ref is made once, moved from what it holds alone, and takes the place of others in the same step, or of none.
func TestSwapRef(t *testing.T) {
	f := newFixture(t)
	first := f.head(f.TopLevel())
	second := f.commitOn(first)
	const ref, other Ref = "refs/chipset/one", "refs/chipset/other"
	f.git(f.TopLevel(), "update-ref", string(other), string(first))
	holds := func(want, others Hash) {
		t.Helper()
		for r, h := range map[Ref]Hash{ref: want, other: others} {
			if got, found, err := f.ResolveRef(f.ctx, r); err != nil || found != (h != "") || found && got != h {
				t.Errorf("%s holds %q, want %q, %v", r, got, h, err)
			}
		}
	}
	f.wantErr(f.SwapRef(f.ctx, ref, second, first, other), ErrMoved)
	holds("", first)
	f.must(f.SwapRef(f.ctx, ref, first, ""))
	f.wantErr(f.SwapRef(f.ctx, ref, second, "", other), ErrMoved)
	f.wantErr(f.SwapRef(f.ctx, ref, second, second, other), ErrMoved)
	holds(first, first)
	f.must(f.SwapRef(f.ctx, ref, second, first, other))
	holds(second, "")
	if f.SwapRef(f.ctx, ref, first, second, "refs/../x") == nil || f.SwapRef(f.ctx, ref, "x", second) == nil || f.SwapRef(f.ctx, ref, first, "x") == nil {
		t.Error("names and hashes that are none are taken")
	}
	holds(second, "")
}

func TestDeleteBranches(t *testing.T) {
	f := newFixture(t)
	h := f.head(f.TopLevel())
	const keep Ref = "refs/chipset/landed/mr-1"
	other := f.commitOn(h)
	f.git(f.TopLevel(), "branch", "b", string(other))
	f.wantErr(f.DeleteBranches(f.ctx, BranchDeletion{Branch: "b", Holds: h, Keep: keep}), ErrMoved)
	f.wantErr(f.DeleteBranches(f.ctx, BranchDeletion{Branch: "main", Holds: h, Keep: keep}), ErrBranchInUse)
	if _, found, err := f.ResolveRef(f.ctx, keep); found || err != nil {
		t.Fatalf("kept although the branch stays: %v", err)
	}
	run := f.counted()
	f.must(f.DeleteBranches(f.ctx, BranchDeletion{Branch: "b", Holds: other, Keep: keep}))
	f.wantProcesses(run, 1)
	if got, found, err := f.ResolveRef(f.ctx, keep); got != other || !found || err != nil {
		t.Errorf("%q %v %v", got, found, err)
	}
	if exists, err := f.BranchExists(f.ctx, "b"); exists || err != nil {
		t.Errorf("still there: %v", err)
	}
	f.must(f.DeleteBranches(f.ctx, BranchDeletion{Branch: "b", Holds: other, Keep: "refs/chipset/landed/mr-2"})) // again, after a crash
	if got, _, err := f.ResolveRef(f.ctx, "refs/chipset/landed/mr-2"); got != other || err != nil {
		t.Errorf("%q %v", got, err)
	}

	f.git(f.TopLevel(), "branch", "c", string(h))
	f.git(f.TopLevel(), "branch", "d", string(other))
	f.wantErr(f.DeleteBranches(f.ctx, BranchDeletion{Branch: "c", Holds: h}, BranchDeletion{Branch: "d", Holds: h}), ErrMoved)
	if exists, err := f.BranchExists(f.ctx, "c"); !exists || err != nil {
		t.Errorf("gone although another had moved: %v", err)
	}
	run()
	f.must(f.DeleteBranches(f.ctx, BranchDeletion{Branch: "c", Holds: h}, BranchDeletion{Branch: "d", Holds: other, Keep: "refs/chipset/landed/mr-3"}))
	f.wantProcesses(run, 1)
	f.must(errors.Join(f.DeleteBranches(f.ctx, BranchDeletion{Branch: "c", Holds: h}), f.DeleteBranches(f.ctx)))
	f.wantProcesses(run, 0)
}

// The way of one bead, in processes.
func TestProcesses(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	base := f.head(f.TopLevel())
	f.must(f.ReleaseWorktree(f.ctx, w.Path(), ""))
	run := f.counted()
	f.see("HEAD", base) // what answers questions runs from here on
	f.must(f.ask(f.ctx, &f.trees, endOfDiff+"\n", func(from *bufio.Reader) error {
		_, err := from.ReadString('\n')
		return err
	}))
	f.wantProcesses(run, 2)
	if !f.PrepareIdle(f.ctx, w.Path(), "polecat/y", base) {
		t.Fatal("not idle")
	}
	f.wantProcesses(run, 2)
	head := f.commit(w.Path(), map[string]string{"y": "y\n"})
	if made, err := w.CommitAll(f.ctx, "rest", "polecat-alpha"); err != nil || made.Made || made.Hash != head {
		t.Fatalf("%+v %v", made, err)
	}
	f.wantProcesses(run, 1)
	if _, err := f.CountCommits(f.ctx, base, head); err != nil {
		t.Fatal(err)
	}
	if _, err := f.MergeBase(f.ctx, base, head); err != nil {
		t.Fatal(err)
	}
	if touched, err := f.TouchesPath(f.ctx, base, head, ".chipset"); err != nil || touched {
		t.Fatal(touched, err)
	}
	f.must(f.UpdateBranch(f.ctx, "polecat/y", head, ""))
	f.wantProcesses(run, 1)
	if !f.LeaveWorktree(f.ctx, w.Path()) {
		t.Fatal("not left")
	}
	f.wantProcesses(run, 0)

	other := f.commit(f.TopLevel(), map[string]string{"z": "z\n"})
	land := f.In(filepath.Join(f.TopLevel(), ".chipset", "worktrees", "refinery"))
	f.must(f.PrepareDetached(f.ctx, land.Path(), other))
	run()
	candidate, err := land.Rebase(f.ctx, head, other, "refinery")
	f.must(err)
	f.wantProcesses(run, 4) // two of them once per process, for the identity
	f.must(f.Advance(f.ctx, "main", other, candidate))
	f.wantProcesses(run, 1)
	f.wantFile(f.TopLevel(), "y", "y\n")
}

func TestOpenTakesOneProcess(t *testing.T) {
	f := newFixture(t)
	run := f.counted()
	t.Setenv("PATH", filepath.Dir(f.Repo.git)+string(os.PathListSeparator)+os.Getenv("PATH"))
	if _, err := Open(f.ctx, f.TopLevel()); err != nil {
		t.Fatal(err)
	}
	f.wantProcesses(run, 1)
}
