package doctor

import (
	"context"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// maxAhead is how far ahead of the clock a time may be before it is reported: clocks
// differ by minutes, and may be set back by hours.
const maxAhead = 24 * time.Hour

// allTimes checks that no object was changed before it was made, and that no time is in the future.
func (c *relations) allTimes(context.Context) error {
	for i := range c.Agents {
		c.times(c.r.Agents.Path(string(c.Agents[i].ID)), c.Agents[i].CreatedAt, &c.Agents[i].UpdatedAt)
	}
	for i := range c.Beads {
		b := &c.Beads[i]
		c.times(c.r.Beads.Path(string(b.ID)), b.CreatedAt, &b.UpdatedAt, b.ClosedAt)
		if b.Status.Finished() != (b.ClosedAt != nil) {
			c.add("bead-closed", c.r.Beads.Path(string(b.ID)), Warning, "", "it is %s, and closed_at is %s", b.Status, orUnset(b.ClosedAt))
		}
	}
	for i := range c.Convoys {
		c.times(c.r.Convoys.Path(string(c.Convoys[i].ID)), c.Convoys[i].CreatedAt, c.Convoys[i].CompletedAt)
	}
	for i := range c.Queue {
		c.times(c.r.Queue.Path(string(c.Queue[i].ID)), c.Queue[i].SubmittedAt, &c.Queue[i].UpdatedAt)
	}
	for i := range c.Dispatch {
		c.times(c.r.Dispatch.Path(string(c.Dispatch[i].BeadID)), c.Dispatch[i].CreatedAt)
	}
	for a, end := range c.Retire {
		c.times(c.r.Retire.Path(string(a)), end.CreatedAt, &end.UpdatedAt)
	}
	for i := range c.Incidents {
		in := &c.Incidents[i]
		c.times(c.r.Incidents.Path(string(in.ID)), in.OpenedAt, in.EscalatedAt, in.ResolvedAt)
	}
	for id, h := range c.Hooks {
		c.times(c.r.Hooks.Path(string(id)), h.LastActivity)
	}
	for i := range c.found {
		c.found[i].settled = true
	}
	return nil
}

func orUnset(t *state.Time) string {
	if t == nil {
		return "not set"
	}
	return t.String()
}

// future reports a time that lies too far ahead of the clock.
func (l *inspection) future(p state.Path, t state.Time) bool {
	ahead := t.After(l.r.Clock().Add(maxAhead))
	if ahead {
		l.addSettled("future-time", p, Warning, "", "%s is more than %s ahead of the clock", t, maxAhead)
	}
	return ahead
}

// times checks that the time at which an object was made comes before its later ones.
func (c *relations) times(p state.Path, made state.Time, later ...*state.Time) {
	c.future(p, made)
	for _, t := range later {
		switch {
		case t == nil || t.IsZero() || c.future(p, *t):
		case t.Before(made.Time):
			c.add("time-order", p, Warning, "", "%s is before %s, when it was made", t, made)
		}
	}
}
