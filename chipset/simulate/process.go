package simulate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
)

// wakeUp is from a change to the tick that sees it.
const wakeUp = time.Millisecond

// maxRounds bounds one tick: decisions that do not settle are a defect.
const maxRounds = 500

var (
	errDiskFull = errors.New("no space left on device")
	// errKilled unwinds a process that is killed between two steps.
	errKilled = errors.New("killed")
)

// role is what a process does. Its methods are straight-line code: before each
// durable step they call process.spend, which lets virtual time pass, and in which a
// kill ends them.
type role interface {
	// recover heals what an earlier process left.
	recover()
	// round fetches, decides and carries out once. again asks for another round.
	round() (out roles.Outcome, again bool)
	// after returns when to tick again without news, 0 for never.
	after() time.Duration
	// killed forgets what only the process knew.
	killed()
}

// process is one agent's. What it does runs as a coroutine of the engine.
type process struct {
	w       *world
	id      state.AgentID
	role    role
	session state.SessionID
	alive   bool
	// life counts the kills: what an earlier life has planned does not happen.
	life int
	// yield gives the engine the word for a time, next gives it back to the process,
	// stop ends what is being done.
	yield func(time.Duration) bool
	next  func() (time.Duration, bool)
	stop  func()
	// busy is true while something is carried out, news when something came
	// meanwhile. A tick that is planned is due then; plan says which of several counts.
	busy, news bool
	planned    bool
	due        time.Duration
	plan       int
	ticking    time.Duration // when the last tick began
	// failures and conflicts count ticks in a row.
	failures, conflicts int
	worked              time.Duration // total time busy
	ticks               int
}

// start begins a life: a coroutine that recovers and then ticks whenever it is due.
func (p *process) start() {
	if p.alive {
		return
	}
	p.alive, p.life = true, p.life+1
	p.session = p.w.newSession()
	p.news, p.planned, p.failures, p.conflicts = false, false, 0, 0
	p.plan++
	p.w.lives(p, true)
	p.next, p.stop = iter.Pull(p.live)
	p.advance()
}

// kill ends a life as kill -9 would: what was being done is not gone on with.
func (p *process) kill() {
	if !p.alive {
		return
	}
	p.alive, p.life = false, p.life+1
	p.plan++
	p.end()
	p.role.killed()
	p.w.lives(p, false)
}

func (p *process) end() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
}

// live is what a process does from its start to its kill.
func (p *process) live(yield func(time.Duration) bool) {
	defer func() {
		if r := recover(); r != nil && r != errKilled { //nolint:errorlint // the very value that spend panics with
			panic(r)
		}
	}()
	p.yield = yield
	p.role.recover()
	p.busy = false
	p.planTick(0)
	for yield(idle) {
		out := p.tick()
		p.busy = false
		p.ticked(&out)
	}
}

// idle is yielded by a process that has nothing to do until it is due.
const idle time.Duration = -1

// advance lets the process do its next step.
func (p *process) advance() {
	p.busy = true
	cost, _ := p.next()
	if cost == idle {
		return
	}
	life := p.life
	p.w.after(cost, func() {
		if p.life == life && p.w.broken == nil {
			p.worked += cost
			p.advance()
		}
	})
}

// spend lets a time pass before the next durable step. A kill meanwhile ends what
// the process does.
func (p *process) spend(d time.Duration) {
	if !p.yield(d) {
		panic(errKilled)
	}
}

// wake reports a change that the process watches. Notification may lose it or
// bring it late; the tick finds it.
func (p *process) wake() {
	if !p.alive {
		return
	}
	d := wakeUp
	switch f := &p.w.o.Faults; {
	case p.w.chance(f.Notify):
		d = p.w.def.Rig.Tick - p.w.now%p.w.def.Rig.Tick
	case p.w.chance(f.Late):
		d = p.w.every(500 * time.Millisecond)
	}
	p.planTick(d)
}

