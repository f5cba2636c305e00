package execute

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/environment"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/prompt"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/retire"
)

// worker is the job of one session.
type worker struct {
	// job is nil for one that an earlier process left.
	job        *process.Job
	assignment state.AssignmentID
	bead       state.BeadID
	convoy     state.ConvoyID
	session    state.SessionID
	startedAt  state.Time
	preset     agentcli.Preset
	talk       *talk
	// attended: a person works in its place, at a terminal.
	attended bool
	// stall is the preset's own threshold, or 0.
	stall time.Duration
	log   string
	// What was seen at the last look, and when anything last grew.
	lookedAt     state.Time
	bytes        int64
	cpu          time.Duration
	lastProgress state.Time
	// quiet is for how long it was seen to do nothing while its client waits for its service.
	quiet time.Duration
	// tryingSince is when its client began to try again what fails, zero while it works.
	tryingSince state.Time
	spent       ledger
	// exit is how it ended, and when, once it has.
	exit    *polecat.Exit
	endedAt state.Time
	// stopTimer ends a worker that has reported and does not go, or is nil.
	stopTimer *time.Timer
}

// work is what the worker works on, for events.
func (w *worker) work() event.Work {
	return event.Work{Bead: w.bead, Assignment: w.assignment, Session: w.session}
}

func (w *worker) ended() bool {
	if w.job == nil {
		return true
	}
	select {
	case <-w.job.Done():
		return true
	default:
		return false
	}
}

func workerLog(s state.SessionID) state.Path { return rig.Transcript(s) }
func promptFile(s state.SessionID) state.Path {
	return state.RunDir.Join("prompts", string(s)+".txt")
}

// startFailure is what ends an attempt before its worker runs.
type startFailure struct {
	what string
	err  error
	// kind is that of the fault, unless err says more.
	kind fault.Kind
}

func (e *startFailure) Error() string { return e.what + ": " + e.err.Error() }
func (e *startFailure) Unwrap() error { return e.err }

// start begins the work. What can't be started is a failed attempt with its
// reason, and not tried again and again; a lock that is not to be had, and the
// end of this process, are neither.
func (p *Polecat) start(ctx context.Context, item hook.WorkItem) error {
	err := p.tryStart(ctx, item)
	var failure *startFailure
	if !errors.As(err, &failure) || ctx.Err() != nil || errors.Is(err, state.ErrLockTimeout) {
		return err
	}
	p.Say("%s: %s can't be started: %v", p.ID, item.BeadID, err)
	return p.publishStartFailure(ctx, item, failure)
}

// publishStartFailure ends an attempt whose worker could not be started.
func (p *Polecat) publishStartFailure(ctx context.Context, item hook.WorkItem, failure *startFailure) error {
	rec := retire.Record{AssignmentID: item.AssignmentID, AgentID: p.ID, Session: item.Session, Outcome: retire.Fail,
		Reason: failure.Error(), Fault: fault.OfError(failure, failure.kind)}
	var start *process.StartError
	switch {
	case errors.As(failure, &start):
		rec.Fault = fault.New(start.Fault.Kind, rec.Reason)
	case rec.Fault.Kind == fault.WorktreeFailed:
		rec.Fault = fault.New(p.whyNoWorktree(), rec.Reason)
	}
	if k := rec.Fault.Kind; k == fault.DiskFull || k == fault.NoPermission {
		rec.Reason = k.Phrase() + ": " + rec.Reason
		rec.Fault = fault.New(k, rec.Reason)
	}
	_, _, err := carry.Publish(ctx, p.Rig, rec)
	return err
}

// whyNoWorktree is the kind of fault that keeps git from making a worktree: git does not
// always say, so the folders that it writes to are looked at.
func (p *Polecat) whyNoWorktree() fault.Kind {
	for _, dir := range p.writtenTo() {
		if full(dir) {
			return fault.DiskFull
		}
		if err := unix.Access(dir, unix.W_OK); errors.Is(err, unix.EACCES) || errors.Is(err, unix.EROFS) {
			return fault.NoPermission
		}
	}
	return fault.WorktreeFailed
}

