package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	syscalls "github.com/gastown-chipset/chipset/state/statetest/refused"
)

// A call on a file that fails is never taken for an answer: that there is no worktree, no lock, no torn object, nothing to do.
// Each of these answers the same again, or fails; what must do all that it begins fails.
func TestACallThatFailsIsNoAnswer(t *testing.T) {
	f := newFixture(t)
	f.LockGrace = 0 // or it looks at a lock more or less often
	w := f.prepared()
	head := f.commit(w.Path(), map[string]string{"b.txt": "b\n"})
	other := filepath.Join(filepath.Dir(w.Path()), "other", filepath.Base(w.Path()))
	f.must(f.PrepareWorktree(f.ctx, other, "polecat/y", head))
	p, err := w.ours()
	f.must(err)
	f.must(f.KeepObjects(f.ctx, head))
	f.write(p.gitDir, "MERGE_HEAD", string(head)+"\n")
	stale := filepath.Join(p.gitDir, "index.lock")
	lfs := filepath.Join(p.gitDir, "lfs/objects/ba/78/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
	torn := filepath.Join(f.CommonDir(), "objects", "11", "11111111111111111111111111111111111111")
	for _, c := range []struct {
		name string
		// prepare makes what it begins with, before each.
		prepare func()
		do      func() (any, error)
		// loose names the calls that may fail without a word.
		loose string
	}{
		{"git directory", nil, func() (any, error) { return answer(f.gitDirOf(w.Path())) }, `^stat`},
		{"git directory of one that git named otherwise", nil, func() (any, error) { return answer(f.gitDirOf(other)) }, `^stat`},
		{"registered", nil, func() (any, error) { return answer(f.registered(w.Path())) }, `^(stat|open .*/\.git$)`},
		{"git directories", nil, func() (any, error) { return answer(f.gitDirs()) }, ``},
		{"locks", func() { f.write(p.gitDir, "index.lock", "") }, func() (any, error) { return answer(f.Locks()) }, ``},
		{"clear locks", func() { f.write(p.gitDir, "index.lock", "") }, func() (any, error) {
			err := f.clearLocks(f.ctx, p.gitDir)
			_, there := os.Lstat(stale)
			return there == nil, err
		}, `^stat`},
		{"torn objects", func() { f.write(filepath.Dir(torn), filepath.Base(torn), "torn") }, func() (any, error) { return answer(f.RemoveTornObjects()) }, ``},
		{"rewrite", nil, func() (any, error) { return answer(f.RewriteObjects(f.ctx, []Hash{head})) }, `^(unlink|stat)`},
		{"unreadable", nil, func() (any, error) { return answer(f.Unreadable(f.ctx, []Hash{head})) }, ``},
		{"kept objects", nil, func() (any, error) { return answer(looseIn(f.kept())) }, ``},
		{"kept whole", func() { f.must(done(f.goneLoose())) }, func() (any, error) { return answer(f.goneLoose()) }, `^stat .git/chipset-kept/../`},
		{"keep packs", nil, func() (any, error) { return nil, f.keepPacks() }, ``},
		{"mend folders", nil, func() (any, error) { return nil, f.mendFolders() }, ``},
		{"configured", nil, func() (any, error) { return answer(f.Configured()) }, `^stat .*alternates$`},
		{"commondirs", func() { f.write(p.gitDir, "commondir", "torn") }, func() (any, error) {
			err := f.mendCommondirs()
			return nil, err
		}, `^(stat|unlink)|^open .*/(gitdir|commondir)$`},
		{"salvage parents", nil, func() (any, error) {
			parents, unsaved, err := w.salvageParents(f.ctx, p, head, true, head)
			return fmt.Sprint(parents, unsaved), err
		}, ``},
		{"collect", func() {
			f.write(filepath.Dir(lfs), filepath.Base(lfs), "abc")
			f.must(os.RemoveAll(filepath.Join(f.CommonDir(), "lfs")))
		}, func() (any, error) {
			return nil, w.CollectLFS()
		}, `^(stat|readlink|unlink .*/tmp/)|^(open|list) .*/worktrees/`},
		{"free a branch", nil, func() (any, error) { return nil, f.FreeBranch(f.ctx, "polecat/x") }, `^stat`},
		{"unblock", nil, func() (any, error) { return nil, f.Unblock(w.Path(), "refs/heads/polecat/") }, `^stat`},
		{"sync", nil, func() (any, error) { return nil, f.Sync(f.ctx) }, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			again := func(n int) (got any, calls []syscalls.Call, err error) {
				if c.prepare != nil {
					c.prepare()
				}
				calls = syscalls.Calls(t, f.TopLevel(), n, func() { got, err = c.do() })
				return got, calls, err
			}
			want, calls, err := again(0)
			if err != nil || len(calls) == 0 {
				t.Fatalf("%d calls, %v", len(calls), err)
			}
			for n, call := range calls {
				got, _, err := again(n + 1)
				switch may := c.loose != "" && regexp.MustCompile(c.loose).MatchString(call.What); {
				case errors.Is(err, ErrNotWorktree), errors.Is(err, ErrForeignDirectory), errors.Is(err, errNotItsName):
					t.Errorf("%s fails, and the answer is %v", call.What, err)
				case err == nil && !may:
					t.Errorf("%s fails without a word", call.What)
				case err == nil && fmt.Sprint(got) != fmt.Sprint(want):
					t.Errorf("%s fails, and the answer is %v, not %v", call.What, got, want)
				}
			}
			if got, _, err := again(0); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("in the end %v, not %v: %v", got, want, err)
			}
		})
	}
}

func done[T any](_ T, err error) error { return err }
