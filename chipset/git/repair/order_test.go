package repair

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	syscalls "github.com/gastown-chipset/chipset/state/statetest/refused"
)

// A repair that a power cut ends has lost nothing: the new registration is whole before the old one is set aside, and what takes
// the place of something is on the disk before.
func TestOrderOfDurableSteps(t *testing.T) {
	for name, c := range map[string]struct {
		tear  func(f *fixture, w *git.Worktree, admin string)
		do    func(f *fixture, w *git.Worktree) error
		steps []string
	}{
		"worktree": {func(f *fixture, _ *git.Worktree, admin string) { f.write(admin, "index", "") },
			func(f *fixture, w *git.Worktree) error {
				_, err := Worktree(f.ctx, f.Repo, w.Path(), Known{})
				return err
			},
			[]string{`stat .*/new-polecat alpha/(HEAD|commondir)`, `stat .*/new-polecat alpha/(HEAD|commondir)`, `fsync .*/new-polecat alpha/chipset-mend-.*`,
				`stat .*/new-polecat alpha/gitdir`, `rename .*/new-polecat alpha/chipset-mend-.*`, `fsync .*/new-polecat alpha`,
				`rename \.git/worktrees/polecat-alpha`, `fsync \.git/chipset-aside`, `fsync \.git/worktrees`,
				`rename .*/new-polecat alpha`, `fsync \.git/worktrees`, `fsync \.git`,
				`fsync \.chipset/worktrees/polecat alpha/chipset-mend-.*`, `rename \.chipset/worktrees/polecat alpha/chipset-mend-.*`, `fsync \.chipset/worktrees/polecat alpha`}},
		"worktree without files": {func(f *fixture, w *git.Worktree, admin string) {
			f.commit(w.Path(), map[string]string{"own.txt": "own"})
			f.git(w.Path(), "checkout", "-q", "--detach")
			f.git(f.TopLevel(), "branch", "-q", "-D", "polecat/x")
			f.must(os.RemoveAll(w.Path()))
			f.write(admin, "HEAD", "")
		}, func(f *fixture, w *git.Worktree) error {
			_, err := Worktree(f.ctx, f.Repo, w.Path(), Known{})
			return err
		}, []string{`open \.git/refs/chipset/salvage/worktree-polecat-alpha-.*`, `rename \.git/worktrees/polecat-alpha`, `fsync \.git/worktrees`}},
		"restored ref": {func(f *fixture, _ *git.Worktree, _ string) { f.write(f.CommonDir(), "refs/heads/polecat/x", "torn") },
			func(f *fixture, _ *git.Worktree) error { return RestoreRef(f.ctx, f.Repo, "refs/heads/polecat/x") },
			[]string{`fsync \.git/refs/heads/polecat/chipset-mend-.*`, `rename \.git/refs/heads/polecat/chipset-mend-.*`, `fsync \.git/refs/heads/polecat`, `syncfs \.git`}},
		"removed ref": {func(f *fixture, _ *git.Worktree, _ string) { f.write(f.CommonDir(), "refs/chipset/x", "torn") },
			func(f *fixture, _ *git.Worktree) error { return RemoveRef(f.ctx, f.Repo, "refs/chipset/x") },
			[]string{`unlink \.git/refs/chipset/x`, `syncfs \.git`, `fsync \.git`}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.prepared()
			admin, err := w.GitDir()
			f.must(err)
			c.tear(f, w, filepath.Clean(admin))
			calls := syscalls.Calls(t, f.TopLevel(), 0, func() { err = c.do(f, w) })
			if err != nil {
				t.Fatal(err)
			}
			gittest.InOrder(t, calls, c.steps...)
			// The file that says that a new registration is complete is its last.
			complete := slices.IndexFunc(calls, func(c syscalls.Call) bool { return strings.HasSuffix(c.What, "/new-polecat alpha/gitdir") })
			if complete >= 0 && slices.ContainsFunc(calls[complete:], func(c syscalls.Call) bool {
				return strings.HasSuffix(c.What, "/new-polecat alpha/HEAD") || strings.HasSuffix(c.What, "/new-polecat alpha/commondir")
			}) {
				t.Error("the new registration counts as complete before it is")
			}
		})
	}
}
