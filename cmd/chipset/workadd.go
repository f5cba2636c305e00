package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state/bead"
)

// beadFlags are the fields of a bead that add and edit set.
type beadFlags struct {
	description, file, accept, priority, kind, worker string
	blockedBy, labels                                 []string
	allowEmpty                                        bool
}

// AddFlags registers the flags that add and edit share.
func (o *beadFlags) AddFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&o.description, "description", "d", "", "what to do, as `text`")
	fileFlag(fs, &o.file, "file", "f", "read the description from a `file`; - is standard input")
	fs.StringVar(&o.accept, "accept", "", "a `text` that says when the bead is finished")
	fs.StringVarP(&o.priority, "priority", "p", "P2", "how urgent it is, `P1|P2|P3`; P1 comes first")
	fs.StringVar(&o.kind, "type", "", "your own `word` for the kind of work")
	fs.StringSliceVar(&o.blockedBy, "blocked-by", nil, "a `bead` that must land first; may be repeated")
	fs.StringSliceVar(&o.labels, "label", nil, "a `label`; may be repeated")
	fs.StringVar(&o.worker, "worker", "", "a preset or a `command` line, instead of the rig's default worker")
	fs.BoolVar(&o.allowEmpty, "allow-empty", false, "succeed even if nothing in the repository changes")
}

func newWorkAddCmd(a *app) *cobra.Command {
	var opts beadFlags
	return withFlags(&opts, &cobra.Command{
		Use:   "add TITLE",
		Short: "Add a bead, and print its ID",
		Long: `Add a bead, and print only its ID. It is durable when the command returns. With
the worker sh the description is the script to run.`,
		Example: "  chipset work add \"Say hello\" -d \"echo hello > hello.txt\" -p P1\n  chipset work add \"Then this\" -f notes.md --blocked-by gt-abc12 --accept \"go test passes\"",
		Args:    nargs(1, 1, "one title (quote it)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runWorkAdd(cmd.Context(), opts, cmd.Flags().Changed("description"), args[0], a)
		},
	})
}

func runWorkAdd(ctx context.Context, opts beadFlags, described bool, title string, a *app) error {
	me, err := a.openRigActor(ctx)
	if err != nil {
		return err
	}
	b := bead.Bead{Title: title}
	set := map[string]bool{"description": described || opts.file != "", "accept": true, "priority": true, "type": true,
		"blocked-by": true, "label": true, "worker": true, "allow-empty": true}
	if err := opts.apply(ctx, a, me.Rig, &b, func(flag string) bool { return set[flag] }, described); err != nil {
		return err
	}
	if err := a.checkWorker(me.Rig, b.Worker, true); err != nil {
		return err
	}
	b, err = me.AddBead(ctx, b)
	return a.did(b, err, "%s\n", b.ID)
}

// apply checks the flags and sets the fields of a bead. given reports which flags
// count; described is true if -d is one of them.
func (o *beadFlags) apply(ctx context.Context, a *app, r *rig.Rig, b *bead.Bead, given func(flag string) bool, described bool) error {
	if given("description") || o.file != "" {
		text, err := textInput{flag: "--description", fileFlag: "--file", text: o.description, file: o.file, textGiven: described}.read(ctx, a, bead.MaxText)
		if err != nil {
			return err
		}
		b.Description = text
	}
	if given("accept") {
		b.Acceptance = o.accept
	}
	if given("priority") {
		b.Priority = bead.Priority(strings.ToUpper(o.priority))
		if !slices.Contains([]bead.Priority{bead.P1, bead.P2, bead.P3}, b.Priority) {
			return usagef("--priority %q is not P1, P2 or P3", o.priority)
		}
	}
	if given("worker") {
		if err := a.checkWorker(r, o.worker, false); err != nil {
			return err
		}
		b.Worker = o.worker
	}
	if given("allow-empty") {
		b.AllowEmpty = o.allowEmpty
	}
	if given("type") {
		b.Type = o.kind
	}
	if given("blocked-by") {
		var err error
		if b.BlockedBy, err = actor.BeadIDs(o.blockedBy); err != nil {
			return fmt.Errorf("--blocked-by: %w", err)
		}
	}
	if given("label") {
		b.Labels = nil
		for _, label := range actor.Words(o.labels) {
			if !slices.Contains(b.Labels, label) {
				b.Labels = append(b.Labels, label)
			}
		}
	}
	return nil
}

