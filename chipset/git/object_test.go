package git

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// history makes commits with trees of all kinds, and names them.
func (f *fixture) history() []Hash {
	f.Helper()
	top := f.TopLevel()
	all := []Hash{f.head(top)}
	commit := func(how ...string) {
		f.Helper()
		for _, args := range how {
			f.git(top, strings.Fields(args)...)
		}
		f.git(top, "commit", "-q", "--allow-empty", "-m", fmt.Sprintf("commit %d", len(all)))
		all = append(all, f.head(top))
	}
	file := func(name, content string) {
		f.write(top, name, content)
		f.git(top, "add", "-A")
	}
	file("b/c/d", "1")
	file("b/e", "2")
	commit()
	file("b.x", "3")
	file("b-x", "4")
	file("ü/ö", "5")
	commit()
	commit() // nothing
	f.git(top, "checkout", "-q", "-b", "side", string(all[1]))
	f.git(top, "rm", "-q", "-r", "b")
	file("b", "a file where a folder was")
	commit()
	file("link", "x")
	f.must(os.Remove(top + "/link"))
	f.must(os.Symlink("b", top+"/link"))
	f.git(top, "add", "-A")
	f.git(top, "update-index", "--chmod=+x", "b")
	commit()
	f.git(top, "update-index", "--add", "--cacheinfo", "160000,"+string(all[0])+",module")
	commit()
	f.git(top, "checkout", "-q", "-f", "main")
	f.git(top, "merge", "-q", "--no-edit", "-s", "ours", "side")
	all = append(all, f.head(top))
	file("after", "the merge")
	commit()
	f.git(top, "checkout", "-q", "--orphan", "lone")
	commit("rm -q -r -f --cached .")
	f.git(top, "checkout", "-q", "-f", "main")
	return all
}

// Whatever is answered without a process of its own, git answers the same.
func TestWalksAgreeWithGit(t *testing.T) {
	f := newFixture(t)
	all := f.history()
	answered := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		a, b := rapid.SampledFrom(all).Draw(rt, "a"), rapid.SampledFrom(all).Draw(rt, "b")
		if got, known := f.walkRange(f.ctx, a, b); known {
			answered["range"]++
			count := len(strings.Fields(f.git(f.TopLevel(), "rev-list", string(a)+".."+string(b))))
			fork := f.git(f.TopLevel(), "merge-base", "--all", string(a), string(b))
			if got != (commitRange{count: count, fork: Hash(fork)}) {
				rt.Fatalf("range: %+v, want %d and %s", got, count, fork)
			}
			paths, err := f.ChangedPaths(f.ctx, a, b)
			want := fields([]byte(f.git(f.TopLevel(), "diff-tree", "-r", "-z", "--name-only", "--no-renames", fork, string(b), "--")))
			if err != nil || !slices.Equal(paths, want) {
				rt.Fatalf("paths: %q %v, want %q", paths, err, want)
			}
		}
		got, err := f.reached(f.ctx, b, []Hash{a})
		if err != nil {
			rt.Fatal(err)
		}
		want := strings.Fields(f.git(f.TopLevel(), "rev-list", "--objects", "--no-object-names", string(b), "^"+string(a)))
		most := strings.Fields(f.git(f.TopLevel(), "rev-list", "--objects", "--no-object-names", string(b)))
		for _, h := range want {
			if !slices.Contains(got, Hash(h)) {
				rt.Fatalf("reached: %s is missing in %v", h, got)
			}
		}
		for _, h := range got {
			if !slices.Contains(most, string(h)) {
				rt.Fatalf("reached: %s is not reached", h)
			}
		}
	})
	if answered["range"] == 0 {
		t.Error("no range was answered")
	}
}