// writtenTo are the folders on whose file systems a worker needs room.
func (p *Polecat) writtenTo() []string {
	return []string{p.Rig.Tree.Abs(state.WorktreeDir), p.Rig.Git.CommonDir()}
}

// full reports whether the file system of a folder has almost no room left.
func full(dir string) bool {
	const room = 1 << 20
	d := environment.DiskOf(dir)
	return d.Total > 0 && d.Free < room
}

func (p *Polecat) tryStart(ctx context.Context, item hook.WorkItem) error {
	b, err := p.Rig.Beads.By(p.ID, "").Update(ctx, string(item.BeadID), func(b *bead.Bead) error { return flow.BeginWork(b, item.AssignmentID, p.Now()) })
	if err != nil {
		return err
	}
	if p.beside {
		return p.give(ctx, &b, item)
	}
	target, err := p.prepareWorktree(ctx, &b, item)
	if err != nil {
		return err
	}
	if err := p.furnish(ctx, item); err != nil {
		return err
	}
	return p.launch(ctx, &b, item, target)
}

// furnish makes the worktree ready, which may take minutes. Meanwhile the hook is touched; an assignment that was taken away
// refuses that, and its setup ends.
func (p *Polecat) furnish(ctx context.Context, item hook.WorkItem) error {
	s := &Site{Rig: p.Rig, ID: p.ID, Dir: p.Rig.Worktree(p.ID), Jobs: p.jobs, Say: p.Say, Wanted: func(ctx context.Context) error {
		return p.touch(ctx, polecat.Touch{Assignment: item.AssignmentID, Session: item.Session})
	}}
	return s.Furnish(ctx)
}

// prepareWorktree makes the worktree ready and returns the target branch. What
// another assignment left there is saved first, under its own name.
func (p *Polecat) prepareWorktree(ctx context.Context, b *bead.Bead, item hook.WorkItem) (git.Branch, error) {
	lock, err := p.Rig.Tree.Lock(ctx, state.LockGit, "worktrees")
	if err != nil {
		return "", err
	}
	defer lock.Unlock()
	branch, err := git.ParseBranch(b.Branch)
	if err != nil {
		return "", &startFailure{"branch", err, fault.WorktreeFailed}
	}
	target, base, err := carry.TargetTip(ctx, p.Rig)
	if err != nil {
		kind := fault.WorktreeFailed
		if errors.Is(err, state.ErrNotFound) {
			kind = fault.TargetGone
		}
		return "", &startFailure{"nothing to work on", err, kind}
	}
	p.keepObjects(ctx, base)
	if err := p.makeReady(ctx, b.ID, branch, base); err != nil {
		return "", err
	}
	before, _ := carry.ReadWorktree(p.Rig, p.ID)
	err = carry.WriteWorktree(p.Rig, carry.Worktree{AgentID: p.ID, AssignmentID: item.AssignmentID, BeadID: b.ID,
		Session: item.Session, Base: base, Branch: b.Branch, Remade: toldOf(&before, &item)})
	if err != nil {
		return "", &startFailure{"worktree", err, fault.WorktreeFailed}
	}
	return target, nil
}

// makeReady puts the worktree on a fresh branch, once nothing in it can be lost.
func (p *Polecat) makeReady(ctx context.Context, id state.BeadID, branch git.Branch, base git.Hash) error {
	path := p.Rig.Worktree(p.ID)
	if _, used := carry.ReadWorktree(p.Rig, p.ID); !used {
		if p.Rig.Git.PrepareIdle(ctx, path, branch, base) {
			return nil
		}
	}
	if _, err := carry.SaveWork(ctx, p.Rig, p.ID, "Work found in the worktree of "+string(p.ID)+" before "+string(id)); err != nil {
		return &startFailure{"save what is in the worktree", err, fault.WorktreeFailed}
	}
	if err := p.Rig.Tree.MkdirAll(state.WorktreeDir); err != nil {
		return &startFailure{"worktree", err, fault.WorktreeFailed}
	}
	if err := p.Rig.Git.PrepareWorktree(ctx, path, branch, base); err != nil {
		return &startFailure{"worktree", err, fault.WorktreeFailed}
	}
	return nil
}

