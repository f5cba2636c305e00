package run

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
)

// finishOn asks the agents of this process to finish once drain is closed, and says which are still at
// work. It returns an error when they can't be asked.
func (p *Process) finishOn(ctx context.Context, drain <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-drain:
	}
	working, err := p.atWork()
	if err != nil {
		return err
	}
	p.Say("%s", finishing(working))
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for asked := map[state.SessionID]bool{}; ; {
		if err := p.askOwn(ctx, asked); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C: // an agent may have been about to start
		}
	}
}

// askOwn asks the agents of this process that have not yet been asked. The refinery is asked last, so that
// it lands what the others finish.
func (p *Process) askOwn(ctx context.Context, asked map[state.SessionID]bool) error {
	running, err := alive(p.Rig)
	if err != nil {
		return err
	}
	running = slices.DeleteFunc(running, func(s rig.Stamp) bool { return s.PID != os.Getpid() })
	for _, s := range running {
		if asked[s.Session] || s.AgentID == p.Rig.Refinery() && len(running) > 1 {
			continue
		}
		if err := askToFinish(ctx, p.Rig, state.Human, s); err != nil {
			return fmt.Errorf("ask %s to finish: %w", s.AgentID, err)
		}
		asked[s.Session] = true
	}
	return nil
}

// atWork lists the agents of this process whose workers run or start, with their beads.
func (p *Process) atWork() ([]string, error) {
	hooks, _, err := p.Rig.Hooks.All()
	if err != nil {
		return nil, err
	}
	var working []string
	for i := range hooks {
		h := &hooks[i]
		if h.Status != hook.Active || h.WorkItem == nil || h.WorkItem.Session == "" || heldBySession(p.Rig, h) {
			continue
		}
		stamp, alive := p.Rig.Alive(h.AgentID)
		exit, found, err := p.Rig.WorkerExit(h.WorkItem.Session)
		if alive && stamp.PID == os.Getpid() && err == nil && !(found && exit.Done) {
			working = append(working, fmt.Sprintf("%s with %s", h.AgentID, h.WorkItem.BeadID))
		}
	}
	return working, nil
}

// finishing says what a draining rig waits for.
func finishing(working []string) string {
	if len(working) == 0 {
		return "taking no new work; no worker is running"
	}
	return "taking no new work; still at work: " + strings.Join(working, ", ") + " (a second interrupt stops them now, and keeps their sessions)"
}
