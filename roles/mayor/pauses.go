package mayor

import (
	"slices"

	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/pause"
)

// gate is one pause in force, as this decision leaves it.
type gate struct {
	*pause.Pause
	// admitted are those that may start and have not ended.
	admitted []state.BeadID
	// room is how many more may be admitted.
	room int
	// wanted is true once a bead of the scope was seen that is ready or out.
	wanted bool
}

// readGates looks at the pauses that are in force.
func (d *decision) readGates() {
	for i := range d.Pauses {
		g := &gate{Pause: &d.Pauses[i]}
		for _, id := range g.Admitted {
			if b := d.Backlog.Get(id); b != nil && (b.Status == bead.Hooked || b.Status == bead.InProgress) {
				g.admitted = append(g.admitted, id)
			}
		}
		now := d.Now
		if d.Mended[g.Scope] && g.Waits(now) {
			now = g.Until // a check passes again: that is due
		}
		g.room = g.Room(now) - len(g.admitted)
		d.gates = append(d.gates, g)
	}
}

// client is the scope of the client that works on a bead.
func (d *decision) client(b *bead.Bead) pause.Scope {
	scope, known := d.clients[b.Worker]
	if !known {
		scope = d.Policy.Client(b.Worker)
		d.clients[b.Worker] = scope
	}
	return scope
}

// gatesOf are the gates that a bead must pass.
func (d *decision) gatesOf(b *bead.Bead) (all []*gate) {
	if len(d.gates) == 0 {
		return nil
	}
	needs := pause.Needs(d.client(b), b)
	for _, g := range d.gates {
		if slices.Contains(needs, g.Scope) {
			g.wanted = true
			all = append(all, g)
		}
	}
	return all
}

// admit returns what lets a bead pass, or false when a gate has no room for it.
func (d *decision) admit(b *bead.Bead) (actions roles.Group, ok bool) {
	closed := d.gatesOf(b)
	closed = slices.DeleteFunc(closed, func(g *gate) bool { return slices.Contains(g.admitted, b.ID) })
	if slices.ContainsFunc(closed, func(g *gate) bool { return g.room <= 0 }) {
		return nil, false
	}
	for _, g := range closed {
		g.admitted, g.room = append(slices.Clip(g.admitted), b.ID), g.room-1
		actions = append(actions, Admit{Scope: g.Scope, Beads: g.admitted})
	}
	return actions, true
}

// failedAt reports whether a bead is among those that a gate was closed for. Another
// one is the better probe.
func (d *decision) failedAt(b *bead.Bead) bool {
	return slices.ContainsFunc(d.gatesOf(b), func(g *gate) bool {
		return slices.ContainsFunc(g.Tried, func(t pause.Try) bool { return t.BeadID == b.ID })
	})
}

// passes are how often dispatch goes through the ready beads: those that no gate was
// closed for come first.
func (d *decision) passes() []bool {
	if len(d.gates) == 0 {
		return []bool{false}
	}
	return []bool{false, true}
}

// waiting admits the beads that are on hooks and wait: they were there first, and
// their sessions are kept.
func (d *decision) waiting() {
	for b := range d.Backlog.Out() {
		d.gatesOf(b) // it is wanted
	}
	for _, g := range d.gates {
		for _, id := range g.Waiting {
			b := d.Backlog.Get(id)
			if b == nil || d.touched[id] || b.Status != bead.Hooked && b.Status != bead.InProgress || slices.Contains(g.admitted, id) {
				continue
			}
			if actions, ok := d.admit(b); ok && len(actions) > 0 {
				d.do(actions...)
			}
		}
	}
}

// lift ends the pauses that are due and that nothing waits for.
func (d *decision) lift() {
	for _, g := range d.gates {
		if !g.wanted && g.Room(d.Now) > 0 {
			d.do(Lift{Scope: g.Scope})
		}
	}
}

// excused reports whether a failure is not the bead's to answer for. One that nothing
// explains is not, the first time: what other beads come to tells whose it is.
func (d *decision) excused(b *bead.Bead, f fault.Fault) bool {
	switch f.Class {
	case fault.Capacity, fault.Environment:
		return true
	case fault.Unknown:
		return len(b.ReworkNotes) == 0 || slices.ContainsFunc(d.gatesOf(b), func(g *gate) bool { return g.Kind == f.Kind })
	case fault.Work:
	}
	return false
}
