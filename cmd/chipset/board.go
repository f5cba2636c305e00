package main

import (
	"bytes"
	"context"
	"errors"
	"io"

	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/chipset/board/terminal"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/state"
)

func newBoardCmd(a *app) *cobra.Command {
	var opts webOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "board [--web [ADDRESS]]",
		Short: "Open the board: what needs you, the agents, the work, the queue",
		Long: `Show the rig as it changes: what waits for you, the agents, the work as a tree,
the queue, and the story, transcript, diff and mail of the selected item. Each
key runs a command; the keys are listed at the bottom, and ? shows all of them.
A destructive act asks first, and says what would be lost. The board can run
beside chipset up, over ssh, or on a stopped rig. It uses $PAGER and $EDITOR.

With --web it is served to a browser, with the graph of the work and plots. The
printed address opens the board once, in one browser; then another one is
printed. Only this machine can reach it. With --listen other machines can, if
they know the token of --token-file; their connection is not encrypted. Only you
may start a web board, not an agent.`,
		Example: "  chipset board\n  chipset board --web --open\n  chipset board --web 127.0.0.1:0\n  chipset board --web --listen 10.0.0.5:7333 --token-file ~/.config/chipset/board-token",
		Args:    nargs(0, 1, "at most one ADDRESS"),
		RunE: with(a.openState, func(ctx context.Context, r *rig.Rig, args []string) error {
			address, err := opts.check(args)
			switch {
			case err != nil:
				return err
			case opts.web:
				return a.runWebBoard(ctx, r, opts, address)
			}
			return a.runBoard(ctx, r)
		}),
	})
}

func (a *app) runBoard(ctx context.Context, r *rig.Rig) error {
	if _, yes := a.terminal(); !yes || a.json || !a.interactive() {
		return withHint(usagef("this is not a terminal"), "chipset status prints the same once")
	}
	o := terminal.Options{Rig: r, Words: process.ParseCommand, Editor: a.program("EDITOR", "vi"), Pager: a.program("PAGER", "less"),
		Run:           func(ctx context.Context, args []string) (string, error) { return a.inside(ctx, r, args) },
		RunOnTerminal: func(ctx context.Context, args []string) error { return a.onTerminal(ctx, r, args) }}
	var watcher *state.Watcher
	if w, err := state.NewWatcher(r.Tree); err == nil { // without notification it looks every second
		defer w.Close()
		watcher = w
		r.Follow(w)
		defer r.Follow(nil)
	}
	o.Model = view.NewModel(r, watcher)
	_, err := tea.NewProgram(terminal.New(o), tea.WithContext(ctx), tea.WithFPS(boardFPS)).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil // it was asked to end
	}
	return err
}

// boardFPS is how often the board may draw, a second.
const boardFPS = 30

// program returns the program that a variable names, with its arguments.
func (a *app) program(variable, otherwise string) []string {
	if words := strings.Fields(a.env(variable)); len(words) > 0 {
		return words
	}
	return []string{otherwise}
}

// inside runs a command line of this rig in this process, for a board: without standard
// input, and with the output as text. The error is what the command printed to standard error.
func (a *app) inside(ctx context.Context, r *rig.Rig, args []string) (string, error) {
	var out bytes.Buffer
	err := a.forBoard(ctx, r, args, &app{stdin: strings.NewReader(""), stdout: &out, stderr: io.Discard})
	if text := strings.TrimSpace(out.String()); err != nil && err.Error() == "" {
		err = errors.New(text)
	}
	return out.String(), err
}

// onTerminal is inside for a command line that uses the board's terminal.
func (a *app) onTerminal(ctx context.Context, r *rig.Rig, args []string) error {
	return a.forBoard(ctx, r, args, &app{stdin: a.stdin, stdout: a.stdout, stderr: a.stderr})
}

func (a *app) forBoard(ctx context.Context, r *rig.Rig, args []string, inner *app) error {
	var problems bytes.Buffer
	inner.stderr = io.MultiWriter(inner.stderr, &problems)
	inner.env, inner.cwd, inner.clock, inner.self = a.env, a.cwd, a.clock, a.self
	if code := execute(ctx, append([]string{"--dir", r.Dir}, args...), inner); code != codeOK {
		return errors.New(strings.TrimSpace(strings.ReplaceAll(problems.String(), "chipset: ", "")))
	}
	return nil
}
