package execute

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// Refinery runs the refinery: it carries out what roles/refinery decides.
type Refinery struct {
	base
	state refinery.State
	// result is that of the last step, got that of the step that is being carried out.
	result, got refinery.Result
	// diverged is what the present step found of the target and the remote.
	diverged refinery.Divergence
	// deep: the mayor was told that the queue is too deep, and it has not shrunk yet.
	deep bool

	// jobs runs the test commands.
	jobs *process.Host
	test *testRun
	news chan struct{}

	// hooks is the folder of the checkout with the person's own hooks, or "".
	hooks string

	worktree string
	prepared bool // this process has made sure of the worktree
	// at is the commit that the worktree holds untouched, or "".
	at git.Hash
	// spent are landed requests whose branch is not needed any more.
	spent []mergequeue.Request
	// spentAt is when they were last looked at.
	spentAt time.Time
	// known is the last tip of the target that is known; zero until it was looked up.
	known knownTip
	// last is the landing that is guarded, or nil.
	last *landing
	// awaited are the beads of the first live request and of the stack, for Wants.
	awaited atomic.Value
}

// NewRefinery makes the refinery's runner.
func NewRefinery(a Agent) *Refinery {
	return &Refinery{base: newBase(a), news: make(chan struct{}, 1), worktree: a.Rig.Worktree(a.ID), jobs: process.NewHost(a.Self)}
}

// spentEvery is how often the branches of landed requests are looked at while
// others are landed.
const spentEvery = 2 * time.Second

// Recover ends the tests that an earlier process left running, and takes back what an
// interrupted fast-forward left in the person's checkout, before a stash of theirs can
// take it along. Requests left in merging need nothing more here: the first decision
// begins with them, and checking one out finishes it when its candidate has landed.
func (r *Refinery) Recover(ctx context.Context) error {
	if err := knowFirstTip(ctx, r.Rig, r.Now()); err != nil {
		return err
	}
	if err := r.killOrphans(ctx); err != nil {
		return err
	}
	r.state, r.deep = refinery.State{}, r.warnedOfDepth()
	if err := r.repairCheckouts(ctx); err != nil {
		return err
	}
	var err error
	if r.hooks, err = r.Rig.Git.HooksFolder(ctx); err != nil {
		return err
	}
	r.prewarmWorktree(ctx)
	return r.recallLanding()
}

// prewarmWorktree makes the worktree where there is none yet: when the first request is there, the polecats make theirs, one after
// the other. What keeps it from being made is told when it is needed.
func (r *Refinery) prewarmWorktree(ctx context.Context) {
	if _, err := os.Lstat(r.worktree); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if _, tip, err := carry.TargetTip(ctx, r.Rig); err == nil {
		_ = r.prepare(ctx, tip)
	}
}

// Folders are those whose changes wake the refinery.
func (r *Refinery) Folders() []state.Path {
	return []state.Path{mergequeue.Dir, bead.Dir, r.Rig.Mailbox(r.ID).Dir(), r.Rig.Slot(r.ID).Dir().Join("from")}
}

// Wants leaves out the beads whose turn has not come: they are read when it
// comes.
func (r *Refinery) Wants(file state.Path) bool {
	awaited, _ := r.awaited.Load().([]state.BeadID)
	id := state.BeadID(strings.TrimSuffix(file.Base(), ".json"))
	return file.Dir() != bead.Dir || slices.Contains(awaited, id)
}

// Wake signals that a test has ended.
func (r *Refinery) Wake() <-chan struct{} { return r.news }

// Close ends a running test. Its request stays in merging and is begun again by
// the next process.
func (r *Refinery) Close() {
	r.stopTest(closeGrace)
	r.jobs.Close()
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	if err := r.guard(ctx); err != nil {
		r.Say("%s: %v", r.ID, err)
	}
	r.deleteLandedBranches(ctx)
}

// Tick runs the one loop between what no decision asks for: what a test came to,
// the guard of the last landing, the branches of what landed.
func (r *Refinery) Tick(ctx context.Context) (Next, error) {
	r.collectTest()
	if err := r.guard(ctx); err != nil {
		return Next{}, err
	}
	next, err := tick(ctx, &r.base, r)
	if since := r.Now().Sub(r.spentAt); since >= spentEvery || since < 0 || r.state.Phase == refinery.Idle {
		r.deleteLandedBranches(ctx)
		next.After = r.after()
	}
	return next, err
}

func (r *Refinery) decide(f refinery.Facts) roles.Decision[refinery.State] {
	return refinery.Decide(r.state, f)
}

// adopt takes over the state, in which the last result is used up.
func (r *Refinery) adopt(next refinery.State) {
	r.state, r.result, r.got = next, r.got, refinery.Result{}
}

// after is the time until something is due that no file tells.
func (r *Refinery) after() time.Duration {
	var after time.Duration
	if at := r.state.WakeAt(); !at.IsZero() {
		after = max(time.Millisecond, at.Sub(r.Now().Time))
	}
	if r.last != nil && r.Now().Sub(r.last.at) < guardBusy && (after == 0 || after > guardEvery) {
		after = guardEvery
	}
	if len(r.spent) > 0 && (after == 0 || after > spentEvery) {
		after = spentEvery
	}
	return after
}

