package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
)

// Times of a process that the real one has as well.
const (
	// wakeUp is from a change to the tick that sees it.
	wakeUp = time.Millisecond
	// pacing is the least time between two ticks.
	pacing = 10 * time.Millisecond
	// mostPacing is what it grows to while conflicts last.
	mostPacing = 250 * time.Millisecond
	// rigTick is rig.tick: when a change is seen that notification has lost.
	rigTick = 2 * time.Second
)

var (
	errDiskFull = errors.New("no space left on device")
	// errSkip ends an action that has nothing to do any more.
	errSkip = errors.New("nothing to do")
)

// operation is one action that is being carried out: step does the next durable
// step of it and says whether that was the last. A kill between two steps leaves
// what was done.
type operation struct {
	cost time.Duration
	step func() (done bool, err error)
}

// once is an operation of one step.
func once(cost time.Duration, do func() error) operation {
	return operation{cost, func() (bool, error) { return true, do() }}
}

// steps is an operation of several.
func steps(cost time.Duration, all ...func() error) operation {
	i := 0
	return operation{cost, func() (bool, error) {
		err := all[i]()
		i++
		return i == len(all), err
	}}
}

// role is what a process does.
type role interface {
	// recover lists what heals what an earlier process left.
	recover() []operation
	// tick fetches and decides, and returns what to carry out, and whether another
	// decision follows at once.
	tick() (*roles.Progress, bool)
	// operation carries out an action of the role's own.
	operation(a roles.Action) operation
	// adopt takes over the state of a decision whose work is carried out.
	adopt()
	// after returns when to tick again without news, 0 for never.
	after() time.Duration
	// killed forgets what only the process knew.
	killed()
}

// process is one agent's.
type process struct {
	w       *world
	id      state.AgentID
	role    role
	session state.SessionID
	alive   bool
	// life counts the kills: what an earlier life has planned does not happen.
	life int
	// busy is true while actions are carried out, news when something came
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

// start begins a life.
func (p *process) start() {
	if p.alive {
		return
	}
	p.alive, p.life = true, p.life+1
	p.session = p.w.newSession()
	p.busy, p.news, p.planned, p.failures, p.conflicts = false, false, false, 0, 0
	p.plan++
	p.w.lives(p, true)
	p.recover(p.role.recover())
}

// kill ends a life as kill -9 would.
func (p *process) kill() {
	if !p.alive {
		return
	}
	p.alive, p.life = false, p.life+1
	p.plan++
	p.role.killed()
	p.w.lives(p, false)
}

// wake tells of a change that the process watches. Notification may lose it or
// bring it late; the tick finds it.
func (p *process) wake() {
	if !p.alive {
		return
	}
	d := wakeUp
	switch f := &p.w.o.Faults; {
	case p.w.chance(f.Notify):
		d = rigTick - p.w.now%rigTick
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
	at := max(p.w.now+d, p.ticking+pacing)
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
			p.tick()
		}
	})
}

func (p *process) tick() {
	p.ticks++
	p.plan++
	p.ticking, p.planned, p.news = p.w.now, false, false
	progress, again := p.role.tick()
	p.perform(func() (operation, bool) {
		a, ok := progress.Next()
		if !ok {
			return operation{}, false
		}
		return p.operation(a), true
	}, progress.Report, func() { p.ticked(&progress.Outcome, again) })
}

// ticked plans the next tick by how this one ended.
func (p *process) ticked(out *roles.Outcome, again bool) {
	if out.Worked {
		p.role.adopt()
	}
	after := p.role.after()
	switch p.conflicts++; {
	case out.Conflicts == nil:
		p.conflicts = 0
	default:
		if least := roles.Backoff(2*pacing, mostPacing, p.conflicts); after == 0 || after > least {
			after = least
		}
	}
	if out.Failures != nil {
		p.failures++
		p.tickAt(p.w.now + roles.Backoff(200*time.Millisecond, 15*time.Second, p.failures))
		return
	}
	p.failures = 0
	if p.news {
		p.wake()
	}
	if again && out.Worked {
		after = time.Millisecond
	}
	if after > 0 {
		p.planTick(after)
	}
}

// operation carries out an action, of those that roles share or of the role's own.
func (p *process) operation(a roles.Action) operation {
	w := p.w
	switch a := a.(type) {
	case roles.Send:
		return once(w.o.Step, func() error {
			m := a.Message
			m.From = p.id
			return w.send(m, nil)
		})
	case roles.Nudge:
		return once(w.o.Step, func() error {
			_, err := w.sendNudge(p.id, a)
			return err
		})
	case roles.MarkRead:
		return once(w.o.Step, func() error { return w.markRead(p.id, a.Entry.Name) })
	case roles.MarkSeen:
		return once(w.o.Step, func() error { return w.markSeen(p.id, a.Nudge) })
	}
	return p.role.operation(a)
}

// recover carries operations out one after the other; what fails is tried again by
// the ticks.
func (p *process) recover(all []operation) {
	i := -1
	p.perform(func() (operation, bool) {
		if i++; i == len(all) {
			return operation{}, false
		}
		return all[i], true
	}, func(error) {}, func() { p.planTick(0) })
}

// perform carries operations out one after the other, then calls end.
func (p *process) perform(next func() (operation, bool), report func(error), end func()) {
	p.busy = true
	o, ok := next()
	if !ok {
		p.busy = false
		end()
		return
	}
	p.carryOut(o, func(err error) {
		report(err)
		p.perform(next, report, end)
	})
}

// carryOut does the steps of an operation, then calls end with how it ended.
func (p *process) carryOut(o operation, end func(error)) {
	life := p.life
	p.w.after(o.cost, func() {
		if p.life != life || p.w.broken != nil {
			return
		}
		p.worked += o.cost
		switch done, err := o.step(); {
		case err == nil && !done:
			p.carryOut(o, end)
		case errors.Is(err, errSkip):
			end(nil)
		default:
			end(err)
		}
	})
}

func (p *process) String() string { return fmt.Sprintf("%s (life %d)", p.id, p.life) }
