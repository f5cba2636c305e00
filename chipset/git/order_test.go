package git

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	syscalls "github.com/gastown-chipset/chipset/state/statetest/refused"
)

// A power cut may come between any two steps. What takes the place of something, or is the reason to remove something, is on the
// disk before; a name is on the disk before anybody is told.
func TestOrderOfDurableSteps(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	head := f.head(f.top)
	p, err := w.ours()
	f.must(err)
	const oid = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	own := filepath.Join(p.gitDir, "lfs/objects/ba/78", oid)
	f.write(filepath.Dir(own), oid, "abc")
	shared := `\.git/lfs/objects/ba/78`
	for _, c := range []struct {
		name  string
		do    func() error
		steps []string
	}{
		{"rewrite", func() error { return done(f.RewriteObjects(f.ctx, []Hash{head})) },
			[]string{`open \.git/objects/../tmp_obj_.*`, `syncfs \.git`, `fsync \.git`, `rename \.git/objects/../tmp_obj_.*`}},
		{"collect", w.CollectLFS, []string{`fsync \.git/lfs/tmp/chipset-.*`, `link ` + shared + `/` + oid, `fsync ` + shared, `fsync \.git/lfs/objects/ba`,
			`fsync \.git/lfs/objects`, `fsync \.git/lfs`, `fsync \.git`, `unlink .*worktrees/.*/` + oid}},
		{"collect what is there", func() error {
			f.write(filepath.Dir(own), oid, "abc")
			return w.CollectLFS()
		}, []string{`fsync ` + shared, `fsync \.git/lfs/objects/ba`, `fsync \.git/lfs/objects`, `fsync \.git/lfs`, `fsync \.git`, `unlink .*worktrees/.*/` + oid}},
		{"leave", func() error {
			if !f.LeaveWorktree(f.ctx, w.Path()) {
				t.Error("not left")
			}
			return nil
		}, []string{`fsync .*/chipset-mend-.*`, `rename .*/chipset-mend-.*`, `fsync \.git/worktrees/polecat-alpha`}},
		{"set aside", func() error {
			f.must(os.MkdirAll(filepath.Join(f.common, "refs/heads/polecat/z"), 0o755))
			return f.FreeBranch(f.ctx, "polecat/z")
		}, []string{`rename .*/z`, `fsync \.git/chipset-aside/.*`, `fsync \.git/chipset-aside`, `fsync \.git/refs/heads/polecat`}},
		{"stale lock", func() error {
			f.write(f.common, "refs/heads/x.lock", "")
			return f.RemoveStaleLock(f.ctx, filepath.Join(f.common, "refs/heads/x.lock"))
		}, []string{`unlink \.git/refs/heads/x\.lock`, `fsync \.git/refs/heads`}},
		{"sync", func() error { return f.Sync(f.ctx) }, []string{`syncfs \.git`, `fsync \.git`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := syscalls.Calls(t, f.top, 0, func() { err = c.do() })
			if err != nil {
				t.Fatal(err)
			}
			gittest.InOrder(t, calls, c.steps...)
		})
	}
}
