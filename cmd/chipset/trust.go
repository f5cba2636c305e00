package main

import (
	"bufio"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

type trustOptions struct{ yes bool }

// AddFlags puts the options on a command.
func (o *trustOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.yes, "yes", false, "trust it without asking")
}

func newTrustCmd(a *app) *cobra.Command {
	var o trustOptions
	return withFlags(&o, &cobra.Command{
		Use:   "trust",
		Short: "Trust a rig that came with its repository",
		Long: `A rig is live only in the repository in which it was made: git's own folder,
which no commit can write to, names it. State that came with a clone does
nothing: no command reads it, no hook of a client answers from it, and nothing
in it runs. trust shows what the rig would run and what waits in it, asks you,
and makes it the rig of this repository.`,
		Example: "  chipset trust\n  chipset trust --yes",
		Args:    nargs(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runTrust(cmd.Context(), o, a) },
	})
}

func runTrust(ctx context.Context, o trustOptions, a *app) error {
	dir, err := a.rigDir(ctx)
	if err != nil {
		return err
	}
	r, err := rig.OpenUntrusted(ctx, dir, a.clock)
	if err != nil {
		return err
	}
	if err := a.showUntrusted(r); err != nil {
		return err
	}
	if err := a.checkPerson(dir); err != nil {
		return err
	}
	if !o.yes {
		a.note("\nType yes to trust it: ")
		answer, err := bufio.NewReader(a.stdin).ReadString('\n')
		if err != nil || strings.TrimSpace(answer) != "yes" {
			return state.Conflictf("trust", "not trusted; nothing was changed")
		}
	}
	if err := r.Trust(); err != nil {
		return err
	}
	return a.did(outcome{Did: "trusted", RigID: string(r.Tree.RigID()), Path: r.Dir}, nil, "trusted %s in %s\n", r.Tree.RigID(), r.Dir)
}

// effects describes what a definition runs, gives workers access to, and sends elsewhere.
func effects(d *definition.Definition) [][2]string {
	all := [][2]string{{"workers", d.Worker.Default}, {"test", d.Merge.Test.String()}, {"setup", d.Worktree.Setup.String()},
		{"notify", strings.Join(d.Notify.Command, " ")}, {"webhook", d.Notify.Webhook}, {"pushes to", d.Merge.Remote},
		{"env", strings.Join(d.Allow.Env, " ")}, {"reads", strings.Join(d.Allow.Read, " ")}, {"writes", strings.Join(d.Allow.Write, " ")},
		{"takes over", strings.Join(d.Worktree.Provided(), " ")}}
	for _, p := range d.Worker.Presets {
		text := p.Name + ":"
		for _, name := range slices.Sorted(maps.Keys(p.Env)) {
			text += " " + name + "=" + p.Env[name]
		}
		text += " " + p.Command.String()
		for _, level := range slices.Sorted(maps.Keys(p.Permissions)) {
			text += " [" + level + ": " + strings.Join(p.Permissions[level], " ") + "]"
		}
		all = append(all, [2]string{"preset", text})
	}
	if d.Sandbox == "off" {
		all = append(all, [2]string{"sandbox", "off"})
	}
	if d.Worker.Permissions == "full" {
		all = append(all, [2]string{"agents", "permissions: full"})
	}
	return slices.DeleteFunc(all, func(line [2]string) bool { return line[1] == "" })
}

// showUntrusted prints what a rig would run, and what it holds.
func (a *app) showUntrusted(r *rig.Rig) error {
	a.note("%s in %s came with the repository.\n\nIt would run:\n", r.Tree.RigID(), r.Dir)
	if r.Def == nil {
		a.note("  nothing, because chipset.yaml is invalid: chipset validate\n")
	} else {
		for _, line := range effects(r.Def) {
			a.note("  %-10s %s\n", line[0], clean(line[1]))
		}
	}
	beads, _, err := r.Beads.All()
	if err != nil {
		return err
	}
	open := 0
	for i := range beads {
		b := &beads[i]
		if b.Status.Finished() {
			continue
		}
		open++
		if b.Worker != "" {
			a.note("  bead       %s runs %s\n", b.ID, clean(b.Worker))
		}
	}
	agents, _, err := r.Agents.All()
	if err != nil {
		return err
	}
	unread := 0
	for i := range agents {
		letters, _, err := r.Mailbox(agents[i].ID).Unread()
		if err != nil {
			return err
		}
		unread += len(letters)
	}
	a.note("\nIt holds %s and %s.\n", wording.Count(open, "unfinished bead"), wording.Count(unread, "unread message"))
	return nil
}
