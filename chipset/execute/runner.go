// Package execute carries the decisions of the roles out. All roles run in one
// loop (tick): fetch what changed, decide (the role's pure Decide), carry the
// groups of the decision out by the rule of roles.CarryOut, which retires what is
// done. The actions that roles share are carried out in act.go, those of one role
// in its own files.
package execute

import (
	"context"
	"time"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

// Runner is one agent at work. Its methods are called by one goroutine.
type Runner interface {
	// Recover heals what an earlier process of this agent left half done. It
	// runs once, before the first Tick, with the agent's liveness lock held.
	Recover(ctx context.Context) error
	// Tick fetches, decides, carries out and retires until there is nothing to do
	// but to wait.
	Tick(ctx context.Context) (Next, error)
	// Folders are those whose changes wake the agent.
	Folders() []state.Path
	// Wants reports whether a change of a file in one of them is news to the
	// agent. It is called by another goroutine.
	Wants(file state.Path) bool
	// Wake signals what no file tells: a worker that ended. It may be nil.
	Wake() <-chan struct{}
	// Close ends what runs on the agent's behalf, within seconds. What is half
	// done then is healed by the next Recover.
	Close()
}

// Next says how a tick left the agent.
type Next struct {
	// After is when to tick again without news; 0 leaves it to the rig's tick.
	After time.Duration
	// Conflict is what the world, which moved on, kept from being done: the next tick
	// decides on what it is now. It is due soon, and no failure.
	Conflict error
	// Finished is true when the agent was asked to end and has nothing left to do.
	Finished bool
}

// Agent is what every runner knows of itself.
type Agent struct {
	Rig *rig.Rig
	ID  state.AgentID
	// Session is this process's incarnation of the agent; a shutdown_request
	// that names another one is stale.
	Session state.SessionID
	// Self is the path of this binary, for the supervisor of workers.
	Self string
	// Say prints one line for whoever watches the process.
	Say func(format string, args ...any)
}

// Wants takes every change in its folders for news, unless a runner knows better.
func (a *Agent) Wants(state.Path) bool { return true }

// Now is the rig's clock.
func (a *Agent) Now() state.Time { return a.Rig.Clock.Now() }
