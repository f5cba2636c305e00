package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/agentcli/plugin"
	"github.com/gastown-chipset/chipset/chipset/agentcli/session"
)

type pluginOptions struct {
	dir    string
	enable bool
}

// AddFlags registers the flags of plugin install.
func (o *pluginOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.dir, "to", "", "write into this `folder` (default: chipset/plugins/CLIENT in your data folder)")
	fs.BoolVar(&o.enable, "enable", false, "run the client's own commands that turn it on")
}

func newPluginCmd(a *app) *cobra.Command {
	return newGroupCmd("plugin", "Tie a coding-agent client to chipset", newPluginInstallCmd(a))
}

func newPluginInstallCmd(a *app) *cobra.Command {
	var opts pluginOptions
	cmd := &cobra.Command{
		Use:   "install CLIENT",
		Short: "Write the plugin of a client",
		Long: `Write what ties a client to chipset, and print what turns it on: for claude a
marketplace with a plugin (hooks, MCP server, skill, commands, agents), for gemini an
extension, for codex the files for its home. Everything in it calls this very binary;
install again after it has moved. A folder that holds anything else is refused.`,
		Example: "  chipset plugin install claude --enable\n  chipset plugin install gemini --to ~/chipset-gemini",
		Args:    nargs(1, 1, "a client: claude, codex or gemini"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runPluginInstall(cmd.Context(), session.Kind(args[0]), opts, a)
		},
	}
	opts.AddFlags(cmd.Flags())
	return cmd
}

func runPluginInstall(ctx context.Context, kind session.Kind, opts pluginOptions, a *app) error {
	if !slices.Contains(session.Kinds(), kind) {
		return usagef("plugin install: no client %q: claude, codex or gemini", string(kind))
	}
	dir := a.abs(opts.dir)
	if dir == "" {
		data := a.env("XDG_DATA_HOME")
		if !filepath.IsAbs(data) {
			home, err := os.UserHomeDir()
			if err != nil {
				return withHint(err, "--to names a folder")
			}
			data = filepath.Join(home, ".local", "share")
		}
		dir = filepath.Join(data, "chipset", "plugins", string(kind))
	}
	names, err := plugin.Write(kind, dir, a.self, currentVersion().Version)
	if errors.Is(err, plugin.ErrForeign) {
		return withHint(err, "--to names another folder")
	}
	if err != nil {
		return err
	}
	a.printf("%s\n", dir)
	a.tellf("%d files for %s\n", len(names), kind)
	if opts.enable {
		return a.runSteps(ctx, kind, dir)
	}
	for _, step := range turnOn(kind, dir) {
		a.tellf("next: %s\n", strings.Join(step, " "))
	}
	if kind == session.Codex {
		a.tellf("next: see %s\n", filepath.Join(dir, "README.md"))
	}
	return nil
}

// turnOn are the client's own commands that make it use what was written.
func turnOn(kind session.Kind, dir string) [][]string {
	switch kind {
	case session.Claude:
		return [][]string{{"claude", "plugin", "marketplace", "add", dir}, {"claude", "plugin", "install", "chipset@chipset"}}
	case session.Gemini:
		return [][]string{{"gemini", "extensions", "link", dir}}
	case session.Codex:
	}
	return nil
}

// runSteps runs turnOn's commands in dir, and asks nothing: who says --enable has
// decided, and nobody may be there to answer.
func (a *app) runSteps(ctx context.Context, kind session.Kind, dir string) error {
	steps := turnOn(kind, dir)
	if len(steps) == 0 {
		return usagef("plugin install: this client has no command that turns it on; its README.md says what to do")
	}
	command := func(argv []string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir = dir // which is what Gemini CLI trusts from then on, and no project
		return cmd
	}
	if kind == session.Gemini {
		steps[0] = append(steps[0], "--consent")
		// It refuses what it has already.
		if out, err := command(steps[0]).CombinedOutput(); err == nil || !strings.Contains(string(out), "already installed") {
			_, writeErr := a.stderr.Write(out)
			return errors.Join(stepFailed(steps[0], err), writeErr)
		}
		steps = append([][]string{{"gemini", "extensions", "uninstall", "chipset"}}, steps...)
	}
	for _, step := range steps {
		cmd := command(step)
		cmd.Stdout, cmd.Stderr = a.stderr, a.stderr
		if err := stepFailed(step, cmd.Run()); err != nil {
			return err
		}
	}
	return nil
}

func stepFailed(step []string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", strings.Join(step, " "), err)
}