// preset is that of the worker of a bead.
func (p *Polecat) preset(b *bead.Bead) (agentcli.Preset, error) {
	setting := b.Worker
	if setting == "" {
		setting = p.Rig.Def.Worker.Default
	}
	preset, err := agentcli.ResolveWorker(setting, clients.PresetsOf(p.Rig.Def))
	if err != nil {
		return preset, &startFailure{"worker " + setting, err, fault.BadWorker}
	}
	return preset, nil
}

// launch starts the worker's command under its supervisor.
func (p *Polecat) launch(ctx context.Context, b *bead.Bead, item hook.WorkItem, target git.Branch) error {
	preset, err := p.preset(b)
	if err != nil {
		return err
	}
	told := prompt.Gather(p.Rig, p.ID, *b, string(target))
	told.Boxed = inSandbox(p.Rig)
	w := &worker{assignment: item.AssignmentID, bead: b.ID, convoy: b.ConvoyID, session: item.Session, preset: preset, talk: newTalk(clients.Of(preset))}
	if err := p.run(ctx, w, item, string(prompt.Worker(told)), b.Description+"\n"); err != nil {
		return err
	}
	p.tell(event.WorkerStarted(p.ID, w.work(), preset.Name+": "+strings.Join(preset.Command, " ")))
	for _, n := range told.MailInPrompt() {
		p.tell(event.MailInjected(event.Reading{Reader: p.ID, Owner: p.ID, Name: string(n), How: "in the prompt of " + preset.Name, Work: w.work()}))
	}
	p.Say("%s: working on %s: %s", p.ID, b.ID, b.Title)
	return nil
}

// run starts a worker's command, for the first time or again, with what it is told.
func (p *Polecat) run(ctx context.Context, w *worker, item hook.WorkItem, text, script string) error {
	name := "worker " + w.preset.Name
	run, err := agentcli.Build(w.preset, agentcli.PromptInput{Prompt: text, Script: script,
		File: p.Rig.Tree.Abs(promptFile(item.Session)), Permission: p.Rig.Def.Worker.Permissions})
	if err != nil {
		return &startFailure{name, err, fault.BadWorker}
	}
	spec, err := p.spec(ctx, w, run, item)
	if err != nil {
		return &startFailure{name, err, fault.WorktreeFailed}
	}
	p.noteRepository(ctx)
	job, err := p.startUnlessLent(ctx, spec)
	if errors.Is(err, state.ErrConflict) || errors.Is(err, state.ErrLockTimeout) {
		return err
	}
	if err != nil {
		return &startFailure{name, err, fault.WorktreeFailed}
	}
	now := p.Now()
	w.job, w.startedAt, w.lookedAt, w.lastProgress, w.stall, w.log = job, now, now, now, run.StallDetection, spec.Log
	w.spent.upTo = now
	p.worker = w
	p.account(ctx, w, now, true)
	go func() {
		<-job.Done()
		select {
		case p.news <- struct{}{}:
		default:
		}
	}()
	return nil
}

// forgetWorker drops the worker that is retired, and its prompt.
func (p *Polecat) forgetWorker() {
	p.given = hook.WorkItem{}
	w := p.worker
	if w == nil {
		return
	}
	if w.stopTimer != nil {
		w.stopTimer.Stop()
	}
	p.worker = nil
	p.tellTotals(w)
	p.forgetSession(w.session)
}
