package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/git/repair"
)

// TestWorktreeThatIsALink: what a link in place of a worktree leads to is a
// person's own. Nothing is written there, and nothing of it is saved.
func TestWorktreeThatIsALink(t *testing.T) {
	f := midflight(t)
	own := t.TempDir()
	f.put(filepath.Join(own, "letters"), "mine")
	f.Must(os.RemoveAll(f.Worktree(alpha)))
	f.Must(os.Symlink(own, f.Worktree(alpha)))
	wounds, err := repair.Worktree(t.Context(), f.Git, f.Worktree(alpha), repair.Known{Own: true})
	if len(wounds) > 0 || err != nil {
		t.Errorf("mended %v, %v", wounds, err)
	}
	if _, err := carry.SaveWork(t.Context(), f.Rig, alpha, "saved"); err != nil {
		t.Error(err)
	}
	if err := f.Git.PrepareDetached(t.Context(), f.Worktree(alpha), ""); err == nil {
		t.Error("a worktree was made through a link")
	}
	isLink := func(s Finding) bool { return s.Rule == "folder" && s.Path == "worktrees/"+string(alpha) }
	if found := f.doctor(false); !slices.ContainsFunc(found, isLink) {
		t.Errorf("not named: %s", told(found))
	}
	f.doctor(true)
	if found := f.doctor(true); slices.ContainsFunc(found, isLink) {
		t.Errorf("still there: %s", told(found))
	}
	if left, err := os.ReadDir(own); err != nil || len(left) != 1 {
		t.Errorf("in the person's own folder: %v, %v", left, err)
	}
}
