package doctor

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
)

// groups checks convoys and their members against each other.
func (c *relations) groups() {
	known := map[state.ConvoyID]*convoy.Convoy{}
	for i := range c.Convoys {
		cv := &c.Convoys[i]
		known[cv.ID] = cv
		p := c.r.Convoys.Path(string(cv.ID))
		for _, id := range cv.BeadIDs {
			b := c.BeadByID[id]
			switch {
			case b == nil:
				c.add("convoy", p, Warning, "", "it lists the bead %s, which does not exist", id)
			case b.ConvoyID == "":
				f := c.add("convoy-member", c.r.Beads.Path(string(id)), Warning, "", "the convoy %s lists it, but it names no convoy", cv.ID)
				f.repair = func(ctx context.Context) error { return nameConvoy(ctx, c.r, id, cv.ID) }
			case b.ConvoyID != cv.ID:
				c.add("convoy-member", c.r.Beads.Path(string(id)), Warning, "decide which convoy it belongs to, and correct the other by hand",
					"the convoy %s lists it, but it names %s", cv.ID, b.ConvoyID)
			}
		}
		landed := cv.Landed(c.BeadByID)
		if n := len(cv.BeadIDs); n > 0 && math.Abs(cv.Progress-float64(landed)/float64(n)) > 1e-6 {
			c.add("convoy-progress", p, Info, "", "it says %.2f, but %d of %d beads have landed", cv.Progress, landed, n)
		}
	}
	for i := range c.Beads {
		b := &c.Beads[i]
		if b.ConvoyID == "" {
			continue
		}
		p := c.r.Beads.Path(string(b.ID))
		switch cv := known[b.ConvoyID]; {
		case cv == nil && c.absent(c.r.Convoys.Path(string(b.ConvoyID))):
			c.add("convoy", p, Warning, "", "it names the convoy %s, which does not exist", b.ConvoyID)
		case cv != nil && !slices.Contains(cv.BeadIDs, b.ID):
			f := c.add("convoy-member", p, Warning, "", "it names the convoy %s, which does not list it", b.ConvoyID)
			f.repair = func(ctx context.Context) error { return listInConvoy(ctx, c.r, b.ID, b.ConvoyID) }
		}
	}
}

// listInConvoy adds a bead that names a convoy to its list.
func listInConvoy(ctx context.Context, r *rig.Rig, id state.BeadID, cv state.ConvoyID) error {
	_, err := r.Convoys.Update(ctx, string(cv), func(c *convoy.Convoy) error {
		b, err := r.Beads.Get(string(id))
		if err != nil {
			return err
		}
		if b.ConvoyID != cv || slices.Contains(c.BeadIDs, id) {
			return state.ErrUnchanged
		}
		c.BeadIDs = append(slices.Clone(c.BeadIDs), id)
		if !b.Status.Landed() {
			c.CompletedAt = nil
		}
		return nil
	})
	return err
}

// branchNames checks that no two beads share a branch.
func (c *relations) branchNames() {
	owner := map[string]state.BeadID{}
	for i := range c.Beads {
		b := &c.Beads[i]
		if b.Branch == "" {
			continue
		}
		p := c.r.Beads.Path(string(b.ID))
		if own := bead.BranchFor(b.ID, 1); b.Branch != own && !strings.HasPrefix(b.Branch, own+"-") {
			c.add("bead-branch", p, Warning, "", "its branch %q is not named after it", b.Branch)
		}
		if other, taken := owner[b.Branch]; taken {
			c.add("bead-branch", p, Warning, "", "%s has the branch %s, too", other, b.Branch)
		}
		owner[b.Branch] = b.ID
	}
}
