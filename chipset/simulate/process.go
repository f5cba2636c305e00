package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// Times of a process that the real one has as well.
const (
	// wakeUp is from a change to the tick that sees it.
	wakeUp = time.Millisecond
	// pacing is the least time between two ticks.
	pacing = 10 * time.Millisecond
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
	// tick fetches and decides, and returns what to carry out.
	tick() []operation
	// failed hears of an action that could not be carried out. False stops the
	// actions after it.
	failed(i int, err error) bool
	// skip tells whether an action is left out because of what failed before.
	skip(i int) bool
	// ticked is called once all actions are through; it returns when to tick again
	// without news, 0 for never.
	ticked() time.Duration
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
	failures   int
	trouble    bool
	worked     time.Duration // total time busy
	ticks      int
}

// start begins a life.
func (p *process) start() {
	if p.alive {
		return
	}
	p.alive, p.life = true, p.life+1
	p.session = p.w.newSession()
	p.busy, p.news, p.planned, p.failures = false, false, false, 0
	p.plan++
	p.w.lives(p, true)
	p.perform(p.role.recover(), func() { p.planTick(0) })
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
	p.ticking, p.planned, p.trouble, p.news = p.w.now, false, false, false
	p.perform(p.role.tick(), func() {
		after := p.role.ticked()
		if p.trouble {
			p.failures++
			p.tickAt(p.w.now + min(100*time.Millisecond<<min(p.failures, 8), 15*time.Second))
			return
		}
		p.failures = 0
		if p.news {
			p.wake()
		}
		if after > 0 {
			p.planTick(after)
		}
	})
}

// perform carries operations out one after the other, then calls end.
func (p *process) perform(all []operation, end func()) {
	p.busy = true
	p.next(all, 0, end)
}

func (p *process) next(all []operation, i int, end func()) {
	for i < len(all) && p.role.skip(i) {
		i++
	}
	if i == len(all) {
		p.busy = false
		end()
		return
	}
	life := p.life
	p.w.after(all[i].cost, func() {
		if p.life != life || p.w.broken != nil {
			return
		}
		p.worked += all[i].cost
		done, err := all[i].step()
		switch {
		case err == nil && !done:
			p.next(all, i, end)
		case err == nil, errors.Is(err, errSkip):
			p.next(all, i+1, end)
		case p.role.failed(i, err):
			p.next(all, i+1, end)
		default:
			p.next(all, len(all), end)
		}
	})
}

func (p *process) String() string { return fmt.Sprintf("%s (life %d)", p.id, p.life) }
