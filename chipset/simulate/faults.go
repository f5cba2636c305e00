package simulate

import (
	"time"
)

// Restarts: how long it takes until a process that was killed is there again.
const (
	restartsAfter = 20 * time.Second
	mostJump      = 2 * time.Hour
	mostSleep     = 12 * time.Hour
	mostFull      = time.Hour
	fillsUp       = 5 * time.Minute
	mostOutage    = 4 * time.Hour
	mostNoTests   = 2 * time.Hour
)

// plague plans the faults that come at random times, each kind by itself.
func (w *world) plague() {
	f := &w.o.Faults
	for _, p := range w.procs {
		w.recurring("kill", f.Kill, func() { w.killed(p, w.every(restartsAfter)) })
	}
	w.recurring("power", f.Power, func() {
		for _, p := range w.procs {
			w.killed(p, w.every(restartsAfter))
		}
	})
	w.recurring("jump", f.Jump, func() {
		by := w.upTo(mostJump)
		if w.chance(0.5) {
			by = -by
		}
		w.offset += by
	})
	w.recurring("sleep", f.Sleep, func() { w.offset += w.upTo(mostSleep) }) // nothing happens, and the clock goes on
	w.recurring("full", f.Full, func() {                                    // it fills up first
		w.spell(&w.low, fillsUp)
		w.after(fillsUp, func() { w.spell(&w.full, w.upTo(mostFull)) })
	})
	w.recurring("outage", f.Outage, func() { w.killed(w.refinery, w.upTo(mostOutage)) })
	w.recurring("tests", f.Tests, func() { w.spell(&w.noTests, w.upTo(mostNoTests)) })
	w.recurring("service", f.Service, func() { w.spell(&w.noService, w.upTo(mostOutage)) })
	w.recurring("pushes", f.Pushes, func() {
		w.commits++
		w.onto = w.newSerial("tip-")
	})
}

// recurring makes something happen again and again, with a mean time between.
func (w *world) recurring(kind string, mean time.Duration, happen func()) {
	if mean <= 0 {
		return
	}
	var next func()
	next = func() {
		w.tally.Faults[kind]++
		happen()
		w.after(w.every(mean), next)
	}
	w.after(w.every(mean), next)
}

// spell makes something so for a while.
func (w *world) spell(what *bool, long time.Duration) {
	if *what {
		return
	}
	*what = true
	w.after(long, func() { *what = false })
}

// killed ends a process, which comes back after a while.
func (w *world) killed(p *process, back time.Duration) {
	if !p.alive {
		return
	}
	p.kill()
	w.after(back, p.start)
}
