package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/event"
)

// maxConvoyName bounds a convoy's name, in bytes.
const maxConvoyName = 200

func newConvoyCmd(a *app) *cobra.Command {
	return newGroupCmd("convoy", "Convoys: groups of beads and how much of them has landed",
		newConvoyCreateCmd(a), newConvoyListCmd(a), newConvoyShowCmd(a))
}

func newConvoyCreateCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "create NAME BEAD…",
		Short: "Make a convoy of beads; prints its ID alone",
		Long: `Make a convoy of beads, and print its ID alone. A bead travels in one convoy at
most: one that is in another already is exit 4, and nothing is made.`,
		Example: "  chipset convoy create \"release 1.2\" gt-abc12 gt-def34",
		Args:    nargs(2, -1, "a name and at least one bead"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runConvoyCreate(cmd.Context(), args[0], args[1:], a)
		},
	}
}

func runConvoyCreate(ctx context.Context, name string, names []string, a *app) error {
	r, by, err := a.openSpeaker(ctx)
	if err != nil {
		return err
	}
	if err := oneLine("the name", name, maxConvoyName); err != nil {
		return err
	}
	c, err := loadConvoy(r, name, names)
	if err != nil {
		return err
	}
	for {
		c.ID = convoy.NewID()
		err := r.Convoys.Create(string(c.ID), c)
		if err == nil {
			break
		}
		if !errors.Is(err, state.ErrExists) {
			return err
		}
	}
	if err := joinConvoy(ctx, r, &c); err != nil {
		return err
	}
	r.Emit(event.Event{Type: "convoy.created", Agent: by, Subject: string(c.ID), Text: c.Name})
	a.printf("%s\n", c.ID)
	return nil
}

// loadConvoy makes the convoy of the named beads, without an ID.
func loadConvoy(r *rig.Rig, name string, names []string) (convoy.Convoy, error) {
	c := convoy.Convoy{Name: name, CreatedAt: r.Clock.Now()}
	landed := 0
	for _, n := range names {
		b, err := r.Beads.Get(n)
		if err != nil {
			return c, err
		}
		if b.ConvoyID != "" {
			return c, state.Conflictf("bead "+n, "is in convoy %s already", b.ConvoyID)
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
	return c, nil
}

// joinConvoy writes the convoy into its beads. The convoy's own list counts, so
// a crash in between loses nothing; when somebody else was faster with a bead,
// what was made is taken back.
func joinConvoy(ctx context.Context, r *rig.Rig, c *convoy.Convoy) error {
	for i, id := range c.BeadIDs {
		err := setConvoy(ctx, r, id, "", c.ID)
		if err == nil {
			continue
		}
		failed := []error{fmt.Errorf("convoy %s: %w", c.ID, err)}
		for _, joined := range c.BeadIDs[:i] {
			failed = append(failed, setConvoy(ctx, r, joined, c.ID, ""))
		}
		failed = append(failed, r.Tree.Remove(r.Convoys.Path(string(c.ID))))
		return errors.Join(failed...)
	}
	return nil
}

// setConvoy is a compare-and-swap on the convoy of a bead.
func setConvoy(ctx context.Context, r *rig.Rig, id state.BeadID, from, to state.ConvoyID) error {
	_, err := r.Beads.Update(ctx, string(id), func(b *bead.Bead) error {
		if b.ConvoyID != from {
			return state.Conflictf("bead "+string(id), "is in convoy %q meanwhile", b.ConvoyID)
		}
		b.ConvoyID = to
		b.Touch(r.Clock.Now())
		return nil
	})
	return err
}

type jsonOptions struct{ json bool }

// AddFlags registers --json.
func (o *jsonOptions) AddFlags(fs *pflag.FlagSet) { addJSON(fs, &o.json) }

func newConvoyListCmd(a *app) *cobra.Command {
	var opts jsonOptions
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List convoys",
		Example: "  chipset convoy list",
		Args:    nargs(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runConvoyList(cmd.Context(), opts, a) },
	}
	opts.AddFlags(cmd.Flags())
	return cmd
}

func runConvoyList(ctx context.Context, opts jsonOptions, a *app) error {
	r, err := a.openState(ctx)
	if err != nil {
		return err
	}
	all, bad, err := r.Convoys.All()
	if err != nil {
		return err
	}
	warnAll(a, bad)
	slices.SortStableFunc(all, func(x, y convoy.Convoy) int { return x.CreatedAt.Compare(y.CreatedAt.Time) })
	if opts.json {
		return printList(a, all)
	}
	byID, err := beadIndex(r)
	if err != nil {
		return err
	}
	rows := make([][]string, 0, len(all))
	for i := range all {
		rows = append(rows, []string{string(all[i].ID), landedOf(&all[i], byID), all[i].Name, localTime(all[i].CreatedAt)})
	}
	return a.table([]string{"ID", "LANDED", "NAME", "CREATED"}, rows)
}

func beadIndex(r *rig.Rig) (map[state.BeadID]*bead.Bead, error) {
	all, _, err := r.Beads.All()
	return bead.Index(all), err
}

// landedOf is counted from the beads: the stored progress is the mayor's, and
// he may not have looked yet.
func landedOf(c *convoy.Convoy, byID map[state.BeadID]*bead.Bead) string {
	landed := 0
	for _, id := range c.BeadIDs {
		if b := byID[id]; b != nil && b.Status.Landed() {
			landed++
		}
	}
	return fmt.Sprintf("%d/%d", landed, len(c.BeadIDs))
}

func newConvoyShowCmd(a *app) *cobra.Command {
	var opts jsonOptions
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show a convoy and its beads",
		Example: "  chipset convoy show cv-k3f9q",
		Args:    nargs(1, 1, "the ID of a convoy"),
		RunE:    func(cmd *cobra.Command, args []string) error { return runConvoyShow(cmd.Context(), opts, args[0], a) },
	}
	opts.AddFlags(cmd.Flags())
	return cmd
}

func runConvoyShow(ctx context.Context, opts jsonOptions, id string, a *app) error {
	r, err := a.openState(ctx)
	if err != nil {
		return err
	}
	c, err := r.Convoys.Get(id)
	if err != nil {
		return err
	}
	if opts.json {
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
}
