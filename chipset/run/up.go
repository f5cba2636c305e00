package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/oklog/run"

	"github.com/gastown-chipset/chipset/chipset/environment"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

var (
	// ErrTimeout is returned by Up after UpOptions.Timeout.
	ErrTimeout = errors.New("timed out")
	// ErrDrained is returned by Up when all agents have finished because of UpOptions.Drain.
	ErrDrained = errors.New("drained")
)

// UpOptions are the options of Up.
type UpOptions struct {
	// UntilIdle ends the rig when nothing is left to do.
	UntilIdle bool
	// Timeout ends it with ErrTimeout; 0 is never.
	Timeout time.Duration
	// Standby waits to take over where other processes run all agents.
	Standby bool
	// Needs prints what waits for the person, and notifies them.
	Needs bool
	// Terminal receives notifications for a terminal, or is nil.
	Terminal io.Writer
	// Preflight checks whether the rig can work, before anything is started.
	Preflight bool
	// Agents are the agents to run; empty means all that have a process.
	Agents []state.AgentID
	// Sessions also runs the agents of the person's own sessions while they hold something.
	Sessions bool
	// Drain, once it is closed, makes the agents finish their work and take nothing new; nil is never.
	Drain <-chan struct{}
}

// Up runs agents of a rig in this process until it is told to end: by ctx, by mail
// to all of them, by opts.Drain, when idle, or after the time-out. It returns a
// state.ErrConflict when other processes run all agents, and *Waiting when the rig
// is idle but beads wait for a person. The next start completes whatever is half
// done when it returns.
func Up(ctx context.Context, p *Process, opts UpOptions) error {
	if err := environment.TargetLost(ctx, p.Rig); err != nil {
		if back, _ := p.Rig.Git.RestoreObjects(ctx); back == 0 {
			lost := environment.Target(ctx, p.Rig)
			return errors.Join(err, lost.Pause(ctx, p.Rig))
		}
	}
	agents := opts.Agents
	if len(agents) == 0 {
		var err error
		if agents, err = runnable(p.Rig); err != nil {
			return err
		}
	}
	if owner := p.owner(agents); owner != 0 && len(agents) > 1 && !opts.Standby {
		return state.Conflictf("up", "the rig already runs, in process %d", owner)
	}
	if opts.Needs {
		defer p.startTeller(opts.Terminal)()
	}
	if opts.Preflight && p.owner(agents) == 0 {
		if err := p.preflight(ctx, opts); err != nil {
			return err
		}
	}
	err := p.runAll(ctx, agents, &opts)
	var waiting *Waiting
	idle := errors.Is(err, errIdle)
	if p.teller != nil && (idle || errors.As(err, &waiting)) && ctx.Err() == nil {
		if lookErr := p.look(ctx, true, true); lookErr != nil {
			p.Say("warning: what waits for you: %s", flat(lookErr))
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err() // whichever actor noticed first
	case errors.Is(err, errAllEnded) && isClosed(opts.Drain):
		return ErrDrained
	case errors.Is(err, errAllEnded), idle:
		return nil
	}
	return err
}

// runAll runs the agents and everything else that a rig needs, until the first actor ends.
func (p *Process) runAll(ctx context.Context, agents []state.AgentID, opts *UpOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var g run.Group
	var running sync.WaitGroup
	for _, id := range agents {
		running.Add(1)
		done := sync.OnceFunc(running.Done)
		agentCtx, stop := context.WithCancel(ctx)
		g.Add(func() error {
			if err := p.keep(agentCtx, id, opts); err != nil {
				return err // it does not count as ended, so that the group sees the error first
			}
			done()
			<-agentCtx.Done() // ended by mail: the others go on
			return nil
		}, func(error) { stop(); done() })
	}
	add := func(actor func(context.Context) error) {
		ctx, cancel := context.WithCancel(ctx)
		g.Add(func() error { return actor(ctx) }, func(error) { cancel() })
	}
	add(func(ctx context.Context) error { return awaitAll(ctx, &running) })
	g.Add(run.ContextHandler(ctx)) // main ends ctx at the first SIGINT or SIGTERM
	add(p.syncEvents)
	if opts.Sessions {
		add(func(ctx context.Context) error { return p.runMembers(ctx, opts) })
	}
	if p.Rig.Def.Audit.Every > 0 {
		add(p.takeSnapshots)
	}
	if opts.Preflight {
		add(p.recheckPauses)
	}
	if opts.Needs {
		add(p.announceNeeds)
	}
	if opts.Drain != nil {
		add(func(ctx context.Context) error { return p.finishOn(ctx, opts.Drain) })
	}
	if opts.UntilIdle {
		add(p.awaitIdle)
	}
	if opts.Timeout > 0 {
		add(func(ctx context.Context) error { return awaitTimeout(ctx, opts.Timeout) })
	}
	return g.Run()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// owner returns a process that runs one of the agents if others run all of them, else 0.
func (p *Process) owner(agents []state.AgentID) int {
	pid := 0
	for _, id := range agents {
		stamp, alive := p.Rig.Alive(id)
		if !alive {
			return 0
		}
		pid = stamp.PID
	}
	return pid
}

// runnable lists the agents of the rig that have a process.
func runnable(r *rig.Rig) ([]state.AgentID, error) {
	all, bad, err := r.Agents.All()
	if err != nil {
		return nil, err
	}
	if len(bad) > 0 {
		return nil, bad[0]
	}
	var ids []state.AgentID
	for _, a := range all {
		switch a.Role {
		case agent.Mayor, agent.Polecat, agent.Refinery, agent.Witness:
			if a.Status != agent.Retired {
				ids = append(ids, a.ID)
			}
		case agent.Crew, agent.Human:
		}
	}
	return ids, nil
}

// keep runs an agent. If another process runs it, keep waits to take over, unless the
// agent is the only one to run, or the process drains.
func (p *Process) keep(ctx context.Context, id state.AgentID, opts *UpOptions) error {
	told, alone := false, len(opts.Agents) == 1
	for {
		err := p.RunAgent(ctx, id)
		var owned *rig.ClaimedError
		if alone || !errors.As(err, &owned) {
			return err
		}
		if !told {
			p.Say("%s is run by pid %d; waiting to take over", id, owned.Stamp.PID)
			told = true
		}
		timer := time.NewTimer(p.Rig.Def.Rig.Tick)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-opts.Drain:
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

var (
	errAllEnded = errors.New("all agents ended")
	errIdle     = errors.New("idle")
)

// awaitAll returns errAllEnded when every agent has ended because it was asked by mail.
func awaitAll(ctx context.Context, running *sync.WaitGroup) error {
	ended := make(chan struct{})
	go func() { running.Wait(); close(ended) }()
	select {
	case <-ended:
		return errAllEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// syncInterval is how often the event log is made durable.
const syncInterval = 2 * time.Second

// syncEvents makes the event log durable, and warns when notification fails.
func (p *Process) syncEvents(ctx context.Context) error {
	ticker := time.NewTicker(syncInterval)
	defer ticker.Stop()
	var failed <-chan error
	if p.Watcher != nil {
		failed = p.Watcher.Errors()
	}
	for {
		select {
		case err := <-failed:
			p.Say("warning: file notification: %v; what it misses is found within %s", err, p.Rig.Def.Rig.Tick)
		case <-ticker.C:
			_ = p.Rig.Events.Sync() // the event log may lose its last moments
		case <-ctx.Done():
			return p.Rig.Events.Sync()
		}
	}
}

// awaitTimeout returns ErrTimeout after a time.
func awaitTimeout(ctx context.Context, after time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, after, ErrTimeout)
	defer cancel()
	<-ctx.Done()
	if errors.Is(context.Cause(ctx), ErrTimeout) {
		return fmt.Errorf("after %s: %w", after, ErrTimeout)
	}
	return ctx.Err()
}