// What is packed is found, and what is torn or gone is nobody's answer.
func TestReachedOfTornObjects(t *testing.T) {
	for name, c := range map[string]struct {
		disturb func(f *fixture, head Hash)
		whole   bool
	}{
		"nothing": {func(*fixture, Hash) {}, true},
		"packed":  {func(f *fixture, _ Hash) { f.git(f.TopLevel(), "gc", "-q") }, true},
		"torn commit": {func(f *fixture, head Hash) {
			f.spoil(head, func(whole []byte) []byte { return whole[:len(whole)-4] })
		}, false},
		"empty tree": {func(f *fixture, head Hash) {
			f.spoil(Hash(f.git(f.TopLevel(), "rev-parse", string(head)+"^{tree}")), func([]byte) []byte { return nil })
		}, false},
		"torn tree": {func(f *fixture, head Hash) {
			tree := Hash(f.git(f.TopLevel(), "rev-parse", string(head)+"^{tree}"))
			f.spoil(tree, func(whole []byte) []byte { return append(whole[:len(whole)-4], 0, 0, 0, 0) })
		}, false},
		"no blob": {func(f *fixture, head Hash) {
			f.must(os.Remove(f.loose(Hash(f.git(f.TopLevel(), "rev-parse", string(head)+":new")))))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			base := f.head(f.TopLevel())
			head := f.commit(f.TopLevel(), map[string]string{"new": "new"})
			c.disturb(f, head)
			got, err := f.reached(f.ctx, head, []Hash{base})
			if (err == nil) != c.whole || c.whole && len(got) != 3 {
				t.Errorf("reached: %v, %v", got, err)
			}
			if whole, err := f.HasCommit(f.ctx, head); err != nil || whole != (c.whole || name == "no blob") {
				t.Errorf("whole is %v, %v", whole, err)
			}
		})
	}
}

// The usual questions about new work cost no process, once their coprocesses run.
func TestWalksCostNoProcess(t *testing.T) {
	f := newFixture(t)
	base := f.head(f.TopLevel())
	head := f.commit(f.TopLevel(), map[string]string{"new": "new", "folder/new": "new"})
	tip := f.commit(f.TopLevel(), map[string]string{"newer": "newer"})
	run := f.counted()
	for n := range 2 {
		count, err := f.CountCommits(f.ctx, base, head)
		f.must(err)
		paths, err := f.ChangedPaths(f.ctx, base, head)
		f.must(err)
		at, found, err := f.ResolveCommit(f.ctx, string(head))
		f.must(err)
		whole, err := f.HasCommit(f.ctx, tip)
		f.must(err)
		in, err := f.IsAncestor(f.ctx, tip, head)
		f.must(err)
		objects, err := f.reached(f.ctx, tip, []Hash{base})
		f.must(err)
		if count != 1 || !slices.Equal(paths, []string{"folder/new", "new"}) || at != head || !found || !whole || in || len(objects) != 7 {
			t.Errorf("%d, %q, %s %v, %v, %v, %d objects", count, paths, at, found, whole, in, len(objects))
		}
		f.wantProcesses(run, 2*(1-n))
	}
}

// Only a commit is read as one, also where another object has lines like a commit's.
func TestCommitIsACommit(t *testing.T) {
	f := newFixture(t)
	head := f.head(f.top)
	tree := Hash(f.git(f.top, "rev-parse", "HEAD^{tree}"))
	f.git(f.top, "tag", "-m", "a tag", "v1")
	for what, h := range map[string]Hash{
		"a file like a commit": f.object("blob", "tree "+string(tree)+"\nparent "+string(head)+"\n"),
		"a tree":               tree,
		"a tag":                Hash(f.git(f.top, "rev-parse", "v1")),
		"nothing":              Hash(strings.Repeat("1", 40)),
		"a commit of no tree":  f.object("commit", "tree x\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nm\n"),
	} {
		if c, err := f.Repo.commit(f.ctx, h); err == nil {
			t.Errorf("%s is read as %+v", what, c)
		}
	}
	if c, err := f.Repo.commit(f.ctx, head); err != nil || c.tree != tree || len(c.parents) > 0 {
		t.Errorf("%+v, %v", c, err)
	}
}
