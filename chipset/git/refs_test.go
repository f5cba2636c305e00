package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestParseBranchAgreesWithGit compares our rules with the installed git's. Ours may be stricter, never laxer.
func TestParseBranchAgreesWithGit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOfN(rapid.SampledFrom([]rune("ab-./@{}~^:?*[\\ \tlock\x7fü")), 1, 12, -1).Draw(t, "name")
		_, err := ParseBranch(name)
		gitErr := exec.Command("git", "check-ref-format", "--branch", name).Run()
		if err == nil && gitErr != nil {
			t.Fatalf("%q: we take what git does not", name)
		}
		if err != nil && gitErr == nil && !strings.Contains(name, "@{") {
			t.Fatalf("%q: git takes what we do not", name)
		}
	})
}

func TestParse(t *testing.T) {
	for _, name := range []string{"", "-d", "--force", "HEAD", "a..b", "a b", "refs/heads/x", "x.lock", "a/.b", "@", "x\n", "\xff", strings.Repeat("a", 300)} {
		if name == "@" {
			continue // refs/heads/@ is legal for git
		}
		if _, err := ParseBranch(name); err == nil {
			t.Errorf("branch %q taken", name)
		}
	}
	for _, text := range []string{"", "abc", strings.Repeat("A", 40), strings.Repeat("g", 40), strings.Repeat("a", 65), "--output=/tmp/x" + strings.Repeat("a", 30)} {
		if _, err := ParseHash(text); err == nil {
			t.Errorf("hash %q taken", text)
		}
	}
	for _, ref := range []string{"HEAD", "refs/x", "heads/x", "refs/heads/../x"} {
		if _, err := ParseRef(ref); err == nil {
			t.Errorf("ref %q taken", ref)
		}
	}
}

func TestInjectionIsRefusedEverywhere(t *testing.T) {
	f := newFixture(t)
	head, evil := f.head(f.TopLevel()), Branch("--upload-pack=touch x")
	_, _, errResolve := f.RemoteHash(f.ctx, "origin", evil)
	_, errFetch := f.Fetch(f.ctx, "origin", evil)
	_, _, errAt := f.CheckedOutAt(f.ctx, evil)
	_, errExists := f.BranchExists(f.ctx, evil)
	for _, err := range []error{errResolve, errFetch, errAt, errExists, f.UpdateBranch(f.ctx, evil, head, ""), f.Advance(f.ctx, evil, head, head),
		f.PrepareWorktree(f.ctx, filepath.Join(f.TopLevel(), "w"), evil, head), f.Push(f.ctx, "origin", head, evil), f.DeleteBranches(f.ctx, BranchDeletion{Branch: evil, Holds: head})} {
		f.wantErr(err, ErrBadBranch)
	}
	f.wantErr(f.UpdateBranch(f.ctx, "x", "--no-deref", ""), ErrBadHash)
	f.wantErr(f.UpdateBranch(f.ctx, "x", ZeroHash, ""), ErrBadHash)
	for _, remote := range []string{"--upload-pack=x", "https://example.org/x", "/tmp/x", "", "../x"} {
		_, err := f.Fetch(f.ctx, remote, "main")
		f.wantErr(err, ErrNoRemote)
	}
	if _, found, err := f.ResolveCommit(f.ctx, "--all"); err != nil || found {
		t.Errorf("resolved an option: %v", err)
	}
}

func TestRefsAndHistory(t *testing.T) {
	f := newFixture(t)
	top := f.TopLevel()
	first := f.head(top)
	f.git(top, "checkout", "-q", "-b", "side")
	second := f.commit(top, map[string]string{"new\nline ü.txt": "x", ".chipset/chipset.yaml": "y"})
	f.git(top, "checkout", "-q", "main")
	third := f.commit(top, map[string]string{"b.txt": "b"})

	if b, found, err := f.CurrentBranch(f.ctx); err != nil || !found || b != "main" {
		t.Errorf("current %q %v %v", b, found, err)
	}
	if b, err := f.DefaultTarget(f.ctx); err != nil || b != "main" {
		t.Errorf("target %q %v", b, err)
	}
	if h, found, err := f.ResolveRef(f.ctx, "refs/heads/side"); err != nil || !found || h != second {
		t.Errorf("resolve %v %v %v", h, found, err)
	}
	if _, found, err := f.ResolveRef(f.ctx, "refs/heads/sid"); err != nil || found {
		t.Errorf("resolved a prefix: %v", err)
	}
	for _, revision := range []string{"nope", strings.Repeat("1", 40), "", "a..b", "x\x00y"} {
		if _, found, err := f.ResolveCommit(f.ctx, revision); err != nil || found {
			t.Errorf("%q: %v %v", revision, found, err)
		}
	}
	if base, err := f.MergeBase(f.ctx, second, third); err != nil || base != first {
		t.Errorf("merge base %v %v", base, err)
	}
	if is, err := f.IsAncestor(f.ctx, first, second); err != nil || !is {
		t.Error("first is an ancestor of second", err)
	}
	if is, err := f.IsAncestor(f.ctx, third, second); err != nil || is {
		t.Error("third is no ancestor of second", err)
	}
	if n, err := f.CountCommits(f.ctx, third, second); err != nil || n != 1 {
		t.Errorf("count %d %v", n, err)
	}
	log, err := f.Log(f.ctx, "", second, 10)
	f.must(err)
	if len(log) != 2 || log[0].Hash != second || log[1].Subject != "first" || log[1].Email != "person@example.org" || log[1].When.IsZero() {
		t.Errorf("log %+v", log)
	}
	paths, err := f.ChangedPaths(f.ctx, third, second)
	f.must(err)
	if !slices.Equal(paths, []string{".chipset/chipset.yaml", "new\nline ü.txt"}) {
		t.Errorf("changed %q", paths)
	}
	if touches, err := f.TouchesPath(f.ctx, third, second, ".chipset"); err != nil || !touches {
		t.Error("side touches .chipset", err)
	}
	if touches, err := f.TouchesPath(f.ctx, first, third, ".chipset"); err != nil || touches {
		t.Error("main does not touch .chipset", err)
	}
	f.git(top, "checkout", "-q", "--orphan", "alone")
	orphan := f.commit(top, map[string]string{"c": "c"})
	if _, err := f.MergeBase(f.ctx, orphan, first); err == nil {
		t.Error("related")
	}
	if paths, err := f.ChangedPaths(f.ctx, first, orphan); err != nil || !slices.Contains(paths, "c") {
		t.Errorf("orphan changes %q %v", paths, err)
	}
}

