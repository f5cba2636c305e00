package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/gastown-chipset/chipset/chipset/execute"
	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/need"
)

// Process holds what all agents of one process share.
type Process struct {
	Rig *rig.Rig
	// Self is the path of this binary, for the supervisor of workers.
	Self string
	// Watcher is nil if notification is not available; the agents then poll at each tick.
	Watcher *state.Watcher
	// Say prints one line for the person.
	Say func(format string, args ...any)

	began time.Time // on the clock that never jumps
	// said are the needs that were announced.
	said map[need.Key]bool
	// teller is nil if nobody is to be notified.
	teller *teller
}

// gcPercent trades a few MiB for a third of the collector's work: most values of a
// rig are small and short-lived.
const gcPercent = 400

// Notification says whether a process uses file notifications.
type Notification bool

// Notified is the default. Unnotified agents poll at every tick, as they do where
// notification is not available.
const (
	Notified   Notification = true
	Unnotified Notification = false
)

var errSwitchedOff = errors.New("it is switched off")

// NewProcess prepares this process to run agents of a rig: it watches the
// tree, and removes temporary files of dead processes.
func NewProcess(r *rig.Rig, notified Notification, say func(format string, args ...any)) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	debug.SetGCPercent(gcPercent)
	p := &Process{Rig: r, said: map[need.Key]bool{}, Self: self, Say: say, began: time.Now()} //nolint:forbidigo // paces real work, decides nothing
	if p.Watcher, err = watcher(r.Tree, notified); err != nil {
		say("warning: no file notification (%v); agents wake only every %s", err, r.Def.Rig.Tick)
	} else {
		r.Follow(p.Watcher)
	}
	if _, err := r.Tree.RemoveTempFiles(r.Clock()); err != nil {
		return nil, err
	}
	return p, nil
}

func watcher(t *state.Tree, notified Notification) (*state.Watcher, error) {
	if !notified {
		return nil, errSwitchedOff
	}
	return state.NewWatcher(t)
}

// Close stops watching, and makes the event log durable.
func (p *Process) Close() {
	if p.Watcher != nil {
		_ = p.Watcher.Close() // nothing was written
	}
	_ = p.Rig.Events.Sync() // nothing is decided by the event log
}

func (p *Process) runner(known *agent.Agent, session state.SessionID) (execute.Runner, error) {
	a := execute.Agent{Rig: p.Rig, ID: known.ID, Session: session, Self: p.Self, Say: p.Say}
	switch known.Role {
	case agent.Mayor:
		return execute.NewMayor(a), nil
	case agent.Polecat:
		return execute.NewPolecat(a), nil
	case agent.Refinery:
		return execute.NewRefinery(a), nil
	case agent.Witness:
		return execute.NewWitness(a), nil
	case agent.Crew, agent.Human:
		if known.IsSession() {
			return execute.NewPolecat(a), nil
		}
	}
	return nil, fmt.Errorf("%s is a %s: no process runs one", known.ID, known.Role)
}

// RunAgent runs one agent until ctx ends or it is asked to end by mail. It
// returns *rig.ClaimedError when another process runs it, state.ErrNoTree when the
// live tree is gone, and otherwise nil.
func (p *Process) RunAgent(ctx context.Context, id state.AgentID) error {
	record, err := p.Rig.Agents.Get(string(id))
	if err != nil {
		return err
	}
	if record.Status == agent.Retired {
		return state.Conflictf("agent "+string(id), "is retired: the definition no longer names it")
	}
	session := state.NewSessionID()
	lock, err := p.Rig.Claim(ctx, id, session)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if !record.IsSession() { // the status of a session's agent says whether there is a session
		if err := p.Rig.Agents.Begin(ctx, id, session, p.Rig.Clock.Now()); err != nil {
			return err
		}
	}
	runner, err := p.runner(&record, session)
	if err != nil {
		return err
	}
	err = p.drive(ctx, id, runner, lock)
	runner.Close()
	if !record.IsSession() {
		p.end(id, session)
	}
	p.Rig.Unstamp(id) // before the lock is released: the next process makes its own
	return err
}

// end records that the process no longer runs the agent. It uses a context of its
// own, because that of the process may have ended.
func (p *Process) end(id state.AgentID, session state.SessionID) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	// For people only: the liveness lock decides.
	_ = p.Rig.Agents.End(ctx, id, session, p.Rig.Clock.Now())
}

// drive ticks a runner: after changes, on its own timer, and at least every tick of
// the rig.
func (p *Process) drive(ctx context.Context, id state.AgentID, runner execute.Runner, alive *state.Lock) error {
	var changed <-chan struct{}
	if p.Watcher != nil {
		var err error
		if changed, err = p.Watcher.SubscribeTo(runner.Wants, runner.Folders()...); err != nil {
			p.Say("warning: %s: no file notification (%v); it wakes only every %s", id, err, p.Rig.Def.Rig.Tick)
		}
	}
	if err := runner.Recover(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("%s: recover: %w", id, err)
	}
	failures, conflicts := 0, 0
	for {
		if err := p.Rig.Tree.Verify(); err != nil {
			return err
		}
		if alive.Lost(p.Rig.Tree) {
			return fmt.Errorf("%s: %w: its lock below run/ was removed while it ran", id, state.ErrNoTree)
		}
		began := time.Now() //nolint:forbidigo // paces real work, decides nothing
		next, err := runner.Tick(ctx)
		switch {
		case ctx.Err() != nil || err == nil && next.Finished:
			return nil
		case errors.Is(err, state.ErrNoTree):
			return err
		case err != nil:
			failures++
			next.After = policy.AfterFailures(failures)
			p.Say("%s: %s", id, flat(err))
		default:
			failures = 0
		}
		if conflicts++; next.Conflict == nil {
			conflicts = 0
		}
		least := policy.AfterConflicts(conflicts)
		if conflicts > 0 && err == nil && (next.After == 0 || next.After > least) {
			next.After = least
		}
		if conflicts == manyConflicts {
			p.Say("%s: it makes no progress: %s", id, flat(next.Conflict))
		}
		if !p.wait(ctx, next.After, changed, runner.Wake(), failures > 0) || !pace(ctx, began, least) {
			return nil
		}
	}
}

// flat returns an error as one line, with joined errors one after the other.
func flat(err error) string {
	text := err.Error()
	var all *multierror.Error
	if errors.As(err, &all) {
		parts := make([]string, len(all.Errors))
		for i, e := range all.Errors {
			parts[i] = e.Error()
		}
		text = strings.Join(parts, "; ")
	}
	return strings.Join(strings.Fields(text), " ")
}

// manyConflicts is after how many conflicts in a row a warning is printed, once.
const manyConflicts = 50

// pace waits until a tick may begin; false when ctx ended.
func pace(ctx context.Context, last time.Time, least time.Duration) bool {
	rest := least - time.Since(last)
	if rest <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// untilTick returns the time until the next tick of the process. All its agents tick
// together, so that an idle process wakes once for all of them.
func (p *Process) untilTick() time.Duration {
	tick := p.Rig.Def.Rig.Tick
	return tick - time.Since(p.began)%tick
}

// wait returns when there is something to do; false when ctx ended. After a
// failure only the timer counts, because the failed tick's own writes are changes,
// too.
func (p *Process) wait(ctx context.Context, after time.Duration, changed, news <-chan struct{}, failed bool) bool {
	limit := p.untilTick()
	if failed {
		limit, changed = after, nil
	} else if after > 0 && after < limit {
		limit = after
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-news:
	case <-timer.C:
	}
	return ctx.Err() == nil
}
