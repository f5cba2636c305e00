package simulate

import (
	"errors"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
)

// noticesOutage is how long a worker takes to give up on its service.
const noticesOutage = 20 * time.Second

// changePause carries a transition of a scope's pause out.
func (w *world) changePause(s pause.Scope, transition func(p *pause.Pause) error) error {
	if w.full {
		return errDiskFull
	}
	p := pause.Pause{Scope: s}
	old := w.pauses[s]
	if old != nil {
		p = *old
	}
	if err := transition(&p); err != nil {
		if errors.Is(err, state.ErrUnchanged) {
			return nil
		}
		return err
	}
	if err := pause.CheckChange(old, &p); err != nil {
		w.fail("pause of %s: %v", s, err)
	}
	w.pauses[s] = &p
	for _, process := range w.procs {
		process.wake()
	}
	return nil
}

// inForce are the pauses that hold anything back, in the order of their scopes.
func (w *world) inForce() (all []pause.Pause) {
	for _, s := range pause.Path(w.client) {
		if p := w.pauses[s]; p != nil && p.InForce() {
			all = append(all, *p)
		}
	}
	return all
}

func (w *world) held(b *bead.Bead) bool {
	all := w.inForce()
	return len(all) > 0 && pause.Holding(all, w.client, b) != nil
}

// note takes note of the end of an attempt.
func (w *world) note(t pause.Try, f fault.Fault) error {
	e := pause.Ended{Try: t, Fault: f, Client: w.client}
	return e.Note(policy.Pauses(w.def), w.changePause)
}

func (w *world) noteEnd(rec *retire.Record) error {
	return w.note(pause.Try{At: rec.CreatedAt, BeadID: rec.BeadID, Assignment: rec.AssignmentID}, rec.Fault)
}
