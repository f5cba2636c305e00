package execute

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/backlog"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
)

// Polecat runs one polecat: it carries out what roles/polecat decides.
type Polecat struct {
	base
	state polecat.State
	// status is what this process last made the agent's identity say.
	status agent.Status
	// ended are the attempts that this process retired and has not told the mayor of.
	ended []retire.Record
	// worker is that of this process, running or exited and not yet retired.
	worker *worker
	news   chan struct{}
	// jobs runs the workers.
	jobs *process.Host
	// inHand is the assignment on the hook, for Wants.
	inHand atomic.Value
	// beside is true for the agent of a person's own sessions, and given is then what the session was given
	// to work on, zero without anything.
	beside bool
	given  hook.WorkItem
}

// NewPolecat makes the runner of a polecat, or of the agent of a person's own sessions.
func NewPolecat(a Agent) *Polecat {
	return &Polecat{base: newBase(a), news: make(chan struct{}, 1), jobs: process.NewHost(a.Self), beside: isSession(&a)}
}

// Folders are those whose changes wake the polecat.
func (p *Polecat) Folders() []state.Path {
	folders := []state.Path{hook.Dir, retire.Dir, pause.Dir, p.Rig.Mailbox(p.ID).Dir(), p.Rig.Slot(p.ID).Dir().Join("from")}
	if p.pulls() {
		folders = append(folders, bead.Dir)
	}
	return folders
}

// Wants leaves out the hooks and the ends of attempts of the other polecats.
func (p *Polecat) Wants(file state.Path) bool {
	switch file.Dir() {
	case hook.Dir:
		return file.Base() == string(p.ID)+".json"
	case retire.Dir:
		inHand, _ := p.inHand.Load().(state.AssignmentID)
		return file.Base() == string(inHand)+".json"
	default:
		return true
	}
}

// Wake signals that the worker has ended.
func (p *Polecat) Wake() <-chan struct{} { return p.news }

// Close ends the worker. Its work stays in the worktree; the next process goes on with its
// session, or saves the work and begins the assignment again.
func (p *Polecat) Close() {
	defer p.jobs.Close()
	if p.worker == nil || p.worker.job == nil {
		return
	}
	grace := p.Rig.Def.Worker.Grace
	p.worker.job.Stop(grace)
	timer := time.NewTimer(grace + time.Second)
	defer timer.Stop()
	select {
	case <-p.worker.job.Done():
	case <-timer.C: // the lifeline ends with this process, and the worker with it
	}
}

// Tick runs the one loop.
func (p *Polecat) Tick(ctx context.Context) (Next, error) {
	return tick(git.LowPriority(ctx), &p.base, p)
}

func (p *Polecat) decide(f polecat.Facts) roles.Decision[polecat.State] {
	return polecat.Decide(p.state, f)
}

func (p *Polecat) adopt(next polecat.State) { p.state = next }

func (p *Polecat) after() time.Duration {
	switch {
	case p.worker == nil && p.given.AssignmentID == "" && p.state.Phase == polecat.Executing:
		return time.Millisecond // it could not be started, and its attempt is to be retired
	case p.worker != nil && !p.worker.ended(), p.state.Phase == polecat.Lent:
		return p.lookInterval()
	}
	return 0
}

// fetch reads what concerns this polecat. Mail comes before the hook: a hook
// is set before its mail is sent, so an assignment that the hook does not name
// is stale and not merely newer than the hook that was read.
func (p *Polecat) fetch(ctx context.Context) (polecat.Facts, error) {
	now := p.Now()
	f := polecat.Facts{Now: now, Self: p.ID, Mayor: p.Rig.Mayor(), Process: p.Session, Fresh: state.NewSessionID(), Status: p.status, Ended: p.ended, Beside: p.beside,
		Policy: policy.Polecat(p.Rig.Def, p.stall())}
	var err error
	if f.Nudges, err = p.inbox.nudges(); err != nil {
		return f, err
	}
	if f.Mail, err = p.inbox.mail(ctx, f.Mayor); err != nil {
		return f, err
	}
	f.Worker, f.Progress = p.lookAtWorker(ctx, now)
	if err := p.fetchHook(&f); err != nil {
		return f, err
	}
	f.Lease = p.lease(f.Hook)
	if err := p.fetchRecord(&f); err != nil || p.beside { // what a session asks, or costs, keeps it from nothing
		return f, err
	}
	if err := p.fetchAsked(&f); err != nil {
		return f, err
	}
	if err := p.fetchPauses(&f); err != nil {
		return f, err
	}
	f.Next, err = p.nextReady(&f)
	return f, err
}

