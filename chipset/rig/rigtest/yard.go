package rigtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// Noon is the time of a new Yard.
func Noon() time.Time { return time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC) }

// Alpha is the first polecat of a Yard.
const Alpha state.AgentID = "polecat-alpha"

// Yard is a rig in a repository of its own, with nothing running, into which a
// test puts objects as they are given.
type Yard struct {
	*rig.Rig
	T   testing.TB
	Dir string
	// Now is what the rig's clock says.
	Now time.Time
	// OnError is called with every error instead of ending the test, unless it is nil.
	OnError func(error)
}

// NewYard makes a rig with two polecats.
func NewYard(t testing.TB) *Yard {
	t.Helper()
	var err error
	f := &Yard{T: t, Dir: gittest.Repo(t), Now: Noon()}
	f.Rig, err = rig.Init(t.Context(), rig.InitOptions{Dir: f.Dir, Clock: func() time.Time { return f.Now },
		Template: definition.TemplateOptions{RigName: "yard", Prefix: "gt", Worker: "sh", Polecats: 2, Test: "make check", Target: "main"}})
	Must(t, err)
	return f
}

// Must ends the test, or calls OnError, unless err is nil.
func (f *Yard) Must(err error) {
	f.T.Helper()
	if err != nil && f.OnError != nil {
		f.OnError(err)
	}
	Must(f.T, err)
}

// RunGit runs git in the repository as a person does.
func (f *Yard) RunGit(args ...string) string {
	f.T.Helper()
	args = append([]string{"-c", "user.name=t", "-c", "user.email=t@example.invalid"}, args...)
	if f.OnError != nil {
		cmd := exec.Command("git", args...)
		cmd.Dir = f.Dir
		out, err := cmd.Output()
		f.Must(err)
		return strings.TrimSpace(string(out))
	}
	return gittest.Run(f.T, f.Dir, args...)
}

// Plant puts a file into the tree the way another program would.
func (f *Yard) Plant(p state.Path, content string) {
	f.T.Helper()
	f.Must(os.MkdirAll(filepath.Dir(f.Tree.Abs(p)), 0o755))
	f.Must(os.WriteFile(f.Tree.Abs(p), []byte(content), 0o644))
}

// At is the time of the rig's clock.
func (f *Yard) At() state.Time { return f.Clock.Now() }

// PutBead puts a bead into the tree as it is given.
func (f *Yard) PutBead(id state.BeadID, st bead.Status, change func(b *bead.Bead)) bead.Bead {
	f.T.Helper()
	b := bead.Bead{ID: id, Title: "Title of " + string(id), Status: st, Priority: bead.P2, CreatedAt: f.At(), UpdatedAt: f.At(), Gen: 1}
	switch st {
	case bead.Hooked, bead.InProgress, bead.Done, bead.Merged:
		b.Assignee, b.AssignmentID, b.Assignments, b.Branch = Alpha, state.AssignmentID("as-"+string(id)), 1, bead.BranchFor(id, 1)
	case bead.Open, bead.Closed, bead.Failed, bead.Blocked, bead.Cancelled:
	}
	if st.Finished() {
		at := f.At()
		b.ClosedAt = &at
	}
	if change != nil {
		change(&b)
	}
	f.Must(f.Beads.Put(string(id), b))
	return b
}

// Hang puts a bead on its assignee's hook.
func (f *Yard) Hang(b bead.Bead, st hook.Status) {
	f.T.Helper()
	f.Must(f.Hooks.Put(string(b.Assignee), hook.Hook{AgentID: b.Assignee, Gen: 3, Status: st, LastActivity: f.At(),
		WorkItem: &hook.WorkItem{AssignedAt: f.At(), AssignmentID: b.AssignmentID, BeadID: b.ID, Title: b.Title, Session: "ses-1"}}))
}

// PutRequest puts a merge request of a bead into the queue, with its branch.
func (f *Yard) PutRequest(b bead.Bead, st mergequeue.Status, change func(q *mergequeue.Request)) mergequeue.Request {
	f.T.Helper()
	all, _, err := f.Queue.Queue()
	f.Must(err)
	q := mergequeue.Request{ID: state.MergeID("mr-" + string(b.ID)), Seq: int64(len(all) + 1), BeadID: b.ID, AssignmentID: b.AssignmentID,
		AgentID: b.Assignee, SourceBranch: b.Branch, TargetBranch: "main", Head: f.Tip(), Status: st, SubmittedAt: f.At(), UpdatedAt: f.At()}
	if st == mergequeue.Merged {
		q.MergedSHA = f.Tip()
	}
	if change != nil {
		change(&q)
	}
	if q.Status.Live() {
		f.RunGit("branch", "-f", q.SourceBranch, q.Head)
	}
	f.Must(f.Queue.Put(string(q.ID), q))
	return q
}

// Tip is the commit of main.
func (f *Yard) Tip() string { return f.RunGit("rev-parse", "main") }

// PutEnd puts the record of how the attempt at a bead ended.
func (f *Yard) PutEnd(b bead.Bead, o retire.Outcome, s retire.Stage) {
	f.T.Helper()
	f.Must(f.Retire.Put(string(b.AssignmentID), retire.Record{AssignmentID: b.AssignmentID, AgentID: b.Assignee, BeadID: b.ID,
		Session: "ses-1", Outcome: o, Stage: s, CreatedAt: f.At(), UpdatedAt: f.At()}))
}

// Run makes this test the process of an agent.
func (f *Yard) Run(ids ...state.AgentID) {
	f.T.Helper()
	for _, id := range ids {
		lock, err := f.Claim(f.T.Context(), id, "ses-1")
		f.Must(err)
		f.T.Cleanup(lock.Unlock)
	}
}

// PutRef makes a ref.
func (f *Yard) PutRef(name, hash string) {
	f.T.Helper()
	ref, err := git.ParseRef(name)
	f.Must(err)
	f.Must(f.Git.UpdateRef(f.T.Context(), ref, git.Hash(hash), git.ZeroHash))
}
