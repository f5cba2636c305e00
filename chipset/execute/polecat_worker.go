package execute

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/environment"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/process/broker"
	"github.com/gastown-chipset/chipset/chipset/prompt"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/wording"
)

// worker is the job of one session.
type worker struct {
	// job is nil for one that an earlier process left.
	job        *process.Job
	assignment state.AssignmentID
	bead       state.BeadID
	session    state.SessionID
	startedAt  state.Time
	preset     agentcli.Preset
	talk       *talk
	// stall is the preset's own threshold, or 0.
	stall time.Duration
	log   string
	// What was seen at the last look, and when anything last grew.
	lookedAt     state.Time
	bytes        int64
	cpu          time.Duration
	lastProgress state.Time
	// tryingSince is when its client began to try again what fails, zero while it works.
	tryingSince state.Time
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
	b, err := p.Rig.Beads.By(p.ID, "").Update(ctx, string(item.BeadID), func(b *bead.Bead) error {
		if b.CheckAssignment(item.AssignmentID, bead.InProgress) == nil {
			return state.ErrUnchanged
		}
		if err := b.CheckAssignment(item.AssignmentID, bead.Hooked); err != nil {
			return err
		}
		return b.Become(bead.InProgress, "", p.Now())
	})
	if err != nil {
		return err
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

// furnish makes the worktree ready, which may take minutes: meanwhile the hook is touched, and an assignment that is
// taken away ends it.
func (p *Polecat) furnish(ctx context.Context, item hook.WorkItem) error {
	s := &Site{Rig: p.Rig, ID: p.ID, Dir: p.Rig.Worktree(p.ID), Jobs: p.jobs, Say: p.Say, Wanted: func(ctx context.Context) error {
		h, err := p.Rig.Hooks.Get(string(p.ID))
		if err == nil && h.Assignment() != item.AssignmentID {
			return state.Conflictf("the setup for "+string(item.BeadID), "its assignment was taken away")
		}
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
	if err := p.makeReady(ctx, b.ID, branch, base); err != nil {
		return "", err
	}
	err = carry.WriteWorktree(p.Rig, carry.Worktree{AgentID: p.ID, AssignmentID: item.AssignmentID, BeadID: b.ID,
		Session: item.Session, Base: base, Branch: b.Branch})
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
	w := &worker{assignment: item.AssignmentID, bead: b.ID, session: item.Session, preset: preset, talk: newTalk(clients.Of(preset))}
	if err := p.run(ctx, w, item, string(prompt.Worker(told)), b.Description+"\n"); err != nil {
		return err
	}
	p.tell(event.WorkerStarted(p.ID, w.work(), preset.Name+": "+strings.Join(preset.Command, " ")))
	for _, n := range told.MailInPrompt() {
		p.tell(event.MailInjected(event.Reading{Reader: p.ID, Owner: p.ID, Name: string(n), How: "in the prompt of " + preset.Name, Work: w.work()}))
	}
	p.Say("%s: works on %s: %s", p.ID, b.ID, b.Title)
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
	job, err := p.jobs.Start(ctx, spec)
	if err != nil {
		return &startFailure{name, err, fault.WorktreeFailed}
	}
	now := p.Now()
	w.job, w.startedAt, w.lookedAt, w.lastProgress, w.stall, w.log = job, now, now, now, run.StallDetection, spec.Log
	p.worker = w
	go func() {
		<-job.Done()
		select {
		case p.news <- struct{}{}:
		default:
		}
	}()
	return nil
}

// spec makes the folders that the supervisor expects, writes the prompt, and
// says how the command is run.
func (p *Polecat) spec(ctx context.Context, w *worker, run agentcli.Invocation, item hook.WorkItem) (process.Spec, error) {
	record, log := rig.ExitRecord(item.Session), workerLog(item.Session)
	for _, dir := range []state.Path{record.Dir(), log.Dir()} {
		if err := p.Rig.Tree.MkdirAll(dir); err != nil {
			return process.Spec{}, err
		}
	}
	if run.File != "" {
		if err := p.Rig.Tree.Replace(promptFile(item.Session), []byte(run.Content)); err != nil {
			return process.Spec{}, err
		}
	}
	identity, err := p.Rig.Git.IdentityEnv(ctx, string(p.ID))
	if err != nil {
		return process.Spec{}, err
	}
	folder, err := broker.Folder()
	if err != nil {
		return process.Spec{}, err
	}
	address := broker.NewAddress(folder).String()
	who := append(p.identity(item), broker.EnvAddress+"="+address)
	kit, err := p.equip(w, run.Argv, item, who)
	if err != nil {
		return process.Spec{}, err
	}
	client := clients.Of(w.preset)
	show := append(linked(p.Rig), p.Rig.Tree.Abs(promptFile(item.Session)))
	for name := range kit.Files {
		show = append(show, p.Rig.Tree.Abs(clientFile(item.Session, name)))
	}
	preset := append(kit.Env, run.Env...)
	box, moved, err := p.confineWorker(&client, item.Session, show, preset)
	if err != nil {
		return process.Spec{}, err
	}
	limits := p.Rig.Def.Limits
	env := p.environment(surroundings{bin: p.binDir(), identity: identity, preset: append(preset, moved...),
		inherited: variables(p.Rig, ownEnvironment(), client.Keys)}, who)
	return process.Spec{ID: string(item.Session), Argv: kit.Argv, Dir: p.Rig.Worktree(p.ID), Env: env, Sandbox: box,
		Stdin: run.Stdin, Log: p.Rig.Tree.Abs(log), Record: p.Rig.Tree.Abs(record), Timeout: run.Timeout, Grace: p.Rig.Def.Worker.Grace,
		MaxDisk: limits.Disk, MaxLog: limits.Log,
		Settle: true, Broker: &process.Broker{Address: address, Dir: p.Rig.Dir, Env: ownEnvironment(), MaxCalls: limits.Commands}}, nil
}

// binDir is a folder in which "chipset" is this very binary, whatever its file
// is called and whatever else lies beside it.
func (p *Polecat) binDir() string {
	link := state.RunDir.Join("bin", "chipset")
	if err := p.Rig.Tree.Symlink(link, p.Self); err != nil {
		p.Say("%s: %v", p.ID, err)
		return filepath.Dir(p.Self)
	}
	return p.Rig.Tree.Abs(link.Dir())
}

// ownEnvironment is that of this process without what would lead git or another
// chipset astray.
func ownEnvironment() []string {
	return slices.DeleteFunc(clients.Inherit(git.Environment(os.Environ())), func(entry string) bool {
		return strings.HasPrefix(entry, "CHIPSET_")
	})
}

// surroundings are what a worker's environment is made of, apart from who it is.
type surroundings struct {
	// bin is the folder with its chipset.
	bin string
	// inherited is what it may have of this process's own environment.
	inherited, identity, preset []string
}

// environment is the worker's: what it inherits, then the preset's, then who it is. Each name stands once, because programs differ in which of two they believe.
func (p *Polecat) environment(from surroundings, who []string) []string {
	var env []string
	set := func(entries ...string) {
		for _, entry := range entries {
			name, _, _ := strings.Cut(entry, "=")
			env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
			env = append(env, entry)
		}
	}
	path := ""
	for _, entry := range from.inherited {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
		set(entry)
	}
	set(from.identity...)
	set(from.preset...)
	for _, entry := range from.preset {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	// The worker's chipset is this very binary.
	set("PATH=" + strings.TrimSuffix(from.bin+string(os.PathListSeparator)+path, string(os.PathListSeparator)))
	set(who...)
	return env
}

// forgetWorker drops the worker that is retired, and its prompt.
func (p *Polecat) forgetWorker() {
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

const (
	// maxLook bounds the time between two looks at a running worker.
	maxLook = time.Second
	minLook = 20 * time.Millisecond
	// busyShare is the share of one processor above which a worker counts as
	// busy: an idle client that polls stays below it.
	busyShare = 20
	// cpuTick is the resolution of the kernel's account.
	cpuTick = 10 * time.Millisecond
)

func (p *Polecat) lookInterval() time.Duration { return max(min(maxLook, p.stall()/4), minLook) }

// lookAtWorker tells how the worker stands and whether it got on since the
// last look.
func (p *Polecat) lookAtWorker(ctx context.Context, now state.Time) (polecat.Worker, bool) {
	w := p.worker
	if w == nil {
		return polecat.Worker{Status: polecat.WorkerNone}, false
	}
	facts := polecat.Worker{Status: polecat.WorkerRunning, Assignment: w.assignment, Bead: w.bead, Session: w.session, StartedAt: w.startedAt,
		Resumes: w.preset.MaxResumes() - w.talk.resumed, Inherited: w.job == nil}
	if loadable := clients.Of(w.preset).Loadable; loadable != nil {
		facts.Loadable = state.At(loadable(w.startedAt.Time))
	}
	progress := false
	if w.ended() {
		if w.exit == nil {
			p.describeExit(ctx, w, w.job.Exit())
			p.tellExit(w)
		}
		facts.Status, facts.Exit = polecat.WorkerExited, *w.exit
	} else {
		if progress = w.look(now, p.lookInterval()); progress {
			w.talk.readMore(w.log, math.MaxInt64)
			p.show(w, now, false)
		}
	}
	if facts.Trying = w.talk.reader.Trying(); facts.Trying.IsZero() {
		w.tryingSince = state.Time{}
	} else if w.tryingSince.IsZero() {
		w.tryingSince = now
	}
	facts.LastProgress, facts.CPU, facts.TryingSince = w.lastProgress, w.cpu, w.tryingSince
	return facts, progress
}

// look compares output and processor time with the last look; between two
// looks too close to each other nothing can be told.
func (w *worker) look(now state.Time, interval time.Duration) bool {
	elapsed := now.Sub(w.lookedAt.Time)
	if elapsed >= 0 && elapsed < interval {
		return false
	}
	bytes, cpu, err := w.job.Activity()
	if err != nil {
		return false
	}
	busy := max(min(elapsed, maxLook)/busyShare, cpuTick)
	progress := bytes > w.bytes || cpu-w.cpu >= busy
	w.lookedAt, w.bytes, w.cpu = now, bytes, cpu
	if progress {
		w.lastProgress = now
	}
	return progress
}

// describeExit says how the worker ended.
func (p *Polecat) describeExit(ctx context.Context, w *worker, x process.Exit) {
	exit := exitOf(x, w.log)
	exit.Script = w.preset.Prompt == agentcli.PromptScript
	w.talk.readAll(w.log)
	p.show(w, p.Now(), true)
	p.judge(ctx, &exit, w.talk.reader.End(exit.Code, x.EndedAt.Local()), w.talk.clientSession())
	if outcome, reason := exit.Outcome(); outcome == retire.Fail && exit.Fault.IsZero() && slices.ContainsFunc(p.writtenTo(), full) {
		// Whatever the worker says about it: it could not have worked.
		exit.Fault = fault.New(fault.DiskFull, fault.DiskFull.Phrase()+": "+wording.FirstLine(reason))
	}
	w.exit, w.endedAt = &exit, x.EndedAt
	p.noteRepository(ctx)
}

// tellExit tells the story of the worker's end.
func (p *Polecat) tellExit(w *worker) {
	outcome, reason := w.exit.Outcome()
	switch {
	case w.exit.Lost:
		reason = "ended from outside"
	case outcome == retire.Done:
		reason = "exit code 0"
	}
	p.tell(event.WorkerExited(p.ID, w.work(), reason))
	if n := w.job.Exit().Refused; n > 0 {
		p.tell(event.Warning(p.ID, w.work(), string(p.ID), fmt.Sprintf("%d commands of the worker were refused: it had run as many as limits.commands allows", n)))
	}
}

// exitOf translates an exit record for the role.
func exitOf(x process.Exit, log string) polecat.Exit {
	exit := polecat.Exit{Code: x.Code, Signal: x.Signal, TimedOut: x.TimedOut, Lost: x.Stopped || x.Orphaned || x.Code < 0,
		Ran: x.EndedAt.Sub(x.StartedAt.Time), Tail: logTail(log), Fault: x.Fault}
	if x.OverDisk {
		exit.TimedOut, exit.Exceeded = true, "its worktree and temporary files take more than limits.disk"
	}
	if x.PID == 0 && (x.NotFound || x.NotExecutable) {
		exit.NotStarted = x.Error
	}
	return exit
}

// Limits of what a reason quotes of a transcript.
const (
	maxTailBytes = 2 << 10
	maxTailLines = 20
)

// logTail is the end of a transcript, or "" when it can't be read.
func logTail(path string) string {
	f, info, err := openLog(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	data := make([]byte, min(info.Size(), maxTailBytes))
	n, err := f.ReadAt(data, info.Size()-int64(len(data)))
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(data[:n]), "\uFFFD")), "\n")
	if len(lines) > maxTailLines {
		lines = lines[len(lines)-maxTailLines:]
	}
	return strings.Join(lines, "\n")
}
