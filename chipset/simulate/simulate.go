package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// Run simulates a rig until nothing is left to do, time is up, or something
// happens that must not: then the error is a *Violation, and the report covers
// the run up to it. The same options give the same report.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	w := newWorld(o)
	w.populate()
	w.plague()
	w.daily()
	w.sample()
	defer w.close()
	err := w.run(ctx, o.For, func() bool { return w.broken != nil || w.over() })
	if err != nil {
		return nil, err
	}
	ended := w.over()
	if ended && w.broken == nil {
		w.judge.final(w)
	}
	return w.report(ended), w.broken
}

// close ends what the processes are in the middle of.
func (w *world) close() {
	for _, p := range w.procs {
		p.end()
	}
}

// populate makes beads arrive and processes begin.
func (w *world) populate() {
	for _, p := range w.procs {
		w.after(time.Duration(w.rnd.Int64N(int64(time.Second))), p.start)
	}
	if w.o.PerHour == 0 {
		for n := range w.o.Beads {
			w.addBead(w.draw(n))
		}
		return
	}
	mean := time.Duration(float64(time.Hour) / w.o.PerHour)
	n := 0
	var next func()
	next = func() {
		w.addBead(w.draw(n))
		if n++; n < w.o.Beads {
			w.after(w.every(mean), next)
		}
	}
	if w.o.Beads > 0 {
		w.after(w.every(mean), next)
	}
}

// draw makes the n-th bead, with what it waits for.
func (w *world) draw(n int) bead.Bead {
	b := bead.Bead{ID: beadName(n), Title: fmt.Sprintf("bead %d", n)}
	switch draw := w.rnd.Float64(); {
	case draw < 0.1:
		b.Priority = bead.P1
	case draw > 0.7:
		b.Priority = bead.P3
	}
	if n == 0 || !w.chance(w.o.Needs) {
		return b
	}
	seen := map[state.BeadID]bool{}
	for range 1 + w.rnd.IntN(3) {
		dep := beadName(n - 1 - w.rnd.IntN(min(n, w.o.Chain)))
		if !seen[dep] {
			seen[dep] = true
			b.BlockedBy = append(b.BlockedBy, dep)
		}
	}
	return b
}

// over reports whether nothing is left that would happen by itself.
func (w *world) over() bool {
	return w.arrived == w.o.Beads && w.backlog.ReadyCount() == 0 && w.backlog.OutCount() == 0 && w.waiting == 0 &&
		w.backlog.Count(bead.Done) == 0 && w.backlog.Count(bead.Failed) == 0 && w.tally.occupied == 0 && len(w.dispatches) == 0 &&
		(w.o.Person == 0 || w.backlog.Count(bead.Blocked) == 0)
}

func (w *world) daily() {
	w.judge.inspect(w)
	w.after(day, w.daily)
}
