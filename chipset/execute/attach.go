package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/retire"
)

// A session is taken over in these steps; each holds what the one before it says:
//
//	lease locked → lease on the hook → worker ended → client on the terminal → client ended → lease unlocked
//
// The lock is the lease: it ends with the process that holds it, in whatever way. Who starts a worker looks at it under
// the hook's lock, and who takes a session over writes the hook after taking it, so that only one of them runs.
// What is on the hook tells people, and tells the polecat that there is something to take back.

// probing is how long a lease is asked for: somebody who looks at it holds it for an instant.
const probing = 100 * time.Millisecond

// beginning is how long a worker may take to begin a session that somebody waits for.
const beginning = 30 * time.Second

// takeLease takes the agent's session into the hands of this process, until the lock is released or the process ends.
// Errors: state.ErrLockTimeout.
func (p *Polecat) takeLease(ctx context.Context) (*state.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, probing)
	defer cancel()
	return p.Rig.Tree.Lock(ctx, state.LockLease, string(p.ID))
}

// lease reports in whose hands the session is. The hook is nil where it can't be read.
func (p *Polecat) lease(h *hook.Hook) polecat.Lease {
	switch {
	case p.Rig.IsLent(p.ID):
		return polecat.LeaseHeld
	case h != nil && h.WorkItem != nil && h.WorkItem.Lease != nil:
		return polecat.LeaseLeft
	}
	return polecat.NoLease
}

// startUnlessLent starts a worker unless somebody has taken its session over since the decision: an ErrConflict.
func (p *Polecat) startUnlessLent(ctx context.Context, spec process.Spec) (*process.Job, error) {
	lock, err := p.Rig.Tree.Lock(ctx, state.LockHook, string(p.ID), hook.Dir)
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	if p.Rig.IsLent(p.ID) {
		return nil, state.Conflictf("session "+spec.ID, "is taken over by somebody else")
	}
	return p.jobs.Start(ctx, spec)
}

// takeBack makes a session that somebody had taken over the polecat's again. Nobody else can take it meanwhile.
func (p *Polecat) takeBack(ctx context.Context) error {
	lease, err := p.takeLease(ctx)
	if errors.Is(err, state.ErrLockTimeout) {
		return state.Conflictf("agent "+string(p.ID), "its session is taken over again")
	}
	if err != nil {
		return err
	}
	defer lease.Unlock()
	p.worker = nil
	p.jobs.Close() // a supervisor that is kept would be taken for one that was left
	p.jobs = process.NewHost(p.Self)
	if err := p.recover(ctx); err != nil {
		return err
	}
	if w := p.worker; w != nil && w.exit.EndedOutside() {
		w.exit.Attended = true // also where the worker was ended, and nobody came
	}
	_, err = p.Rig.Hooks.By(p.ID, "").Return(ctx, p.ID, p.Now())
	if errors.Is(err, state.ErrCorrupt) || errors.Is(err, state.ErrNotFound) {
		return nil // the next decision's
	}
	return err
}

// Attach takes the session over that a polecat works in, on a terminal, until the person leaves it, the context ends,
// or the assignment is taken away. The worker ends before that, and goes on
// with the same session afterwards. Errors: state.ErrConflict where that session can't be taken over.
func (p *Polecat) Attach(ctx context.Context, terminal *os.File) error {
	item, err := p.sessionBegun(ctx)
	if err != nil {
		return err
	}
	lease, err := p.takeLease(ctx)
	if errors.Is(err, state.ErrLockTimeout) {
		return p.taken()
	}
	if err != nil {
		return err
	}
	defer lease.Unlock()
	self := process.Self()
	_, err = p.Rig.Hooks.By(state.Human, fmt.Sprintf("pid %d", self.PID)).Lend(ctx, p.ID, item.AssignmentID, item.Session,
		hook.Lease{By: state.Human, Since: p.Now(), PID: self.PID, BootID: self.BootID, StartTime: self.StartTime})
	if err != nil {
		return err
	}
	w, err := p.workerEnded(ctx, item)
	if err != nil {
		return err
	}
	return p.attend(ctx, w, item, terminal)
}

// taken says who has the session.
func (p *Polecat) taken() error {
	h, err := p.Rig.Hooks.Get(string(p.ID))
	if err == nil && h.WorkItem != nil && h.WorkItem.Lease != nil {
		l := h.WorkItem.Lease
		return state.Conflictf("the session of "+string(p.ID), "%s has it since %s (pid %d)", l.By, l.Since, l.PID)
	}
	return state.Conflictf("the session of "+string(p.ID), "it is being taken over or back just now")
}

// sessionBegun returns what the polecat works on once its worker has begun a session, for which it waits a while: a client says
// which one that is only after its start.
func (p *Polecat) sessionBegun(ctx context.Context) (item hook.WorkItem, err error) {
	told := false
	err = actor.Wait(ctx, p.Rig, "attach", beginning, func() (bool, error) {
		if item, err = p.attachable(); err != nil {
			return false, err
		}
		if rec := agentcli.ReadProgress(p.Rig.Tree, item.Session); rec != nil && rec.ClientSession != "" {
			return true, nil
		}
		if x, found, err := p.Rig.WorkerExit(item.Session); err != nil || found && x.Done {
			return false, errors.Join(err, state.Conflictf("attach "+string(p.ID), "its worker ended before it began a session"))
		}
		if !told {
			p.Say("waiting for %s's session to begin", p.ID)
			told = true
		}
		return false, nil
	}, hook.Dir, retire.Dir, rig.WorkerDir, agentcli.ProgressDir)
	if errors.Is(err, actor.ErrTimeout) {
		err = state.Conflictf("attach "+string(p.ID), "its worker has not begun a session within %s", beginning)
	}
	return item, err
}

