package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/state"
)

// Environment variables that a worker is started with and every command reads.
const (
	envDir        = "CHIPSET_DIR"
	envAgent      = "CHIPSET_AGENT"
	envSession    = "CHIPSET_SESSION"
	envAssignment = "CHIPSET_ASSIGNMENT"
	envNotify     = "CHIPSET_NOTIFY"
)

// app is what all commands share: the streams, the environment and the global
// flags. One app serves one command line.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// env reads one environment variable, "" when it is not set.
	env func(string) string
	// cwd is the absolute current directory.
	cwd   string
	clock state.Clock
	// self is the path of this binary, for the supervisor of workers.
	self string

	// given are the files that a worker has handed to its broker for this command, by
	// their names on the command line; nil in a command that no broker runs.
	given map[string]*os.File

	// dir, as and json are the global flags.
	dir, as string
	json    bool
	noPager bool

	opened *rig.Rig

	interrupts interrupts
	// footer stays below the lines of chipset up on a terminal; nil elsewhere.
	footer *footer
	// paging is the pager that standard output goes to; nil for none.
	paging *paging
}

// openRig finds and opens the rig, once for the whole command. Errors:
// rig.ErrNoRig, state.ErrNoTree, *rig.DefinitionError.
func (a *app) openRig(ctx context.Context) (*rig.Rig, error) {
	if a.opened != nil && (a.opened.Def == nil || a.opened.Git == nil) {
		a.opened = nil // it was opened without them
	}
	return a.open(ctx, rig.Open)
}

// openState is openRig for commands that must work even if the definition is
// invalid or git is missing: Rig.Def or Rig.Git may be nil.
func (a *app) openState(ctx context.Context) (*rig.Rig, error) { return a.open(ctx, rig.OpenState) }

func (a *app) open(ctx context.Context, how func(context.Context, string, state.Clock) (*rig.Rig, error)) (*rig.Rig, error) {
	if a.opened != nil {
		return a.opened, nil
	}
	dir, err := a.rigDir(ctx)
	if err != nil {
		return nil, err
	}
	r, err := how(ctx, dir, a.clock)
	if err != nil {
		return nil, err
	}
	if r.Git != nil {
		r.Git.Steering = clients.Steering()
	}
	a.opened = r
	return r, nil
}

// rigDir returns the folder that holds the rig's .chipset.
func (a *app) rigDir(ctx context.Context) (string, error) {
	return rig.Find(ctx, a.abs(a.dir), a.abs(a.env(envDir)), a.cwd)
}

// abs resolves a path of the command line against the app's own directory.
func (a *app) abs(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.cwd, path)
}

// identity is the agent that runs this command: --as, else $CHIPSET_AGENT, else
// human. A worker, known by its session or by the worktree it stands in, is its
// agent, and speaking as another is an ErrConflict. It guards against accidents
// and is no boundary against a hostile process of the same user.
func (a *app) identity(r *rig.Rig) (state.AgentID, error) {
	bound, why, err := a.boundTo(r)
	if err != nil {
		return "", err
	}
	for _, given := range []struct{ flag, value string }{{"--as", a.as}, {"$" + envAgent, a.env(envAgent)}} {
		if given.value == "" {
			continue
		}
		id, err := actor.Lookup(r, given.value)
		if errors.Is(err, state.ErrBadID) {
			return "", usagef("%s: %v", given.flag, err)
		}
		if bound != "" && id != bound && given.value != string(bound) && !helperOf(r, id, bound) {
			return "", state.Conflictf(given.flag+" "+given.value, "%s can speak only as %s", why, bound)
		}
		return id, err
	}
	if bound != "" {
		return actor.Lookup(r, string(bound))
	}
	return state.Human, nil
}

// helperOf reports whether an agent is a subagent that another one has spawned.
func helperOf(r *rig.Rig, id, spawner state.AgentID) bool {
	a, err := r.Agents.Get(string(id))
	return err == nil && a.Parent == spawner && id != spawner
}

// isHelper reports whether an agent is a subagent.
func isHelper(r *rig.Rig, id state.AgentID) bool {
	a, err := r.Agents.Get(string(id))
	return err == nil && a.Parent != "" && a.Parent != id
}

// boundTo returns the agent that this process can only be, and how that is known, or
// "".
func (a *app) boundTo(r *rig.Rig) (state.AgentID, string, error) {
	if a.env(envSession) != "" && a.env(envAgent) != "" {
		id, err := state.ParseAgentID(a.env(envAgent))
		if err != nil {
			return "", "", usagef("$%s: %v", envAgent, err)
		}
		return id, "a worker's session", nil
	}
	if name := worktreeOwner(r.Tree.Abs(state.WorktreeDir), a.cwd); name != "" {
		id, err := state.ParseAgentID(name)
		if err != nil {
			return "", "", fmt.Errorf("the worktree of %s: %w", a.cwd, err)
		}
		return id, "a process in this worktree", nil
	}
	if a.env(envSession) != "" {
		return "", "", withHint(usagef("$%s is set without $%s", envSession, envAgent),
			"a worker's session has both; unset "+envSession+" to speak as the person")
	}
	return "", "", nil
}

