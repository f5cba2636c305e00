package carry

import (
	"errors"
	"os"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// Work begins on the branch as it is here, and on the remote's only where that has what the rig landed last and the branch
// here has not. Who can't tell begins nowhere.
func TestTargetTip(t *testing.T) {
	y := newYard(t, "")
	commit := func(name string, parents ...git.Hash) git.Hash {
		args := []string{"-c", "user.name=t", "-c", "user.email=t@example.com", "commit-tree", "-m", name, "HEAD^{tree}"}
		for _, p := range parents {
			args = append(args, "-p", string(p))
		}
		return git.Hash(gittest.Run(t, y.Dir, args...))
	}
	base := git.Hash(gittest.Run(t, y.Dir, "rev-parse", "HEAD"))
	landed := commit("landed", base)
	mine, further, both := commit("mine", base), commit("further", landed), commit("both", landed)
	gone := git.Hash("1111111111111111111111111111111111111111")
	id := y.add()
	y.become(id, ways()[bead.Done]...)
	q, err := y.Queue.Submit(t.Context(), mergequeue.Request{BeadID: id, AssignmentID: y.bead(id).AssignmentID, AgentID: alpha, SourceBranch: "polecat/x", TargetBranch: "main"}, y.now())
	y.must(err)
	for _, c := range []struct {
		name                      string
		local, there, last, begin git.Hash // begin is "" where it is an error
		landedOn                  string
		noRemote                  bool
	}{
		{name: "the remote's is unknown", local: mine, last: landed, begin: mine},
		{name: "both are the same", local: landed, there: landed, last: landed, begin: landed},
		{name: "nothing was landed", local: mine, there: landed, begin: mine},
		{name: "landed there alone", local: mine, there: landed, last: landed, begin: landed},
		{name: "landed there alone, and others went on", local: mine, there: further, last: landed, begin: further},
		{name: "landed there, but no remote is in the definition", local: mine, there: landed, last: landed, begin: mine, noRemote: true},
		{name: "landed on both", local: both, there: further, last: landed, begin: both},
		{name: "landed here alone", local: landed, there: mine, last: landed, begin: landed},
		{name: "landed on neither", local: mine, there: commit("theirs", base), last: landed, begin: mine},
		{name: "landed on another branch", local: mine, there: landed, last: landed, begin: mine, landedOn: "other"},
		{name: "what was landed is missing", local: mine, there: landed, last: gone},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := &yard{t, y.Rig}
			gittest.Run(t, y.Dir, "update-ref", "--no-deref", "refs/heads/main", string(c.local))
			gittest.Run(t, y.Dir, "update-ref", "-d", "refs/remotes/origin/main")
			if c.there != "" {
				gittest.Run(t, y.Dir, "update-ref", "refs/remotes/origin/main", string(c.there))
			}
			y.Def.Merge.Remote = "origin"
			if c.noRemote {
				y.Def.Merge.Remote = ""
			}
			_, err := y.Queue.Update(t.Context(), string(q.ID), func(q *mergequeue.Request) error {
				q.Status, q.Onto, q.MergedSHA, q.TargetBranch = mergequeue.Merged, string(base), string(c.last), "main"
				if c.landedOn != "" {
					q.TargetBranch = c.landedOn
				}
				return nil
			})
			y.must(err)
			target, tip, err := TargetTip(t.Context(), y.Rig)
			if (err == nil) != (c.begin != "") || err == nil && (tip != c.begin || target != "main") {
				t.Errorf("work begins on %s at %s, not at %s: %v", target, tip, c.begin, err)
			}
		})
	}
}

// Without the branch that work lands on there is no tip.
func TestTargetTipOfNoBranch(t *testing.T) {
	y := newYard(t, "")
	y.Def.Merge.Target = "none"
	if _, tip, err := TargetTip(t.Context(), y.Rig); tip != "" || !errors.Is(err, state.ErrNotFound) {
		t.Errorf("work begins on %s: %v", tip, err)
	}
	y.Def.Merge.Target = "-"
	if _, tip, err := TargetTip(t.Context(), y.Rig); tip != "" || !errors.Is(err, git.ErrBadBranch) {
		t.Errorf("work begins on %s: %v", tip, err)
	}
}

// Who can't read the queue does not know what was landed: work begins nowhere.
func TestTargetTipWithoutTheQueue(t *testing.T) {
	y := newYard(t, "")
	y.Def.Merge.Remote = "origin"
	theirs := gittest.Run(t, y.Dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit-tree", "-m", "theirs", "-p", "HEAD", "HEAD^{tree}")
	gittest.Run(t, y.Dir, "update-ref", "refs/remotes/origin/main", theirs)
	queue := y.Tree.Abs(mergequeue.Dir)
	y.must(os.RemoveAll(queue))
	y.must(os.WriteFile(queue, nil, 0o600))
	if _, tip, err := TargetTip(t.Context(), y.Rig); err == nil {
		t.Errorf("work begins on %s", tip)
	}
}
