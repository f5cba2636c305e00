package environment

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

const definition = `rig: {name: r, bead_prefix: gt}
agents:
  agents:
    - {name: mayor, role: mayor}
    - {name: witness, role: witness}
    - {name: refinery, role: refinery}
    - {name: polecat-alpha, role: polecat}
merge: {remote: origin, target: main, test: "true"}
`

type fixture struct {
	*testing.T
	*rig.Rig
}

func (f *fixture) git(args ...string) string {
	f.Helper()
	return gittest.Run(f.T, f.Dir, args...)
}

func (f *fixture) commit(message string) string {
	f.Helper()
	f.git("commit", "-q", "--allow-empty", "-m", message)
	return f.git("rev-parse", "HEAD")
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// wants checks which rules are broken, and that each trouble names what it is about.
func (f *fixture) wants(rules string, holds ...string) {
	f.Helper()
	found, err := Look(f.Context(), f.Rig)
	f.must(err)
	var got, text []string
	for _, t := range found {
		got, text = append(got, t.Rule), append(text, t.Detail+"; "+t.Hint)
	}
	if strings.Join(got, " ") != rules {
		f.Errorf("%q, want %q", text, rules)
	}
	for _, h := range holds {
		if !strings.Contains(strings.Join(text, "\n"), h) {
			f.Errorf("%q does not name %q", text, h)
		}
	}
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir := gittest.Repo(t)
	gittest.Write(t, dir, ".chipset/chipset.yaml", definition)
	r, err := rig.Init(t.Context(), rig.InitOptions{Dir: dir, Clock: time.Now})
	f := &fixture{t, r}
	f.must(err)
	f.commit("first")
	return f
}

// landed adds a request that has landed as a commit.
func (f *fixture) landed(id, onto, sha string, at time.Time) {
	f.Helper()
	b := state.BeadID(id)
	q, err := f.Queue.Submit(f.Context(), mergequeue.Request{BeadID: b, AssignmentID: state.NewAssignmentID(), AgentID: "polecat-alpha",
		SourceBranch: bead.BranchFor(b, 1), TargetBranch: "main", Head: sha}, state.At(at))
	f.must(err)
	_, err = f.Queue.Update(f.Context(), string(q.ID), func(q *mergequeue.Request) error {
		q.Status, q.Onto, q.Candidate, q.MergedSHA, q.UpdatedAt = mergequeue.Merged, onto, sha, sha, state.At(at)
		return nil
	})
	f.must(err)
}

func TestBranches(t *testing.T) {
	f := newFixture(t)
	f.wants("")
	base := f.git("rev-parse", "HEAD")
	now := time.Now()
	first := f.commit("one")
	second := f.commit("two")
	f.landed("gt-aaaaa", base, first, now)
	f.landed("gt-bbbbb", first, second, now.Add(time.Second))
	f.commit("the person's own")
	f.wants("")
	f.git("reset", "-q", "--hard", first)
	f.wants(MovedBack, "main is at "+first[:10], "gt-bbbbb", second[:10])
	f.git("update-ref", "refs/remotes/origin/main", second) // pushed, and not followed yet
	f.wants("")
	mine := f.commit("mine")
	f.wants(Diverged, mine[:10], "origin/main at "+second[:10], "git pull --rebase origin main")
	f.git("update-ref", "refs/remotes/origin/main", base)
	f.git("reset", "-q", "--hard", second)
	f.wants("")
}

// A branch of the person's that leaves no room for workers' branches is named with the command that moves it.
func TestBranchesOfWorkers(t *testing.T) {
	f := newFixture(t)
	check := func() Check {
		t.Helper()
		checks, err := Checks(t.Context(), f.Rig)
		f.must(err)
		for _, c := range checks {
			if c.Name == CheckBranches {
				return c
			}
		}
		t.Fatal("not checked")
		return Check{}
	}
	if c := check(); !c.OK() {
		t.Error(c.Fault)
	}
	f.git("branch", "polecat")
	c := check()
	if c.OK() || !strings.Contains(c.Fault.Reason, "a branch named polecat") || c.Mend != "git branch -m polecat NEW-NAME" {
		t.Errorf("%+v", c)
	}
	f.must(c.Pause(t.Context(), f.Rig))
	p, err := f.Pauses.Get(string(c.Scope))
	f.must(err)
	if Passes(t.Context(), f.Rig, &p) {
		t.Error("passes while the branch is there")
	}
	f.git("branch", "-m", "polecat", "mine")
	if !Passes(t.Context(), f.Rig, &p) {
		t.Error("does not pass after the branch was renamed")
	}
}

// A read-only file system and a full one are reported.
func TestDisk(t *testing.T) {
	f := newFixture(t)
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		f.must(os.Chmod(f.CommonDir(), 0o500))
		t.Cleanup(func() { _ = os.Chmod(f.CommonDir(), 0o700) })
		f.wants(ReadOnly, f.CommonDir())
		return
	}
	mounted(f)
}

func (f *fixture) CommonDir() string { return filepath.Join(f.Dir, ".git") }
