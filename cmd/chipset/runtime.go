package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
)

func newRuntimeCmd(a *app) *cobra.Command {
	return newGroupCmd("runtime", "List coding-agent clients, and show how they are run",
		newRuntimeListCmd(a), newRuntimeShowCmd(a))
}

func newRuntimeListCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the clients that a rig can use, and which are installed",
		Long: `List every client that has a preset: where it is installed, its version, and
what a rig can do with it.
  stream  its turns, tool calls and tokens are visible while it works
  resume  a session that ended too early can be continued
  hooks   the rig can give it hooks
  mcp     the rig can give it tools
  cost    it reports what a session cost

A program that does not answer in time is listed without its version. A rig
needs only the clients that it uses.`,
		Example: "  chipset runtime list\n  chipset runtime list --json",
		Args:    nargs(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runRuntimeList(cmd.Context(), a) },
	}
}

// runtimeLine is one client of runtime list --json.
type runtimeLine struct {
	agentcli.Found
	Title string `json:"title"`
	// Tried is the version that this binary was tested with.
	Tried  string `json:"tried,omitempty"`
	Stream bool   `json:"stream"`
	Resume bool   `json:"resume"`
	Hooks  bool   `json:"hooks"`
	MCP    bool   `json:"mcp"`
	Cost   bool   `json:"cost"`
}

func runRuntimeList(ctx context.Context, a *app) error {
	all := clients.All()
	var lines []runtimeLine
	for i, found := range agentcli.Detect(ctx, all, agentcli.DetectDeadline) {
		about := all[i].About
		lines = append(lines, runtimeLine{Found: found, Title: about.Title, Tried: about.Tried, Stream: about.Stream, Resume: about.Resume,
			Hooks: all[i].Hooks != nil, MCP: about.MCP, Cost: about.Cost})
	}
	return showList(a, lines, []string{"PRESET", "VERSION", "CAN", "CLIENT", "PATH"}, func(l *runtimeLine) []string {
		return []string{l.Name, versionCell(l), l.abilities(), l.Title, l.Path}
	})
}

func versionCell(l *runtimeLine) string {
	switch {
	case l.Path == "":
		return "not installed"
	case l.Problem != "":
		return l.Problem
	case l.Version == "":
		return "installed"
	}
	return l.Version
}

func (l *runtimeLine) abilities() string {
	var can []string
	for _, ability := range []struct {
		name string
		has  bool
	}{{"stream", l.Stream}, {"resume", l.Resume}, {"hooks", l.Hooks}, {"mcp", l.MCP}, {"cost", l.Cost}} {
		if ability.has {
			can = append(can, ability.name)
		}
	}
	if len(can) == 0 {
		return "-"
	}
	return strings.Join(can, " ")
}

type runtimeShowOptions struct{ permissions string }

// AddFlags registers the flags of runtime show.
func (o *runtimeShowOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.permissions, "permissions", "", "show it with these permissions, `ask|edit|full` (default: the rig's, else ask)")
}

func newRuntimeShowCmd(a *app) *cobra.Command {
	var opts runtimeShowOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "show PRESET",
		Short: "Show how a worker is run",
		Long: `Show how a worker is run: its command line, how it gets the prompt, how a
session is continued, and what its exit code does not tell. Inside a rig this
includes the presets of its chipset.yaml. For a command line, show how it is
parsed.`,
		Example: "  chipset runtime show claude\n  chipset runtime show codex --permissions edit\n  chipset runtime show my-agent",
		Args:    nargs(1, 1, "one preset or command line"),
		RunE:    func(cmd *cobra.Command, args []string) error { return runRuntimeShow(cmd.Context(), opts, args[0], a) },
	})
}

func runRuntimeShow(ctx context.Context, opts runtimeShowOptions, worker string, a *app) error {
	presets, permission, mode, test, restricted := clients.Presets(), agentcli.PermissionAsk, sandbox.Auto, "", false
	if r, err := a.openState(ctx); err == nil && r.Def != nil {
		presets, permission, mode, test, restricted = clients.PresetsOf(r.Def), r.Def.Worker.Permissions, sandbox.Mode(r.Def.Sandbox), clients.PassingTest(r.Def), r.Def.Network.Restricted
	}
	if opts.permissions != "" {
		permission = opts.permissions
	}
	if nowhere(worker, presets) {
		return withHint(exitWith(codeNotFound, fmt.Errorf("runtime show: %q is neither a preset nor a command on PATH", worker)), "chipset runtime list shows the presets")
	}
	preset, err := agentcli.ResolveWorker(worker, presets)
	if err != nil {
		return usagef("%v", err)
	}
	in := agentcli.PromptInput{Prompt: "PROMPT", Script: "SCRIPT", File: "/PROMPT-FILE", Permission: permission}
	run, err := agentcli.Build(preset, in)
	if err != nil {
		return usagef("%v", err)
	}
	c := clients.Of(preset)
	kit := agentcli.Kit{Chipset: "chipset", Permission: permission, Boxed: sandbox.InForce(mode), Test: test, Session: "SESSION", Files: "/FILE-", Hooks: true, MCP: true}
	begun := c.Start(run.Argv, kit)
	kit.Resume = "SESSION"
	resumed := c.Start(run.Argv, kit)
	about := c.About
	lines := [][2]string{
		{"client", about.Title}, {"tried with", about.Tried}, {"permissions", permission}, {"sandbox", sandbox.Describe(mode, restricted)}, {"prompt", promptWay(preset, &run)},
		{"command", commandLine(begun.Argv)}, {"environment", commandLine(append(begun.Env, names(preset.Env)...))},
		{"time-out", timeOut(preset.Timeout)}, {"exit code", exitCodeOf(about)},
	}
	if about.Resume {
		lines = append(lines, [2]string{"resumed", fmt.Sprintf("at most %d times: %s", preset.MaxResumes(), commandLine(resumed.Argv))})
	}
	if a.json {
		shown := map[string]string{"preset": preset.Name}
		for _, l := range lines {
			shown[strings.NewReplacer(" ", "_", "-", "").Replace(l[0])] = l[1]
		}
		return a.printJSON(shown)
	}
	a.printf("%s\n", clean(preset.Name))
	a.fields(11, lines)
	return nil
}

// names returns an environment without its values, which may be secret.
func names(env map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"=…")
	}
	return list
}

func timeOut(d time.Duration) string {
	if d == 0 {
		return "never"
	}
	return d.String()
}

func promptWay(p agentcli.Preset, run *agentcli.Invocation) string {
	switch {
	case run.Stdin != "":
		return "on standard input"
	case p.Prompt == agentcli.PromptScript:
		return "the bead's description, in a file"
	case run.File != "":
		return "in a file"
	}
	return "as an argument"
}

// commandLine quotes words as in a shell.
func commandLine(words []string) string {
	quoted := make([]string, 0, len(words))
	for _, word := range words {
		if word == "" || strings.ContainsAny(word, " \t\n'\"\\$`!*?[](){}<>|&;#~") {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		quoted = append(quoted, word)
	}
	return strings.Join(quoted, " ")
}

func exitCodeOf(about agentcli.About) string {
	if about.ExitCode == "" {
		return "0 is done"
	}
	return "does not say everything: " + about.ExitCode
}
