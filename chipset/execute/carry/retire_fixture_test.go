package carry

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/retire"
)

const alpha state.AgentID = "polecat-alpha"

const retireRig = `agents:
  topology: mayor-witness-polecat
  agents:
    - {name: mayor, role: mayor}
    - {name: witness, role: witness}
    - {name: polecat-pool, role: polecat, count: 1}
rig: {name: test-rig, bead_prefix: tt}
worker: {default: sh}
merge: {target: main, test: "true"}
`

// attempt is a rig with one attempt that is about to be retired.
type attempt struct {
	t    *testing.T
	dir  string
	rig  *rig.Rig
	bead state.BeadID
	as   state.AssignmentID
}

// newAttempt slings a bead and takes it to where its worker has ended.
func newAttempt(t *testing.T, change func(*bead.Bead)) *attempt {
	t.Helper()
	dir := gittest.Repo(t)
	var err error
	a := &attempt{t: t, dir: dir}
	a.git(dir, "config", "user.name", "t")
	a.git(dir, "config", "user.email", "t@example.com")
	a.write(".chipset/chipset.yaml", retireRig)
	a.rig, err = rig.Init(t.Context(), rig.InitOptions{Dir: dir, Clock: time.Now})
	a.must(err)
	b := bead.Bead{Title: "a task", CreatedBy: state.Human}
	if change != nil {
		change(&b)
	}
	b, err = a.rig.Beads.Add(b, "tt", a.now())
	a.must(err)
	rec, err := Sling(t.Context(), a.rig, b.ID, alpha, "mayor")
	a.must(err)
	a.bead, a.as = b.ID, rec.AssignmentID
	_, err = a.rig.Hooks.Activate(t.Context(), alpha, a.as, "ses-one", a.now())
	a.must(err)
	_, err = a.rig.Beads.Update(t.Context(), string(b.ID), func(b *bead.Bead) error { return b.Become(bead.InProgress, "", a.now()) })
	a.must(err)
	_, base, err := TargetTip(t.Context(), a.rig)
	a.must(err)
	a.must(a.rig.Git.PrepareWorktree(t.Context(), a.worktree(), git.Branch(rec.Branch), base))
	a.must(WriteWorktree(a.rig, Worktree{AgentID: alpha, AssignmentID: a.as, BeadID: b.ID, Session: "ses-one", Base: base, Branch: rec.Branch}))
	return a
}

func (a *attempt) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *attempt) now() state.Time  { return a.rig.Clock.Now() }
func (a *attempt) worktree() string { return a.rig.Worktree(alpha) }

func (a *attempt) git(dir string, args ...string) string {
	a.t.Helper()
	return gittest.Run(a.t, dir, args...)
}

func (a *attempt) write(name, text string) {
	a.t.Helper()
	dir := a.dir
	if a.rig != nil {
		dir = a.worktree()
	}
	gittest.Write(a.t, dir, name, text)
}

func (a *attempt) publish(outcome retire.Outcome, reason string) retire.Record {
	a.t.Helper()
	rec, won, err := Publish(a.t.Context(), a.rig, retire.Record{AssignmentID: a.as, AgentID: alpha, Session: "ses-one", Outcome: outcome, Reason: reason})
	if err != nil || !won {
		a.t.Fatalf("won %v, %v", won, err)
	}
	return rec
}

// reopen gives the rig as another process finds it.
func (a *attempt) reopen() {
	a.t.Helper()
	r, err := rig.Open(a.t.Context(), a.dir, time.Now)
	a.must(err)
	a.rig = r
}

// outcome is everything that a retired attempt leaves, without what differs
// from one run to the next by nature.
type outcome struct {
	Bead, Reason, Hook, Record, RecordReason, Salvage string
	Requests, ToMayor, ToWitness                      []string
	Landed, Saved, Branch                             string
	WorktreeClean                                     bool
}

func (a *attempt) outcome() outcome {
	a.t.Helper()
	b, err := a.rig.Beads.Get(string(a.bead))
	a.must(err)
	h, err := a.rig.Hooks.Get(string(alpha))
	a.must(err)
	rec, err := a.rig.Retire.Get(string(a.as))
	a.must(err)
	name := func(s string) string {
		return strings.NewReplacer(string(a.bead), "BEAD", string(a.as), "ASSIGNMENT").Replace(s)
	}
	o := outcome{Bead: string(b.Status), Reason: b.CloseReason, Hook: string(h.Status), Record: string(rec.Outcome) + " " + string(rec.Stage),
		RecordReason: rec.Reason, Salvage: name(rec.Salvage)}
	all, _, err := a.rig.Queue.Queue()
	a.must(err)
	for _, mr := range all {
		o.Requests = append(o.Requests, name(fmt.Sprintf("%s %s %d %s to %s", mr.ID, mr.Status, mr.Seq, mr.SourceBranch, mr.TargetBranch)))
		o.Landed = a.git(a.dir, "ls-tree", "-r", mr.Head)
		if a.git(a.dir, "rev-parse", mr.SourceBranch) != mr.Head {
			a.t.Errorf("the branch of %s is not at its head", mr.ID)
		}
	}
	letters := func(id state.AgentID) (lines []string) {
		entries, _, err := a.rig.Mailbox(id).List()
		a.must(err)
		for _, e := range entries {
			lines = append(lines, name(string(e.Type)+" "+e.ID+" "+e.Subject))
		}
		return lines
	}
	o.ToMayor, o.ToWitness = letters("mayor"), letters("witness")
	for ref := range strings.FieldsSeq(a.git(a.dir, "for-each-ref", "--format=%(refname)", "refs/chipset/salvage")) {
		o.Saved += name(ref) + "\n" + a.git(a.dir, "ls-tree", "-r", ref) + "\n"
	}
	_, used := ReadWorktree(a.rig, alpha)
	if _, err := os.Stat(a.worktree()); err != nil {
		o.WorktreeClean = !used
		return o
	}
	status := a.git(a.worktree(), "status", "--porcelain")
	o.WorktreeClean = status == "" && !used && a.git(a.worktree(), "rev-parse", "--abbrev-ref", "HEAD") == "HEAD"
	return o
}

