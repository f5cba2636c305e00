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

// MakeConvoy makes a convoy of beads, each of which is in one convoy at most. The
// convoy is durable before a bead names it, and its own list counts: a crash in
// between loses nothing. Errors: *state.Unknown, and state.ErrConflict when a bead is
// in another convoy; then nothing was made.
func MakeConvoy(ctx context.Context, r *rig.Rig, by state.AgentID, name string, ids []state.BeadID) (convoy.Convoy, error) {
	// One at a time: what is checked here holds until the beads name the convoy.
	lock, err := r.Tree.Lock(ctx, state.LockDispatch, "convoys")
	if err != nil {
		return convoy.Convoy{}, err
	}
	defer lock.Unlock()
	c := convoy.Convoy{Name: name, CreatedAt: r.Clock.Now()}
	landed := 0
	for _, id := range ids {
		b, err := r.Beads.Get(string(id))
		if err != nil {
			return c, err
		}
		if b.ConvoyID != "" {
			return c, state.Conflictf("bead "+string(id), "is in convoy %s already", b.ConvoyID)
		}
		if slices.Contains(c.BeadIDs, b.ID) {
			continue
		}
		c.BeadIDs = append(c.BeadIDs, b.ID)
		if b.Status.Landed() {
			landed++
		}
	}
	c.Progress = float64(landed) / float64(len(c.BeadIDs))
	if landed == len(c.BeadIDs) {
		c.CompletedAt = &c.CreatedAt
	}
	for err = state.ErrExists; errors.Is(err, state.ErrExists); {
		c.ID = convoy.NewID()
		err = r.Convoys.By(by, "").Create(string(c.ID), c)
	}
	if err != nil {
		return c, err
	}
	for _, id := range c.BeadIDs {
		_, err = r.Beads.Update(ctx, string(id), func(b *bead.Bead) error {
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
