package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever was asked before, the answers are git's.
func TestFactsAgreeWithGit(t *testing.T) {
	f := newFixture(t)
	var all []Hash
	commit := func(parents ...Hash) Hash {
		args := []string{"commit-tree", "-m", "c", string(f.head(f.TopLevel())) + "^{tree}"}
		for _, p := range parents {
			args = append(args, "-p", string(p))
		}
		// The message makes them different even within one second.
		args[2] = string(rune('a' + len(all)))
		h := Hash(f.git(f.TopLevel(), args...))
		all = append(all, h)
		return h
	}
	root := commit()
	x1 := commit(root)
	x2 := commit(x1)
	y1 := commit(x1)
	m := commit(y1, x2)
	commit(commit(m))
	commit(commit())                          // unrelated
	commit(commit(y1, x2), commit(x2, y1), m) // several merge bases
	rapid.Check(t, func(rt *rapid.T) {
		a, b := rapid.SampledFrom(all).Draw(rt, "a"), rapid.SampledFrom(all).Draw(rt, "b")
		switch rapid.IntRange(0, 2).Draw(rt, "question") {
		case 0:
			got, err := f.IsAncestor(f.ctx, a, b)
			_, no := f.tryGit(f.TopLevel(), "merge-base", "--is-ancestor", string(a), string(b))
			if err != nil || got != (no == nil) {
				rt.Fatalf("ancestor: %v %v", got, err)
			}
		case 1:
			got, err := f.CountCommits(f.ctx, a, b)
			if want := f.git(f.TopLevel(), "rev-list", string(a)+".."+string(b)); err != nil || got != len(strings.Fields(want)) {
				rt.Fatalf("count: %d %v, want %s", got, err, want)
			}
		case 2:
			got, err := f.MergeBase(f.ctx, a, b)
			want, no := f.tryGit(f.TopLevel(), "merge-base", "--all", string(a), string(b))
			if errors.Is(err, ErrUnrelated) != (no != nil) || no == nil && !slices.Contains(strings.Fields(want), string(got)) {
				rt.Fatalf("base: %q %v, want %s", got, err, want)
			}
		}
	})
}

func TestFactsAreNotKeptWhereHistoryCanChange(t *testing.T) {
	f := newFixture(t)
	old := f.head(f.TopLevel())
	new := f.commit(f.TopLevel(), map[string]string{"b": "b"})
	far := f.commit(f.TopLevel(), map[string]string{"c": "c"})
	ask := func() bool {
		t.Helper()
		is, err := f.IsAncestor(f.ctx, new, far)
		f.must(err)
		return is
	}
	if !ask() {
		t.Fatal("not an ancestor")
	}
	f.write(f.CommonDir(), "shallow", string(far)+"\n")
	if ask() {
		t.Error("remembered what a shallow history has changed")
	}
	f.must(os.Remove(filepath.Join(f.CommonDir(), "shallow")))
	if !ask() {
		t.Error("remembered an answer that a shallow history gave")
	}
	// What is asked is what commits say, and not what somebody says of them.
	f.git(f.TopLevel(), "replace", "--graft", string(far), string(old))
	f.write(f.CommonDir(), "info/grafts", string(far)+" "+string(old)+"\n")
	if !ask() {
		t.Error("followed a replacement")
	}
	if out, err := f.read(f.ctx, "rev-list", string(far)); err != nil || !strings.Contains(string(out), string(new)) {
		t.Errorf("git followed a replacement or a graft: %s %v", out, err)
	}
}

func TestMemoIsBounded(t *testing.T) {
	var m memo
	for i := range 3 * maxFacts {
		h := Hash(fmt.Sprintf("%040x", i+1))
		m.put(h, commitFacts{tree: h})
		if c, ok := m.get(h); !ok || c.tree != h {
			t.Fatalf("%v %v, want %s", c, ok, h)
		}
		if len(m.known) > maxFacts {
			t.Fatalf("%d facts", len(m.known))
		}
	}
}

// A change of the configuration is seen at once.
func TestIdentityFollowsTheConfiguration(t *testing.T) {
	f := newFixture(t)
	global := filepath.Join(t.TempDir(), "gitconfig")
	t.Setenv("GIT_CONFIG_GLOBAL", global)
	f.git(f.TopLevel(), "config", "--unset", "user.email")
	r, err := Open(f.ctx, f.TopLevel())
	f.must(err)
	f.Repo = r
	want := func(n int) {
		t.Helper()
		for range 2 {
			if env, err := f.IdentityEnv(f.ctx, "polecat-alpha"); err != nil || len(env) != n {
				t.Fatalf("%q %v, want %d variables", env, err, n)
			}
		}
	}
	want(4)
	f.must(os.WriteFile(global, []byte("[user]\n\temail = somebody@example.org\n"), 0o644))
	run := f.counted()
	want(0)
	f.wantProcesses(run, 2)
	f.must(os.Remove(global))
	want(4)
}
