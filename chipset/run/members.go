package run

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// members runs the agents of the person's own sessions while they hold something.
type members struct {
	*Process
	opts *UpOptions
	// running are those that this process runs, with the function that stops each. ended are those that
	// were asked by mail to end, and are not started again.
	running map[state.AgentID]context.CancelFunc
	ended   map[state.AgentID]bool
	over    chan memberEnd
	wg      sync.WaitGroup
}

type memberEnd struct {
	id  state.AgentID
	err error
}

// runMembers runs the agent of a person's session while it holds a bead.
func (p *Process) runMembers(ctx context.Context, opts *UpOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	m := &members{Process: p, opts: opts, running: map[state.AgentID]context.CancelFunc{}, ended: map[state.AgentID]bool{}, over: make(chan memberEnd)}
	defer m.wg.Wait()
	defer cancel()
	return m.follow(ctx)
}

func (m *members) follow(ctx context.Context) error {
	var changed <-chan struct{}
	if m.Watcher != nil {
		// Without notification the tick below finds out.
		changed, _ = m.Watcher.SubscribeTo(m.mayMatter(), hook.Dir)
	}
	for first := true; ; first = false {
		if err := m.look(ctx, first); err != nil {
			m.Say("warning: your sessions: %s", flat(err))
		}
		timer := time.NewTimer(m.untilTick())
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case end := <-m.over:
			timer.Stop()
			if err := m.take(end); err != nil {
				return err
			}
		case <-changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// mayMatter reports which hooks may belong to sessions: all except those of the definition's agents.
func (m *members) mayMatter() func(state.Path) bool {
	own := map[string]bool{}
	if all, _, err := m.Rig.Agents.All(); err == nil {
		for i := range all {
			own[string(all[i].ID)+".json"] = all[i].Role != agent.Crew
		}
	}
	return func(file state.Path) bool { return !own[file.Base()] }
}

// look starts and stops agents as needed. The first time it also looks for what an earlier process has left.
func (m *members) look(ctx context.Context, first bool) error {
	agents, _, err := m.Rig.Agents.All()
	if err != nil {
		return err
	}
	for i := range agents {
		a := &agents[i]
		stop, runs := m.running[a.ID]
		if !a.IsSession() || m.ended[a.ID] || isClosed(m.opts.Drain) && !runs {
			continue
		}
		holds, err := holds(m.Rig, a.ID, runs || first)
		if err != nil {
			return err
		}
		switch {
		case holds && !runs:
			m.start(ctx, a.ID)
		case !holds && runs:
			stop()
		}
	}
	return nil
}

// holds reports whether something is on an agent's hook; with deep also whether an attempt of the agent is not yet retired, or
// its worktree is in use.
func holds(r *rig.Rig, id state.AgentID, deep bool) (bool, error) {
	h, err := r.Hooks.Get(string(id))
	if errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrCorrupt) {
		return false, nil // the witness and the doctor report it
	}
	if err != nil || h.Status != hook.Empty || !deep {
		return h.Status != hook.Empty, err
	}
	if _, used := carry.ReadWorktree(r, id); used {
		return true, nil
	}
	ends, _, err := r.Retire.All()
	for i := range ends {
		if ends[i].AgentID == id && !ends[i].Stage.Final() {
			return true, err
		}
	}
	return false, err
}

// start runs an agent until it is asked to end or ctx ends.
func (m *members) start(ctx context.Context, id state.AgentID) {
	running, stop := context.WithCancel(ctx)
	m.running[id] = stop
	m.wg.Go(func() {
		defer stop()
		err := m.keep(running, id, m.opts)
		if running.Err() != nil {
			err = running.Err()
		}
		select {
		case m.over <- memberEnd{id, err}:
		case <-ctx.Done():
		}
	})
}

// take records that an agent no longer runs here.
func (m *members) take(end memberEnd) error {
	delete(m.running, end.id)
	switch {
	case errors.Is(end.err, context.Canceled):
		return nil
	case end.err == nil, errors.Is(end.err, state.ErrConflict):
		m.ended[end.id] = true
		return nil
	}
	return end.err
}