// fetchAsked looks for questions of a worker that does not run any more.
func (p *Polecat) fetchAsked(f *polecat.Facts) error {
	if f.Hook == nil || f.Hook.Status != hook.Active || f.Record != nil || f.Worker.Status == polecat.WorkerRunning {
		return nil
	}
	asked, err := actor.Questions(p.Rig, p.ID, f.Hook.WorkItem)
	for _, q := range asked {
		if !q.Answered() {
			continue
		}
		f.Answered = f.Answered || q.Reply.Timestamp.After(f.Worker.StartedAt.Time)
		if w := p.worker; w != nil && q.Reply.Timestamp.After(w.endedAt.Time) {
			f.AnsweredLate = f.AnsweredLate || f.Worker.Exit.CanWait() || q.Awaited && f.Worker.Exit.Failed()
		}
	}
	open := actor.Unanswered(asked)
	if len(open) == 0 || err != nil {
		return err
	}
	for _, q := range open {
		f.Asked = append(f.Asked, q.Name)
		f.WaitedInVain = f.WaitedInVain || q.Awaited
	}
	unplanned := actor.CheckPlan(p.Rig, p.ID, f.Hook.Assignment())
	f.Unplanned = errors.Is(unplanned, actor.ErrNoPlan)
	return nil
}

func (p *Polecat) fetchHook(f *polecat.Facts) error {
	h, err := p.Rig.Hooks.Get(string(p.ID))
	switch {
	case errors.Is(err, state.ErrCorrupt), errors.Is(err, state.ErrNotFound):
		f.HookProblem = err.Error() // a registered agent without a hook counts as corrupt
		return nil
	case err != nil:
		return err
	}
	f.Hook = &h
	p.inHand.Store(h.Assignment())
	if h.WorkItem == nil {
		return nil
	}
	b, err := p.Rig.Beads.Get(string(h.WorkItem.BeadID))
	switch {
	case errors.Is(err, state.ErrCorrupt), errors.Is(err, state.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	f.Bead = &b
	return nil
}

// fetchRecord reads the retire record of what is in hand, the one that is not
// finished yet first.
func (p *Polecat) fetchRecord(f *polecat.Facts) error {
	hooked := state.AssignmentID("")
	if f.Hook != nil {
		hooked = f.Hook.Assignment()
	}
	for _, a := range []state.AssignmentID{p.state.Retiring, f.Worker.Assignment, hooked} {
		if a == "" {
			continue
		}
		rec, err := p.Rig.Retire.Get(string(a))
		switch {
		case err == nil:
			f.Record = &rec
			if !rec.Stage.Final() || a == f.Worker.Assignment || a == hooked {
				return nil
			}
			f.Record = nil
		case !errors.Is(err, state.ErrNotFound):
			return err
		}
	}
	return nil
}

func (p *Polecat) pulls() bool { return p.Rig.Def.Dispatch.Strategy == definition.StrategyAutoClaim }

// nextReady is the bead to claim in pull mode, unless as many are out as may be.
func (p *Polecat) nextReady(f *polecat.Facts) (state.BeadID, error) {
	if !p.pulls() || f.Hook == nil || f.Hook.Status != hook.Empty || p.worker != nil {
		return "", nil
	}
	beads, _, err := p.Rig.Beads.All()
	if err != nil {
		return "", err
	}
	ready := backlog.Ready(beads, f.Now)
	if out, err := actor.Out(p.Rig, beads); err != nil || out >= p.Rig.Def.Dispatch.MaxParallel {
		return "", err
	}
	paused, err := p.Rig.Pauses.InForce()
	if err != nil {
		return "", err
	}
	client := policy.Clients(p.Rig.Def)
	for _, b := range ready {
		if pause.Holding(paused, client(b.Worker), b) == nil {
			return b.ID, nil
		}
	}
	return "", nil
}

// tell tells the log of something that the polecat did itself; what changes a
// record is told by its store.
func (p *Polecat) tell(e event.Event) { p.Rig.Events.Tell(e) }

// stall is the threshold of the rig, or of the worker's preset.
func (p *Polecat) stall() time.Duration {
	if p.worker != nil && p.worker.stall > 0 {
		return p.worker.stall
	}
	return p.Rig.Def.GUPP.Thresholds.StallDetection
}

// retireDeps is what the done pipeline works with.
func (p *Polecat) retireDeps() carry.RetireDeps {
	d := carry.RetireDeps{Rig: p.Rig, Say: p.Say}
	if p.beside {
		d.TellSession = p.tellEnd
	}
	return d
}
