package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

type tailOptions struct{ follow, raw, all bool }

// AddFlags registers the flags of tail.
func (o *tailOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVarP(&o.follow, "follow", "f", false, "keep printing until the session is over")
	fs.BoolVar(&o.raw, "raw", false, "print the lines as the client wrote them")
	fs.BoolVar(&o.all, "all", false, "print the whole transcript, not only its end")
}

func newTailCmd(a *app) *cobra.Command {
	var opts tailOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "tail AGENT|BEAD",
		Short: "Show what a worker prints, in readable lines",
		Long: `Print the end of a worker's transcript: what the agent said, its tool calls with
their arguments, their results (shortened), and changes as removed and added
lines. AGENT shows its present or last session, BEAD the present or last
attempt.`,
		Example: "  chipset tail polecat-alpha -f\n  chipset tail gt-abc12",
		Args:    nargs(1, 1, "an agent or a bead"),
		RunE: with(a.openState, func(ctx context.Context, r *rig.Rig, args []string) error {
			session, err := sessionNamed(r, args[0])
			if err != nil {
				return err
			}
			t := transcriptPrinter{app: a, opts: opts, rig: r, session: session}
			return t.run(ctx)
		}),
	})
}

// sessionNamed returns the session of the agent or bead in an argument.
func sessionNamed(r *rig.Rig, name string) (state.SessionID, error) {
	agent, bead, err := agentOrBead(r, name)
	if err != nil {
		return "", err
	}
	return view.SessionOf(r, agent, bead.ID)
}

// agentOrBead returns what an argument names: an agent, or else a bead.
func agentOrBead(r *rig.Rig, name string) (state.AgentID, bead.Bead, error) {
	id, err := actor.Lookup(r, name)
	if !errors.Is(err, state.ErrNotFound) {
		return id, bead.Bead{}, err
	}
	if _, malformed := state.ParseBeadID(name); malformed != nil {
		return "", bead.Bead{}, err
	}
	b, err := r.Beads.Get(name)
	var unknown *state.Unknown
	if errors.As(err, &unknown) {
		unknown.Kind = "agent or bead"
	}
	return "", b, err
}

// transcriptPrinter prints a transcript as it grows.
type transcriptPrinter struct {
	app     *app
	opts    tailOptions
	rig     *rig.Rig
	session state.SessionID
	printed bool
}

func (p *transcriptPrinter) run(ctx context.Context) error {
	var end int64 = view.TranscriptEnd
	if p.opts.all {
		end = 0
	}
	t := view.NewTranscript(p.rig, p.session, end)
	if p.opts.raw {
		t = t.Raw()
	}
	err := actor.Wait(ctx, p.rig, "tail", 0, func() (bool, error) {
		exit, found, err := p.rig.WorkerExit(p.session)
		over := err != nil || !found || exit.Done // before the last look, so that nothing is missed
		for more := true; more; {
			var passages []agentcli.Passage
			if passages, more, err = t.More(); err != nil {
				return false, err
			}
			p.print(passages)
		}
		if !p.opts.follow || over {
			p.print(t.Rest())
			return true, nil
		}
		return false, nil
	}, state.LogDir, rig.WorkerDir)
	if err == nil && !p.printed {
		p.app.tellf("the worker of %s has printed nothing\n", p.session)
	}
	return err
}

func (p *transcriptPrinter) print(passages []agentcli.Passage) {
	p.printed = p.printed || len(passages) > 0
	for _, passage := range passages {
		if p.app.json {
			line, err := state.EncodeLine(passage)
			if err == nil { // two strings always encode
				p.app.printf("%s", line)
			}
			continue
		}
		if _, terminal := p.app.terminal(); p.opts.raw && !terminal {
			p.app.printf("%s\n", passage.Text)
			continue
		}
		lines := view.Marked(passage)
		if p.opts.raw {
			lines = strings.Split(passage.Text, "\n")
		}
		for _, line := range lines {
			p.app.line(line, toneColour(view.PassageTone(passage.Kind)))
		}
	}
}

// toneColour returns the colour of a line of a transcript or a patch.
func toneColour(t view.Tone) func(string) screen.Cell {
	switch t {
	case view.Plain:
		return screen.Plain
	case view.Heading, view.Step:
		return screen.Bold
	case view.Faint:
		return screen.Dim
	case view.Wrong:
		return screen.Yellow
	case view.Removed:
		return screen.Red
	case view.Added:
		return screen.Green
	}
	return screen.Plain
}

// line prints a line of foreign text in full, cleaned, and coloured on a terminal.
func (a *app) line(text string, colour func(string) screen.Cell) {
	out := screen.New(screen.Options{Colour: a.colour()})
	out.Row("", []screen.Cell{colour(strings.ReplaceAll(text, "\t", "    "))}, nil)
	_ = out.Flush(a.stdout) // a lost write is reported when the command ends
}

func newDiffCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "diff BEAD",
		Short: "Show what a bead's attempt has changed, or what landed",
		Long: `Print the commits and the patch of a bead. For a running attempt that is what
its worktree holds, committed or not, without untracked files; for a finished
one what its merge request holds, or what landed. Into a pipe only the patch is
printed.`,
		Example: "  chipset diff gt-abc12\n  chipset diff gt-abc12 > gt-abc12.patch",
		Args:    nargs(1, 1, "one bead"),
		RunE: with(a.openState, func(ctx context.Context, r *rig.Rig, args []string) error {
			id, err := state.ParseBeadID(args[0])
			if err != nil {
				return usagef("%v", err)
			}
			c, err := view.ChangesOf(ctx, r, id)
			return a.show(c, err, func() error { return a.printChanges(c) })
		}),
	}
}

func (a *app) printChanges(c *view.Changes) error {
	if _, terminal := a.terminal(); !terminal {
		a.printf("%s", c.Patch)
		return nil
	}
	a.line(c.Where, screen.Bold)
	for i := range c.Commits {
		a.line("  "+c.Commits[i].Hash.Short()+" "+c.Commits[i].Subject, screen.Dim)
	}
	a.printf("\n")
	for text := range strings.Lines(c.Patch) {
		a.line(strings.TrimRight(text, "\n"), toneColour(view.PatchTone(text)))
	}
	return nil
}