// attachable returns what the polecat works on, where a session of its worker could be taken over.
func (p *Polecat) attachable() (hook.WorkItem, error) {
	h, err := p.Rig.Hooks.Get(string(p.ID))
	if err != nil {
		return hook.WorkItem{}, err
	}
	refuse := func(format string, args ...any) (hook.WorkItem, error) {
		return hook.WorkItem{}, state.Conflictf("attach "+string(p.ID), format, args...)
	}
	if h.Status != hook.Active {
		return refuse("it works on nothing: its hook is %s", h.Status)
	}
	item := *h.WorkItem
	if rec, err := p.Rig.Retire.Get(string(item.AssignmentID)); err == nil {
		return refuse("the attempt at %s is over: %s", item.BeadID, rec.Outcome)
	}
	b, err := p.Rig.Beads.Get(string(item.BeadID))
	if err != nil {
		return item, err
	}
	preset, err := p.preset(&b)
	if err != nil {
		return item, err
	}
	c := clients.Of(preset)
	if c.Attended == nil {
		return refuse("its worker %s has no sessions that a person could take over", preset.Name)
	}
	return item, nil
}

// workerEnded waits until the worker of a session has ended, makes sure of it, and returns what it left.
func (p *Polecat) workerEnded(ctx context.Context, item hook.WorkItem) (*worker, error) {
	patience := p.Rig.Def.Worker.Grace + state.LockDeadline
	var exit process.Exit
	told := false
	err := actor.Wait(ctx, p.Rig, "attach", patience, func() (bool, error) {
		x, found, err := p.Rig.WorkerExit(item.Session)
		if exit = x; err != nil || !found || x.Done || !x.Alive() {
			return true, err
		}
		if !told {
			p.Say("%s: asking its worker to stop", p.ID)
			told = true
		}
		return false, nil
	}, rig.WorkerDir)
	if err != nil {
		return nil, err
	}
	if !exit.Done {
		if err := p.endOrphans(ctx); err != nil {
			return nil, err
		}
	}
	if err := p.takeOver(ctx, item, exit); err != nil {
		return nil, err
	}
	w := p.worker
	if w == nil || w.talk.clientSession() == "" {
		return nil, state.Conflictf("session "+string(item.Session), "it has no session to resume: the rig starts the work again")
	}
	whole, err := carry.WorktreeWhole(ctx, p.Rig, p.ID, item.Session)
	if err == nil && !whole {
		err = state.Conflictf("session "+string(item.Session), "its worktree has changed since it ended: the rig starts the work again")
	}
	if loadable := clients.Of(w.preset).Loadable; err == nil && loadable != nil {
		if until := loadable(w.startedAt.Time).Sub(p.Now().Time); until > 0 {
			p.Say("%s: its client can load the session in %s", p.ID, until.Round(time.Second))
			err = pauseFor(ctx, until)
		}
	}
	return w, err
}

func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// attend runs the client of a session on a terminal, until it ends. The terminal is then as it was.
func (p *Polecat) attend(ctx context.Context, left *worker, item hook.WorkItem, terminal *os.File) error {
	w := &worker{assignment: item.AssignmentID, bead: item.BeadID, session: item.Session, preset: left.preset, talk: left.talk, attended: true}
	c := clients.Of(w.preset)
	run, err := c.Attend(w.preset, p.Rig.Def.Worker.Permissions)
	if err != nil {
		return err
	}
	spec, err := p.spec(ctx, w, run, item)
	if err != nil {
		return err
	}
	if state, err := term.GetState(int(terminal.Fd())); err == nil {
		defer func() { _ = term.Restore(int(terminal.Fd()), state) }()
	}
	job, err := process.Attend(ctx, p.Self, spec, terminal)
	if err != nil {
		return err
	}
	p.tell(event.WorkerResumed(state.Human, w.work(), "a person took the session over"))
	watching, stop := context.WithCancel(ctx)
	defer stop()
	taken := make(chan struct{})
	go func() {
		if p.assignmentGone(watching, item) {
			close(taken)
		}
	}()
	return p.follow(ctx, job, taken)
}

// follow passes on what the terminal tells until the client has ended.
func (p *Polecat) follow(ctx context.Context, job *process.Job, taken <-chan struct{}) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGWINCH, unix.SIGCONT)
	defer signal.Stop(signals)
	over, why := ctx.Done(), error(nil)
	for {
		select {
		case sig := <-signals:
			job.Signal(sig.(unix.Signal)) //nolint:forcetypeassert // signals of this system have no other type
		case <-over:
			over, why = nil, ctx.Err()
			job.Stop(p.Rig.Def.Worker.Grace)
		case <-taken:
			taken, why = nil, state.Conflictf("agent "+string(p.ID), "its assignment was taken away, and you with it; what you changed is saved")
			job.Stop(p.Rig.Def.Worker.Grace)
		case <-job.Done():
			if x := job.Exit(); why == nil && x.NotFound && x.PID == 0 {
				why = fmt.Errorf("the client can't be started: %s", x.Error)
			}
			return why
		}
	}
}

// assignmentGone waits until the hook names another assignment, and reports whether that has happened.
func (p *Polecat) assignmentGone(ctx context.Context, item hook.WorkItem) bool {
	err := actor.Wait(ctx, p.Rig, "attach", 0, func() (bool, error) {
		h, err := p.Rig.Hooks.Get(string(p.ID))
		return err == nil && h.Assignment() != item.AssignmentID, nil
	}, hook.Dir)
	return err == nil
}