// scene is one way for an attempt to end.
type scene struct {
	name    string
	outcome retire.Outcome
	reason  string
	change  func(*bead.Bead)
	// work is done in the worktree before the end, meanwhile right after the
	// record is published.
	work, meanwhile func(a *attempt)
	bead            bead.Status
	stage           retire.Stage
	// saved: the record names a ref that holds work which does not land.
	saved bool
	// thorough asks for a run of its own for every effect.
	thorough bool
}

func scenes() []scene {
	half := func(a *attempt) { a.write("half.txt", "half\n") }
	commit := func(a *attempt) {
		a.write("one.txt", "one\n")
		a.git(a.worktree(), "add", "one.txt")
		a.git(a.worktree(), "commit", "-qm", "one")
		a.write("two.txt", "two\n")
	}
	return []scene{
		{name: "done", outcome: retire.Done, work: commit, bead: bead.Done, stage: retire.Released, thorough: true},
		{name: "detached", outcome: retire.Done, bead: bead.Done, stage: retire.Released, work: func(a *attempt) {
			a.git(a.worktree(), "checkout", "-q", "--detach")
			commit(a)
		}},
		{name: "left its branch", outcome: retire.Done, bead: bead.Done, stage: retire.Released, work: func(a *attempt) {
			commit(a)
			a.git(a.worktree(), "add", "-A")
			a.git(a.worktree(), "commit", "-qm", "two")
			a.git(a.worktree(), "checkout", "-q", "--detach", "main")
		}},
		{name: "two lines of work", outcome: retire.Done, saved: true, bead: bead.Done, stage: retire.Released, work: func(a *attempt) {
			commit(a)
			a.git(a.worktree(), "checkout", "-q", "--detach", "main")
			a.write("three.txt", "three\n")
		}},
		{name: "no change", outcome: retire.Done, bead: bead.Failed, stage: retire.Released},
		{name: "empty", outcome: retire.Done, change: func(b *bead.Bead) { b.AllowEmpty = true }, bead: bead.Closed, stage: retire.Released},
		{name: "failed", outcome: retire.Fail, saved: true, reason: "no luck", work: half, bead: bead.Failed, stage: retire.Released},
		{name: "blocked", outcome: retire.Block, saved: true, reason: "which?", work: commit, bead: bead.Failed, stage: retire.Released},
		{name: "rebasing", outcome: retire.Done, bead: bead.Failed, stage: retire.Released, work: func(a *attempt) {
			commit(a)
			a.git(a.worktree(), "-c", "sequence.editor=sed -i s/^pick/edit/", "stash", "-qu")
			a.git(a.worktree(), "-c", "sequence.editor=sed -i s/^pick/edit/", "rebase", "-qi", "main")
		}},
		{name: "worktree gone", outcome: retire.Done, bead: bead.Failed, stage: retire.Released, meanwhile: func(a *attempt) {
			if err := os.RemoveAll(a.worktree()); err != nil {
				a.t.Fatal(err)
			}
		}},
		{name: "run emptied", outcome: retire.Done, work: commit, bead: bead.Done, stage: retire.Released, meanwhile: func(a *attempt) {
			if err := os.RemoveAll(filepath.Join(a.dir, ".chipset", "run")); err != nil {
				a.t.Fatal(err)
			}
		}},
		{name: "taken away", saved: true, thorough: true, outcome: retire.Done, work: commit, bead: bead.Open, stage: retire.Stale, meanwhile: func(a *attempt) {
			_, err := Unsling(a.t.Context(), a.rig, a.bead, "mayor")
			a.must(err)
		}},
	}
}

func (s *scene) play(t *testing.T) (*attempt, retire.Record) {
	t.Helper()
	a := newAttempt(t, s.change)
	if s.work != nil {
		s.work(a)
	}
	rec := a.publish(s.outcome, s.reason)
	if s.meanwhile != nil {
		s.meanwhile(a)
	}
	return a, rec
}