// checkWorker refuses a worker that could never be started; "" is the rig's default. With
// warn it also warns of a program that is not on PATH. A path is relative to the worktree.
func (a *app) checkWorker(r *rig.Rig, worker string, warn bool) error {
	if worker == "" {
		return nil
	}
	if r.Def != nil {
		if _, ok := r.Def.Worker.Preset(worker); ok {
			return nil
		}
	}
	presets := clients.Presets()
	preset, err := agentcli.ResolveWorker(worker, presets)
	if err != nil {
		return usagef("--worker: %v", err)
	}
	program := preset.Command[0]
	if !warn || knownPreset(worker) || strings.Contains(program, "/") {
		return nil
	}
	if _, err := exec.LookPath(program); err != nil {
		a.warnf("--worker: %q is neither a preset nor a command on PATH", program)
	}
	return nil
}

// knownPreset reports whether a built-in preset has that name.
func knownPreset(worker string) bool {
	return slices.ContainsFunc(clients.Presets(), func(p agentcli.Preset) bool { return p.Name == worker })
}

type workEditOptions struct {
	beadFlags
	title string
}

// AddFlags registers the flags of work edit.
func (o *workEditOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.title, "title", "", "the new `title`")
	o.beadFlags.AddFlags(fs)
}

func newWorkEditCmd(a *app) *cobra.Command {
	var opts workEditOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "edit BEAD",
		Short: "Change a bead that nobody is working on",
		Long: `Change the given fields of a bead that is open, failed or blocked (exit 4 for
any other status). --label and --blocked-by replace the whole list; "" clears
it.`,
		Example: "  chipset work edit gt-abc12 --title \"A better title\" -p P1\n  chipset work edit gt-abc12 --blocked-by \"\"",
		Args:    nargs(1, 1, "the ID of a bead"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runWorkEdit(cmd.Context(), opts, cmd.Flags().Changed, args[0], a)
		},
	})
}

func runWorkEdit(ctx context.Context, opts workEditOptions, given func(flag string) bool, id string, a *app) error {
	me, err := a.openRigActor(ctx)
	if err != nil {
		return err
	}
	if err := me.Authority("work edit"); err != nil { // before anything is read from a pipe
		return err
	}
	flags := []string{"title", "description", "file", "accept", "priority", "type", "blocked-by", "label", "worker", "allow-empty"}
	if !slices.ContainsFunc(flags, given) {
		return withHint(usagef("no change was given"), "chipset help work edit lists the fields")
	}
	if err := opts.prepare(ctx, a, me.Rig, given); err != nil {
		return err
	}
	changed := slices.DeleteFunc(flags, func(f string) bool { return !given(f) })
	b, err := me.EditBead(ctx, id, actor.BeadEdit{What: strings.Join(changed, ", "), Dependencies: given("blocked-by"),
		Change: func(b *bead.Bead) error { return opts.change(ctx, a, me.Rig, b, given) }})
	return a.did(b, err, "%s edited\n", b.ID)
}

// prepare checks the flags, and reads files and pipes, before anything is locked.
func (o *workEditOptions) prepare(ctx context.Context, a *app, r *rig.Rig, given func(flag string) bool) error {
	var scratch bead.Bead
	if err := o.apply(ctx, a, r, &scratch, given, given("description")); err != nil {
		return err
	}
	if err := a.checkWorker(r, scratch.Worker, true); err != nil {
		return err
	}
	if given("file") {
		o.description, o.file = scratch.Description, ""
	}
	return nil
}

// change makes the edit. It runs under the bead's lock.
func (o *workEditOptions) change(ctx context.Context, a *app, r *rig.Rig, b *bead.Bead, given func(flag string) bool) error {
	if given("title") {
		b.Title = o.title
	}
	described := func(flag string) bool { return given(flag) || flag == "description" && given("file") }
	return o.apply(ctx, a, r, b, described, false)
}
