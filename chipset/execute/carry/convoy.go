package carry

import (
	"context"
	"errors"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
)

// MakeConvoy makes a convoy of beads, each of which is in at most one convoy. The
// convoy is durable before a bead names it, and its own list is authoritative, so a crash in
// between loses nothing. If a convoy of this name and these beads exists, it is
// completed and returned, so the call can be repeated after an error.
// Errors: *state.Unknown, and state.ErrConflict if a bead is in another convoy; then
// nothing was made.
func MakeConvoy(ctx context.Context, r *rig.Rig, by state.AgentID, name string, ids []state.BeadID) (convoy.Convoy, error) {
	// Under the lock, the check stays valid until the beads name the convoy.
	lock, err := r.Tree.Lock(ctx, state.LockDispatch, "convoys")
	if err != nil {
		return convoy.Convoy{}, err
	}
	defer lock.Unlock()
	c, err := newConvoy(r, name, ids)
	if err != nil {
		return c, err
	}
	if c.ID != "" {
		err = (&carrier{Rig: r}).settle(convoy.Dir, bead.Dir)
	}
	for c.ID == "" || errors.Is(err, state.ErrExists) {
		c.ID = convoy.NewID()
		err = r.Convoys.By(by, "").Create(string(c.ID), c)
	}
	if err != nil {
		return c, err
	}
	for _, id := range c.BeadIDs {
		_, err = r.Beads.Update(ctx, string(id), func(b *bead.Bead) error {
			if b.ConvoyID == c.ID {
				return state.ErrUnchanged
			}
			b.ConvoyID = c.ID
			b.Touch(r.Clock.Now())
			return nil
		})
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// newConvoy checks the beads and returns their convoy: a new one without an ID, or the
// existing one.
func newConvoy(r *rig.Rig, name string, ids []state.BeadID) (convoy.Convoy, error) {
	c := convoy.Convoy{Name: name, CreatedAt: r.Clock.Now()}
	var all []*bead.Bead
	landed := 0
	for _, id := range ids {
		b, err := r.Beads.Get(string(id))
		if err != nil {
			return c, err
		}
		if slices.Contains(c.BeadIDs, b.ID) {
			continue
		}
		all, c.BeadIDs = append(all, &b), append(c.BeadIDs, b.ID)
		if b.Status.Landed() {
			landed++
		}
	}
	known, _, err := r.Convoys.All()
	if err != nil {
		return c, err
	}
	for _, b := range all {
		in := b.ConvoyID
		for _, k := range known {
			if slices.Contains(k.BeadIDs, b.ID) {
				in = k.ID
			}
			if in == k.ID && k.Name == name && slices.Equal(k.BeadIDs, c.BeadIDs) {
				return k, nil
			}
		}
		if in != "" {
			return c, state.Conflictf("bead "+string(b.ID), "is in convoy %s already", in)
		}
	}
	c.Progress = float64(landed) / float64(len(c.BeadIDs))
	if landed == len(c.BeadIDs) {
		c.CompletedAt = &c.CreatedAt
	}
	return c, nil
}
