package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/state"
)

type pluginOptions struct {
	dir    string
	enable bool
}

// AddFlags registers the flags of plugin install.
func (o *pluginOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.dir, "to", "", "write into this `folder` (default: chipset/plugins/CLIENT in your data folder)")
	fs.BoolVar(&o.enable, "enable", false, "enable it: run the client's own commands, and write its settings")
}

func newPluginCmd(a *app) *cobra.Command {
	return newGroupCmd("plugin", "Connect a coding-agent client to chipset", newPluginInstallCmd(a), newPluginUninstallCmd(a))
}

func newPluginInstallCmd(a *app) *cobra.Command {
	var opts pluginOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "install CLIENT",
		Short: "Install the plugin of a client",
		Long: `Write a plugin that connects a client to the rigs on this machine (hooks, tools
and commands in the client's format), and print the commands that enable it. The
plugin calls this binary by its path; reinstall it after the binary has moved.
The folder must be empty or hold an earlier version of the plugin.

Clients: ` + strings.Join(clients.WithPlugin(), ", ") + `.`,
		Example: "  chipset plugin install claude --enable\n  chipset plugin install gemini --to ~/chipset-gemini",
		Args:    nargs(1, 1, "a client: "+strings.Join(clients.WithPlugin(), ", ")),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runPluginInstall(cmd.Context(), args[0], opts, a)
		},
	})
}

func runPluginInstall(ctx context.Context, name string, opts pluginOptions, a *app) error {
	plugin := clients.Named(name).Plugin
	if plugin == nil {
		return usagef("no client %q: %s", name, strings.Join(clients.WithPlugin(), ", "))
	}
	dir, err := a.pluginFolder(opts.dir, name)
	if err != nil {
		return withHint(err, "--to names a folder")
	}
	settings := a.settings(name)
	enabled, err := plugin.Disable(dir, settings) // as an earlier version was
	if err != nil {
		return err
	}
	names, err := plugin.Write(dir, a.self, currentVersion().Version)
	if errors.Is(err, agentcli.ErrForeign) {
		return withHint(err, "--to names another folder")
	}
	if err != nil {
		return err
	}
	if err := a.did(outcome{Did: "installed", Path: dir, Count: len(names)}, nil, "%s\n", dir); err != nil {
		return err
	}
	a.tellf("%d files for %s\n", len(names), name)
	if opts.enable || enabled {
		if err := plugin.Enable(dir, settings); err != nil {
			return err
		}
	} else {
		for _, file := range plugin.Settings {
			a.tellf("next: cp %s %s\n", filepath.Join(dir, file), filepath.Join(settings, filepath.Dir(file)))
		}
	}
	for _, step := range plugin.Steps(dir, a.self) {
		if !opts.enable {
			a.tellf("next: %s\n", strings.Join(step.Argv, " "))
		} else if err := a.runStep(ctx, step, dir); err != nil {
			return err
		}
	}
	return nil
}

// settings returns the folder in which a client keeps its settings.
func (a *app) settings(name string) string {
	c := clients.Named(name)
	home, _ := os.UserHomeDir() // without one, what is to be written there fails
	if in := c.Plugin.SettingsIn; in != nil {
		if dir := in(a.env); dir != "" {
			return dir
		}
	}
	return c.Settings(agentcli.Surroundings{Home: home, Environ: os.Environ()})
}

// pluginFolder returns the folder that a client's plugin is written to: the given one, or one below the data folder.
func (a *app) pluginFolder(given, name string) (string, error) {
	if given != "" {
		return a.abs(given), nil
	}
	data := a.env("XDG_DATA_HOME")
	if !filepath.IsAbs(data) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, "chipset", "plugins", name), nil
}

type pluginUninstallOptions struct{ dir string }

// AddFlags registers the flags of plugin uninstall.
func (o *pluginUninstallOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.dir, "from", "", "the `folder` that it was written to (default: chipset/plugins/CLIENT in your data folder)")
}

func newPluginUninstallCmd(a *app) *cobra.Command {
	var opts pluginUninstallOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "uninstall CLIENT",
		Short: "Remove the plugin of a client",
		Long: `Run the client's own commands that disable the plugin, and remove the files that
chipset plugin install has written. Other files in the folder, your own
settings, and whatever you have changed since stay as they are.

Clients: ` + strings.Join(clients.WithPlugin(), ", ") + `.`,
		Example: "  chipset plugin uninstall claude",
		Args:    nargs(1, 1, "a client: "+strings.Join(clients.WithPlugin(), ", ")),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runPluginUninstall(cmd.Context(), args[0], opts, a)
		},
	})
}

func runPluginUninstall(ctx context.Context, name string, opts pluginUninstallOptions, a *app) error {
	plugin := clients.Named(name).Plugin
	if plugin == nil {
		return usagef("no client %q: %s", name, strings.Join(clients.WithPlugin(), ", "))
	}
	dir, err := a.pluginFolder(opts.dir, name)
	if err != nil {
		return withHint(err, "--from names a folder")
	}
	for _, step := range slices.Backward(plugin.Steps(dir, a.self)) {
		// The client may be gone, or may never have been told.
		if err := a.runStep(ctx, agentcli.Step{Argv: step.Remove}, filepath.Dir(dir)); err != nil {
			a.warnf("%v", err)
		}
	}
	if _, err := plugin.Disable(dir, a.settings(name)); err != nil {
		return err
	}
	names, err := plugin.Remove(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return withHint(fmt.Errorf("plugin uninstall: nothing is in %s: %w", dir, state.ErrNotFound), "--from names another folder")
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(outcome{Did: "removed", Path: dir, Count: len(names)})
	}
	a.tellf("%d files for %s removed from %s\n", len(names), name, dir)
	return nil
}

// runStep runs a client's command in dir without any questions: --enable is the
// person's decision, and there may be nobody to answer.
func (a *app) runStep(ctx context.Context, step agentcli.Step, dir string) error {
	run := func(argv []string) (string, error) {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir = dir // a client may trust its folder from then on, which must not be a project
		out, err := cmd.CombinedOutput()
		return string(out), stepFailed(argv, err)
	}
	argv := append(slices.Clone(step.Argv), step.Unattended...)
	out, err := run(argv)
	if err != nil && step.Present != "" && strings.Contains(out, step.Present) {
		removed, removeErr := run(step.Remove)
		a.tellf("%s", removed)
		if removeErr != nil {
			return removeErr
		}
		out, err = run(argv)
	}
	a.tellf("%s", out)
	return err
}

func stepFailed(step []string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", strings.Join(step, " "), err)
}