// fetch reads nudges, mail, the queue and its beads.
func (r *Refinery) fetch(ctx context.Context) (refinery.Facts, error) {
	f := refinery.Facts{Now: r.Now(), Self: r.ID, Session: r.Session, Deep: r.deep, Result: r.result, Beads: map[state.BeadID]bead.Bead{}}
	f.Policy = policy.Refinery(r.Rig.Def, r.Rig.Mayor())
	var err error
	if f.Nudges, err = r.inbox.nudges(); err != nil {
		return f, err
	}
	if f.Mail, err = r.inbox.mail(ctx, r.Rig.Mayor()); err != nil {
		return f, err
	}
	if f.Queue, _, err = r.Rig.Queue.Unfinished(); err != nil {
		return f, err
	}
	for i := range f.Queue {
		if err := r.fetchBead(&f, f.Queue[i].BeadID); err != nil {
			return f, err
		}
	}
	r.await(f.Queue)
	if f.Foreign, err = r.foreignTip(ctx, f.Queue); err != nil {
		return f, err
	}
	if r.state.Wait.Tip != "" {
		f.Tip = r.presentTip(ctx)
	}
	return f, nil
}

// await remembers whose news matters.
func (r *Refinery) await(queue []mergequeue.Request) {
	stack := r.state.Work.Stack.Requests()
	var awaited []state.BeadID
	for i := range queue {
		if i == 0 || slices.Contains(stack, queue[i].ID) {
			awaited = append(awaited, queue[i].BeadID)
		}
	}
	r.awaited.Store(awaited)
}

// fetchBead tells a bead that does not exist from one that can't be read: the
// request of the one is over, that of the other waits.
func (r *Refinery) fetchBead(f *refinery.Facts, id state.BeadID) error {
	b, err := r.Rig.Beads.GetCached(string(id))
	switch {
	case err == nil:
		f.Beads[id] = b
	case errors.Is(err, state.ErrNotFound):
	case errors.Is(err, state.ErrCorrupt):
		if f.Unreadable == nil {
			f.Unreadable = map[state.BeadID]string{}
		}
		f.Unreadable[id] = err.Error()
	default:
		return err
	}
	return nil
}

// presentTip is the target's tip, or "" when it can't be had now.
func (r *Refinery) presentTip(ctx context.Context) string {
	target, err := r.Rig.Target(ctx)
	if err != nil {
		return ""
	}
	tip, _, err := r.Rig.Git.ResolveRef(ctx, target.Ref())
	if err != nil {
		return ""
	}
	return string(tip)
}

// deleteLandedBranches takes away the branches of landed requests, once no hook names their assignment any more: until then mayor
// and polecat look at them. Nobody waits for it, so one process does it for all that landed in a while.
func (r *Refinery) deleteLandedBranches(ctx context.Context) {
	if len(r.spent) == 0 {
		return
	}
	r.spentAt = r.Now().Time
	var left, over []mergequeue.Request
	for _, q := range r.spent {
		if h, err := r.Rig.Hooks.Get(string(q.AgentID)); err == nil && h.Assignment() == q.AssignmentID {
			left = append(left, q)
		} else {
			over = append(over, q)
		}
	}
	r.spent = left
	if r.dropBranches(ctx, over) == nil {
		return
	}
	for _, q := range over { // one of them was in the way of the others
		if err := r.dropBranches(ctx, []mergequeue.Request{q}); errors.Is(err, git.ErrBranchInUse) {
			r.spent = append(r.spent, q)
		} else if err != nil && !errors.Is(err, git.ErrMoved) && ctx.Err() == nil { // moved: somebody went on with it, it is theirs
			r.warn(&q, "the branch of a landed request was left: "+err.Error())
		}
	}
}

// dropBranches deletes landed branches, all or none. Where the rebase made other commits of one, its own stay reachable.
func (r *Refinery) dropBranches(ctx context.Context, landed []mergequeue.Request) error {
	var unneeded []git.BranchDeletion
	for _, q := range landed {
		source, err := git.ParseBranch(q.SourceBranch)
		if err != nil || !strings.HasPrefix(q.SourceBranch, "polecat/") {
			continue // not a branch of the rig's own
		}
		head, err := git.ParseHash(q.Head)
		if err != nil {
			return err
		}
		u := git.BranchDeletion{Branch: source, Holds: head}
		if q.Candidate != q.Head {
			u.Keep = git.Ref("refs/chipset/landed/" + string(q.ID))
		}
		unneeded = append(unneeded, u)
	}
	return r.Rig.Git.DeleteBranches(ctx, unneeded...)
}

func (r *Refinery) killOrphans(ctx context.Context) error {
	dir := r.Rig.Tree.Abs(testRecords)
	files, err := r.Rig.Tree.List(testRecords)
	if err != nil {
		return err
	}
	var open []process.Exit
	for _, f := range files {
		if exit, ok, err := process.ReadExit(filepath.Join(dir, f.Name())); err == nil && ok && !exit.Done {
			open = append(open, exit)
		}
	}
	mine := func(env map[string]string) bool {
		return env[process.EnvSession] != "" && env["CHIPSET_AGENT"] == string(r.ID) && env["CHIPSET_DIR"] == r.Rig.Dir
	}
	if _, err := process.KillOrphans(ctx, mine, time.Second, open...); err != nil {
		return fmt.Errorf("%s: end an earlier test: %w", r.ID, err)
	}
	for _, f := range files {
		id := strings.TrimSuffix(f.Name(), ".json")
		if err := errors.Join(r.Rig.Tree.Remove(testRecords.Join(f.Name())), removeTemp(id)); err != nil {
			return err
		}
	}
	return nil
}
