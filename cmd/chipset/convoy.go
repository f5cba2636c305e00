package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
)

func newConvoyCmd(a *app) *cobra.Command {
	return newGroupCmd("convoy", "Group beads into convoys, and see how much has landed",
		newConvoyCreateCmd(a), newConvoyListCmd(a), newConvoyShowCmd(a))
}

func newConvoyCreateCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "create NAME BEAD…",
		Short: "Create a convoy of beads, and print its ID",
		Long: `Create a convoy of beads, and print only its ID. A bead belongs to one convoy at
most: if one of them already belongs to another, nothing is created (exit 4).`,
		Example: "  chipset convoy create \"release 1.2\" gt-abc12 gt-def34",
		Args:    nargs(2, -1, "a name and at least one bead"),
		RunE: with(a.openActor, func(ctx context.Context, s *actor.Actor, args []string) error {
			c, err := s.CreateConvoy(ctx, args[0], args[1:])
			return a.did(c, err, "%s\n", c.ID)
		}),
	}
}

func newConvoyListCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List convoys",
		Example: "  chipset convoy list",
		Args:    nargs(0, 0, ""),
		RunE: with(a.openState, func(_ context.Context, r *rig.Rig, _ []string) error {
			all, bad, err := r.Convoys.All()
			if err != nil {
				return err
			}
			warnAll(a, bad)
			slices.SortStableFunc(all, func(x, y convoy.Convoy) int { return x.CreatedAt.Compare(y.CreatedAt.Time) })
			byID, err := beadIndex(r)
			if err != nil {
				return err
			}
			return showList(a, all, []string{"ID", "LANDED", "NAME", "CREATED"}, func(c *convoy.Convoy) []string {
				return []string{string(c.ID), landedOf(c, byID), c.Name, localTime(c.CreatedAt)}
			})
		}),
	}
}

func landedOf(c *convoy.Convoy, byID map[state.BeadID]*bead.Bead) string {
	return fmt.Sprintf("%d/%d", c.Landed(byID), len(c.BeadIDs))
}

func beadIndex(r *rig.Rig) (map[state.BeadID]*bead.Bead, error) {
	all, _, err := r.Beads.All()
	return bead.Index(all), err
}

func newConvoyShowCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show CONVOY",
		Short:   "Show a convoy and its beads",
		Example: "  chipset convoy show cv-k3f9q",
		Args:    nargs(1, 1, "the ID of a convoy"),
		RunE: with(a.openState, func(_ context.Context, r *rig.Rig, args []string) error {
			c, err := r.Convoys.Get(args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(c)
			}
			byID, err := beadIndex(r)
			if err != nil {
				return err
			}
			a.printf("%s  %s landed  %s\n", c.ID, landedOf(&c, byID), clean(c.Name))
			rows := make([][]string, 0, len(c.BeadIDs))
			for _, id := range c.BeadIDs {
				row := []string{"  " + string(id), "missing", "", ""}
				if b := byID[id]; b != nil {
					row = []string{"  " + string(id), string(b.Status), b.Title, strings.Join(bead.Blockers(b, byID), ", ")}
				}
				rows = append(rows, row)
			}
			return a.table([]string{"  BEAD", "STATUS", "TITLE", "WAITS FOR"}, rows)
		}),
	}
}
