package carry

import (
	"os"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// FuzzReadWorktree: the record of a worktree is a cache that anybody may write to.
// What it tells git never is an option or an expression.
func FuzzReadWorktree(f *testing.F) {
	tree, err := state.Create(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	r := &rig.Rig{Tree: tree, Agents: agent.NewStore(tree, nil)}
	if err := tree.MkdirAll(WorktreeRecords); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(tree.Abs(worktreePath(alpha)), data, 0o644); err != nil {
			t.Fatal(err)
		}
		if use, known := ReadWorktree(r, alpha); known && (use.AgentID != alpha || state.CheckID(string(use.AssignmentID)) != nil) {
			t.Fatalf("%+v", use)
		}
		hint := HintOf(r, alpha)
		if _, err := git.ParseBranch(string(hint.Branch)); hint.Branch != "" && err != nil {
			t.Fatal(err)
		}
		if _, err := git.ParseHash(string(hint.Base)); hint.Base != "" && err != nil {
			t.Fatal(err)
		}
	})
}