// worktreeOwner returns the name of the folder below worktrees that contains cwd, or "".
func worktreeOwner(worktrees, cwd string) string {
	for _, pair := range [][2]string{{worktrees, cwd}, {resolved(worktrees), resolved(cwd)}} {
		rel, err := filepath.Rel(pair[0], pair[1])
		if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			continue
		}
		name, _, _ := strings.Cut(rel, string(filepath.Separator))
		return name
	}
	return ""
}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// onAgent makes the RunE of a command about the agent that an optional argument names
// by ID or role, or else the one that runs it. A named agent must be registered.
func (a *app) onAgent(run func(r *rig.Rig, id state.AgentID) error) func(*cobra.Command, []string) error {
	return with(a.openState, func(_ context.Context, r *rig.Rig, args []string) error {
		var id state.AgentID
		var err error
		if len(args) == 0 || args[0] == "" {
			id, err = a.identity(r)
		} else {
			id, err = actor.Lookup(r, args[0])
		}
		if err != nil {
			return err
		}
		return run(r, id)
	})
}

// session returns the worker's session that this command belongs to, or "".
func (a *app) session() (state.SessionID, error) {
	if a.env(envSession) == "" {
		return "", nil
	}
	id, err := state.ParseSessionID(a.env(envSession))
	if err != nil {
		return "", usagef("$%s: %v", envSession, err)
	}
	return id, nil
}

// printf writes to standard output. A lost write is reported when the command ends.
func (a *app) printf(format string, args ...any) { _, _ = fmt.Fprintf(a.stdout, format, args...) }

// tellf writes diagnostics to standard error. A failed write can't be reported.
func (a *app) tellf(format string, args ...any) { _, _ = fmt.Fprintf(a.stderr, format, args...) }

// warnf writes one diagnostic line to standard error.
func (a *app) warnf(format string, args ...any) {
	a.tellf("chipset: warning: %s\n", clean(fmt.Sprintf(format, args...)))
}

// warnAll reports objects that could not be read.
func warnAll[E error](a *app, bad []E) {
	for _, err := range bad {
		a.warnf("%v", err)
	}
}

// printJSON writes one object exactly as the tree stores it.
func (a *app) printJSON(v any) error {
	data, err := state.Encode(v)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(data)
	return err
}

// show writes a stored object as JSON, or calls text to write it. It returns err, the
// error of reading the object, if that is not nil.
func (a *app) show(v any, err error, text func() error) error {
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(v)
	}
	return text()
}

// fields prints names and values below each other, without those that are empty.
func (a *app) fields(width int, list [][2]string) {
	for _, f := range list {
		if f[1] != "" {
			a.printf("  %-*s %s\n", width, f[0], clean(f[1]))
		}
	}
}

// printList writes a list of stored objects as one JSON array, [] when empty.
func printList[T any](a *app, list []T) error {
	if list == nil {
		list = []T{}
	}
	return a.printJSON(list)
}

// showList writes a list of stored objects as printList does, or a row for each.
func showList[T any](a *app, list []T, header []string, row func(*T) []string) error {
	if a.json {
		return printList(a, list)
	}
	rows := make([][]string, 0, len(list))
	for i := range list {
		rows = append(rows, row(&list[i]))
	}
	return a.table(header, rows)
}

// table writes aligned columns that fit the terminal. Cells are cleaned, so what an agent wrote can
// neither break the layout nor talk to the terminal.
func (a *app) table(header []string, rows [][]string) error {
	out := screen.New(a.screen())
	var cells [][]screen.Cell
	for i, row := range append([][]string{header}, rows...) {
		line := make([]screen.Cell, len(row))
		for k, text := range row {
			switch {
			case i == 0:
				line[k] = screen.Dim(text)
			case header[k] == "STATUS":
				line[k] = screen.OfStatus(text)
			default:
				line[k] = screen.Plain(text)
			}
		}
		cells = append(cells, line)
	}
	out.Table("", cells)
	return out.Flush(a.stdout)
}

// clean returns text as one line that is safe to print.
func clean(s string) string { return screen.Clean(s) }

// cleanText is clean for text of several lines.
func cleanText(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return screen.Printable(r)
	}, s)
}

// terminal reports whether standard output is a terminal, and its width (80 if that is
// unknown).
func (a *app) terminal() (width int, yes bool) {
	w := a.stdout
	if s, ok := w.(*sink); ok {
		w = s.w
	}
	f, ok := w.(*os.File)
	if a.paging != nil {
		f, ok = a.paging.screen, true
	}
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 80, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	return width, true
}

// colour reports whether output may carry colours.
func (a *app) colour() bool {
	_, yes := a.terminal()
	return yes && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
}

// interactive reports whether a person can be asked: standard input is a terminal. That of a worker's command is the
// worker's own, and no program is started on it: the broker runs commands outside of the sandbox.
func (a *app) interactive() bool {
	in, ok := a.stdin.(*os.File)
	return ok && a.given == nil && term.IsTerminal(int(in.Fd()))
}