// planTick makes the process tick after d, or earlier.
func (p *process) planTick(d time.Duration) {
	if p.busy {
		p.news = true
		return
	}
	at := max(p.w.now+d, p.ticking+policy.AfterConflicts(p.conflicts))
	if p.planned && (p.due <= at || p.failures > 0) { // a failing tick's own writes are news as well
		return
	}
	p.tickAt(at)
}

func (p *process) tickAt(at time.Duration) {
	p.plan++
	p.planned, p.due = true, at
	plan := p.plan
	p.w.at(at, func() {
		if p.plan == plan && p.alive {
			p.advance()
		}
	})
}

// tick is the loop of every role: fetch, decide, carry out, until there is nothing to
// do but to wait.
func (p *process) tick() (out roles.Outcome) {
	p.plan++
	p.ticking, p.planned, p.news = p.w.now, false, false
	for again, rounds := true, 0; again; rounds++ {
		if rounds == maxRounds {
			p.w.fail("the decisions of %s do not settle", p.id)
			break
		}
		if rounds > 0 {
			p.spend(wakeUp)
		}
		p.ticks++
		out, again = p.role.round()
	}
	return out
}

// ticked plans the next tick by how this one ended.
func (p *process) ticked(out *roles.Outcome) {
	after := p.role.after()
	if p.conflicts++; out.Conflicts == nil {
		p.conflicts = 0
	} else if least := policy.AfterConflicts(p.conflicts); after == 0 || after > least {
		after = least
	}
	if out.Failures != nil {
		p.failures++
		p.tickAt(p.w.now + policy.AfterFailures(p.failures))
		return
	}
	p.failures = 0
	if p.news {
		p.wake()
	}
	if after > 0 {
		p.planTick(after)
	}
}

// carryOut carries a decision out by the rule of all roles. state is taken over when
// its work is done.
func carryOut[S any](p *process, d *roles.Decision[S], at *S, do func(roles.Action) error) (roles.Outcome, bool) {
	out := roles.CarryOut(context.Background(), d, func(_ context.Context, a roles.Action) error { return p.act(a, do) })
	if out.Worked {
		*at = d.Next
	}
	return out, out.Worked && d.Again
}

// act carries out an action, of those that roles share or of the role's own.
func (p *process) act(a roles.Action, do func(roles.Action) error) error {
	w := p.w
	p.spend(w.o.Step)
	switch a := a.(type) {
	case roles.Send:
		m := a.Message
		m.From = p.id
		return w.send(m, nil)
	case roles.Nudge:
		_, err := w.sendNudge(p.id, a)
		return err
	case roles.MarkRead:
		return w.markRead(p.id, a.Entry.Name)
	case roles.MarkSeen:
		return w.markSeen(p.id, a.Nudge)
	case roles.Finish:
		return nil
	}
	return do(a)
}

// sequence carries a durable sequence out, and lets the time of a step pass before each.
func (p *process) sequence(s flow.Sequence, read func(), more func(flow.Effect) error) error {
	return p.w.sequence(s, read, more, func() { p.spend(p.w.o.Step) })
}

// do carries one effect of a sequence out on the stores in memory.
func (w *world) do(e flow.Effect, more func(flow.Effect) error) error {
	switch e := e.(type) {
	case flow.BeadChange:
		return w.changeBead(e)
	case flow.HookChange:
		return w.changeHook(e)
	case flow.RequestChange:
		return w.changeRequest(e)
	case flow.PutDispatch:
		return w.putDispatch(e.Record)
	case flow.RemoveDispatch:
		return w.removeDispatch(e.Record.BeadID)
	case flow.PutRetire:
		e.Record.UpdatedAt = w.clock()
		return w.putRecord(e.Record)
	case flow.Send:
		return w.send(e.Message, nil)
	}
	if more == nil {
		return fmt.Errorf("no way to carry out %T", e)
	}
	return more(e)
}

func (p *process) String() string { return fmt.Sprintf("%s (life %d)", p.id, p.life) }
