package inspect

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

var noon = time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)

const alpha, bravo state.AgentID = "polecat-alpha", "polecat-bravo"

// fixture is a rig in a repository of its own, with nothing running.
type fixture struct {
	*rig.Rig
	t   *testing.T
	dir string
	now time.Time
	// lenient is for many damages at once, of which one can take another's place.
	lenient bool
}

// errSpoiled is what a damage that can't be done any more panics with.
type errSpoiled struct{ error }

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil && f.lenient {
		panic(errSpoiled{err})
	}
	must(f.t, err)
}

// try does a damage if it can still be done.
func (f *fixture) try(spoil func(f *fixture)) (done bool) {
	f.lenient = true
	defer func() {
		f.lenient = false
		if e := recover(); e != nil {
			if _, expected := e.(errSpoiled); !expected {
				panic(e)
			}
			done = false
		}
	}()
	spoil(f)
	return true
}

func TestMain(m *testing.M) {
	restore := gittest.Isolate()
	code := m.Run()
	if dir, err := template(); err == nil {
		os.RemoveAll(dir)
	}
	restore()
	os.Exit(code)
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	var err error
	f := &fixture{t: t, dir: gittest.Repo(t), now: noon}
	f.Rig, err = rig.Init(t.Context(), rig.InitOptions{Dir: f.dir, Clock: func() time.Time { return f.now },
		Template: definition.TemplateOptions{RigName: "yard", Prefix: "gt", Worker: "sh", Polecats: 2, Test: "make check", Target: "main"}})
	must(t, err)
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) git(args ...string) string {
	f.t.Helper()
	args = append([]string{"-c", "user.name=t", "-c", "user.email=t@example.invalid"}, args...)
	if f.lenient {
		cmd := exec.Command("git", args...)
		cmd.Dir = f.dir
		out, err := cmd.Output()
		f.must(err)
		return strings.TrimSpace(string(out))
	}
	return gittest.Run(f.t, f.dir, args...)
}

// plant puts a file into the tree the way another program would.
func (f *fixture) plant(p state.Path, content string) {
	f.t.Helper()
	f.must(os.MkdirAll(filepath.Dir(f.Tree.Abs(p)), 0o755))
	f.must(os.WriteFile(f.Tree.Abs(p), []byte(content), 0o644))
}

func (f *fixture) at() state.Time { return f.Clock.Now() }

// bead puts a bead into the tree as it is given.
func (f *fixture) bead(id state.BeadID, st bead.Status, change func(b *bead.Bead)) bead.Bead {
	f.t.Helper()
	b := bead.Bead{ID: id, Title: "Title of " + string(id), Status: st, Priority: bead.P2, CreatedAt: f.at(), UpdatedAt: f.at(), Gen: 1}
	switch st {
	case bead.Hooked, bead.InProgress, bead.Done, bead.Merged:
		b.Assignee, b.AssignmentID, b.Assignments, b.Branch = alpha, state.AssignmentID("as-"+string(id)), 1, bead.BranchFor(id, 1)
	case bead.Open, bead.Closed, bead.Failed, bead.Blocked, bead.Cancelled:
	}
	if st.Finished() {
		at := f.at()
		b.ClosedAt = &at
	}
	if change != nil {
		change(&b)
	}
	f.must(f.Beads.Put(string(id), b))
	return b
}

// hang hangs a bead on its assignee's hook.
func (f *fixture) hang(b bead.Bead, st hook.Status) {
	f.t.Helper()
	f.must(f.Hooks.Put(string(b.Assignee), hook.Hook{AgentID: b.Assignee, Gen: 3, Status: st, LastActivity: f.at(),
		WorkItem: &hook.WorkItem{AssignedAt: f.at(), AssignmentID: b.AssignmentID, BeadID: b.ID, Title: b.Title, Session: "ses-1"}}))
}

func (f *fixture) request(b bead.Bead, st mergequeue.Status, change func(q *mergequeue.Request)) mergequeue.Request {
	f.t.Helper()
	all, _, err := f.Queue.Queue()
	f.must(err)
	q := mergequeue.Request{ID: state.MergeID("mr-" + string(b.ID)), Seq: int64(len(all) + 1), BeadID: b.ID, AssignmentID: b.AssignmentID,
		AgentID: b.Assignee, SourceBranch: b.Branch, TargetBranch: "main", Head: f.tip(), Status: st, SubmittedAt: f.at(), UpdatedAt: f.at()}
	if st == mergequeue.Merged {
		q.MergedSHA = f.tip()
	}
	if change != nil {
		change(&q)
	}
	if q.Status.Live() {
		f.git("branch", "-f", q.SourceBranch, q.Head)
	}
	f.must(f.Queue.Put(string(q.ID), q))
	return q
}

func (f *fixture) tip() string { return f.git("rev-parse", "main") }

func (f *fixture) end(b bead.Bead, o retire.Outcome, s retire.Stage) {
	f.t.Helper()
	f.must(f.Retire.Put(string(b.AssignmentID), retire.Record{AssignmentID: b.AssignmentID, AgentID: b.Assignee, BeadID: b.ID,
		Session: "ses-1", Outcome: o, Stage: s, CreatedAt: f.at(), UpdatedAt: f.at()}))
}

// run makes this test the process of an agent.
func (f *fixture) run(ids ...state.AgentID) {
	f.t.Helper()
	for _, id := range ids {
		lock, err := f.Claim(f.t.Context(), id, "ses-1")
		f.must(err)
		f.t.Cleanup(lock.Unlock)
	}
}

func (f *fixture) ref(name, hash string) {
	f.t.Helper()
	ref, err := git.ParseRef(name)
	f.must(err)
	f.must(f.Git.UpdateRef(f.t.Context(), ref, git.Hash(hash), git.ZeroHash))
}
