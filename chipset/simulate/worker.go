package simulate

import (
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/fault"
)

// worker is one session of one attempt: a model of a coding agent.
type worker struct {
	item    hook.WorkItem
	started time.Duration
	began   state.Time
	// ended is when it ended; it counts once exit is set.
	ended        time.Duration
	lastProgress state.Time
	exit         *polecat.Exit
	// hangs is set from the moment on at which it stopped to make progress.
	hangs    bool
	hungAt   time.Duration
	stopping bool
	counted  bool
}

func (k *worker) facts() polecat.Worker {
	f := polecat.Worker{Status: polecat.WorkerRunning, Assignment: k.item.AssignmentID, Bead: k.item.BeadID, Session: k.item.Session,
		StartedAt: k.began, LastProgress: k.lastProgress, Resumes: 1}
	if k.exit != nil {
		f.Status, f.Exit = polecat.WorkerExited, *k.exit
	}
	return f
}

// launch starts a worker, whose fate is drawn now.
func (p *polecatRole) launch(item hook.WorkItem) {
	w := p.w
	if p.worker != nil {
		w.fail("%s starts a second worker, for %s beside %s", p.id, item.BeadID, p.worker.item.BeadID)
		return
	}
	k := &worker{item: item, started: w.now, began: w.clock(), lastProgress: w.clock()}
	p.worker = k
	w.tally.launched(w, k)
	exit := polecat.Exit{}
	takes := w.around(w.o.Work, w.o.Spread)
	switch draw := w.rnd.Float64(); {
	case w.chance(w.o.Faults.Hang):
		k.hungAt = w.now + time.Duration(w.rnd.Float64()*float64(takes))
		w.at(k.hungAt, func() {
			if k.exit == nil && p.worker == k {
				k.hangs = true
				w.tally.Stalls.Injected++
			}
		})
		takes = workerTimeout
	case w.chance(w.o.Faults.Crash):
		takes = time.Duration(w.rnd.Float64() * float64(takes))
		exit.Lost = true
	case draw < w.o.Fail:
		takes = time.Duration(w.rnd.Float64() * float64(takes))
		exit.Code = 1
	}
	if w.noService {
		takes = min(takes, noticesOutage)
	}
	if takes >= workerTimeout {
		takes, exit.TimedOut = workerTimeout, true
	}
	exit.Ran = takes
	w.after(takes, func() { p.workerEnds(k, exit) })
	p.signOfLife(k)
}

// signOfLife is output, or processor time: progress that the polecat sees.
func (p *polecatRole) signOfLife(k *worker) {
	w := p.w
	w.after(w.around(w.o.Progress, 0.8), func() {
		if p.worker != k || k.exit != nil || k.hangs {
			return
		}
		k.lastProgress = w.clock()
		p.progress = true
		p.planTick(wakeUp)
		p.signOfLife(k)
	})
}

// workerEnds handles the end of a worker.
func (p *polecatRole) workerEnds(k *worker, exit polecat.Exit) {
	w := p.w
	if p.worker != k || k.exit != nil { // it ended with its polecat, or before
		return
	}
	if w.noService && !exit.Lost && !k.hangs {
		exit = polecat.Exit{Code: 1, Ran: exit.Ran, Fault: fault.New(fault.Overloaded, "the service is down"), Resumable: w.chance(0.5)}
		w.ended[k.item.AssignmentID] = true
	}
	k.exit, k.ended = &exit, w.now
	w.tally.ended(w, k)
	p.wake()
}

// stopWorker ends the worker after a delay: TERM, then KILL.
func (p *polecatRole) stopWorker(delay time.Duration) {
	if k := p.worker; k != nil && k.exit == nil && !k.stopping {
		k.stopping = true
		p.w.after(delay+graceTime, func() { p.workerEnds(k, polecat.Exit{Lost: true, Ran: p.w.now - k.started}) })
	}
}

// forgetWorker drops a worker whose attempt is retired. What it did is thrown away
// for a reason, or judged by what becomes of the attempt.
func (p *polecatRole) forgetWorker(why string) {
	k := p.worker
	if k == nil {
		return
	}
	if k.exit != nil && k.exit.Lost && !k.stopping && why == "process killed" {
		why = "worker crashed"
	}
	if k.hangs {
		why = "stalled"
	}
	if why != "" {
		p.w.tally.thrownAway(p.w, k, why)
	}
	p.worker = nil
}