func TestUpdateBranchIsCompareAndSwap(t *testing.T) {
	f := newFixture(t)
	first := f.head(f.TopLevel())
	second := f.commit(f.TopLevel(), map[string]string{"b": "b"})
	f.must(f.UpdateBranch(f.ctx, "work", first, ZeroHash))
	f.wantErr(f.UpdateBranch(f.ctx, "work", second, ZeroHash), ErrMoved)
	f.wantErr(f.UpdateBranch(f.ctx, "work", second, second), ErrMoved)
	f.wantErr(f.UpdateBranch(f.ctx, "gone", second, second), ErrMoved)
	f.wantErr(f.UpdateBranch(f.ctx, "work", second, "nonsense"), ErrBadHash)
	f.wantErr(f.SwapRef(f.ctx, "refs/heads/work", second, "nonsense"), ErrBadHash)
	f.must(f.UpdateBranch(f.ctx, "work", second, first))
	f.must(f.UpdateBranch(f.ctx, "work", first, ""))
	f.wantErr(f.DeleteBranches(f.ctx, BranchDeletion{Branch: "work", Holds: second}), ErrMoved)
	f.must(f.DeleteBranches(f.ctx, BranchDeletion{Branch: "work", Holds: first}))
	f.must(f.DeleteBranches(f.ctx, BranchDeletion{Branch: "work", Holds: first}))
	f.wantErr(f.DeleteBranches(f.ctx, BranchDeletion{Branch: "main", Holds: second}), ErrBranchInUse)

	w := f.prepared()
	f.must(f.UpdateBranch(f.ctx, "polecat/x", first, second))
	if h, _, err := w.Head(f.ctx); err != nil || h != first {
		t.Errorf("%v %v", h, err)
	}
}

// A branch that holds the new commit already, but not the old one, was moved by somebody else.
func TestUpdateBranchThatWasMovedThere(t *testing.T) {
	f := newFixture(t)
	first := f.head(f.top)
	second := f.commit(f.top, map[string]string{"b": "b"})
	third := f.commit(f.top, map[string]string{"c": "c"})
	f.git(f.top, "branch", "side", string(second))
	f.wantErr(f.UpdateBranch(f.ctx, "side", second, first), ErrMoved)
	f.wantErr(f.UpdateBranch(f.ctx, "side", second, ZeroHash), ErrMoved)
	f.wantErr(f.UpdateBranch(f.ctx, "side", third, first), ErrMoved)
	f.wantBranch("side", second)
	f.must(f.UpdateBranch(f.ctx, "side", second, ""))
	f.must(f.UpdateBranch(f.ctx, "side", third, second))
	f.wantBranch("side", third)
}

// Whether a ref is packed is unknown where git's list of them can't be read: then git says.
func TestPacked(t *testing.T) {
	f := newFixture(t)
	is := func(want bool, what string, ref Ref) {
		t.Helper()
		if f.packed(ref) != want {
			t.Errorf("%s: packed is %t", what, !want)
		}
	}
	is(false, "no list", "refs/heads/main")
	f.git(f.top, "pack-refs", "--all")
	is(true, "in the list", "refs/heads/main")
	is(false, "another", "refs/heads/mai")
	f.must(os.Remove(filepath.Join(f.common, "packed-refs")))
	f.must(os.Mkdir(filepath.Join(f.common, "packed-refs"), 0o755))
	is(true, "no file", "refs/heads/main")
}
