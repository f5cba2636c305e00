// Package clients lists the coding agents' clients that a rig knows. A new one is a folder beside
// this one and a line in All.
package clients

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/aider"
	"github.com/gastown-chipset/chipset/chipset/agentcli/amp"
	"github.com/gastown-chipset/chipset/chipset/agentcli/claude"
	"github.com/gastown-chipset/chipset/chipset/agentcli/codex"
	"github.com/gastown-chipset/chipset/chipset/agentcli/command"
	"github.com/gastown-chipset/chipset/chipset/agentcli/cursor"
	"github.com/gastown-chipset/chipset/chipset/agentcli/gemini"
	"github.com/gastown-chipset/chipset/chipset/agentcli/goose"
	"github.com/gastown-chipset/chipset/chipset/agentcli/opencode"
)

// All lists the clients in the order in which init looks for one.
func All() []agentcli.Client {
	return []agentcli.Client{
		claude.Client(),
		codex.Client(),
		gemini.Client(),
		opencode.Client(),
		aider.Client(),
		cursor.Client(),
		amp.Client(),
		goose.Client(),
		command.Shell(),
	}
}

// Narrate returns a Narrator of any client's transcript.
func Narrate(each func([]agentcli.Passage)) *agentcli.Narrator {
	n := &agentcli.Narrator{Each: each}
	for _, c := range All() {
		if c.Passages != nil {
			n.Formats = append(n.Formats, c.Passages)
		}
	}
	return n
}

// Presets are the presets every rig knows. The caller may change them.
func Presets() []agentcli.Preset {
	var presets []agentcli.Preset
	for _, c := range All() {
		presets = append(presets, c.Preset)
	}
	return presets
}

// Steering are the names of files and folders, tracked or not, that change what an agent or a test does: the clients' own
// and what sets variables.
func Steering() []string {
	names := []string{".env", ".env.*", ".envrc", ".npmrc", ".yarnrc", ".yarnrc.yml"}
	for _, c := range All() {
		names = append(names, c.Configures...)
	}
	return names
}

// Names are those of the clients for which has is true.
func Names(has func(c *agentcli.Client) bool) []string {
	var names []string
	for _, c := range All() {
		if has(&c) {
			names = append(names, c.Preset.Name)
		}
	}
	return names
}

// Agents are the names of the coding agents' clients.
func Agents() []string {
	return Names(func(c *agentcli.Client) bool { return len(c.Preset.Permissions) > 0 })
}

// WithHooks are the names of the clients whose hooks are answered.
func WithHooks() []string { return Names(func(c *agentcli.Client) bool { return c.Hooks != nil }) }

// WithPlugin are the names of the clients for which there is a plugin.
func WithPlugin() []string { return Names(func(c *agentcli.Client) bool { return c.Plugin != nil }) }

// AddMCP are the command lines with which a person adds the rig's tools to sessions of their own.
func AddMCP() []string {
	var lines []string
	for _, c := range All() {
		if c.About.AddMCP != "" {
			lines = append(lines, "  "+c.About.AddMCP)
		}
	}
	return lines
}

// Named returns the client of that name; any other name is that of no client in
// particular, whose exit code alone counts.
func Named(name string) agentcli.Client {
	return find(name, func(c *agentcli.Client) bool { return c.Preset.Name == name })
}

// Of returns the client that a preset runs: the one it names, else the one whose
// program it executes, else none in particular.
func Of(p agentcli.Preset) agentcli.Client {
	if p.Client != "" {
		return Named(p.Client)
	}
	return find(p.Name, func(c *agentcli.Client) bool {
		return len(p.Command) > 0 && c.Preset.Command[0] == filepath.Base(p.Command[0])
	})
}

func find(program string, is func(c *agentcli.Client) bool) agentcli.Client {
	for _, c := range All() {
		if is(&c) {
			return c
		}
	}
	return command.Client(program)
}

// CommandLines are the command lines among rules that a person has approved: a rule names the
// tool of any client around the line, or is the line alone.
func CommandLines(rules []string) []string {
	var lines []string
	for _, rule := range rules {
		line := rule
		for _, c := range All() {
			if inner, is := strings.CutPrefix(rule, c.Shell+"("); is && c.Shell != "" {
				line = strings.TrimSuffix(inner, ")")
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// Inherit filters an environment for a worker: all of it but the variables by which a client tells
// its children that they run inside it. A rig started from within an agent must not pass them to its
// workers: they would take themselves for that agent's tools, and some refuse to start. Keys and
// proxies pass; nothing of it is ever logged.
func Inherit(environ []string) []string {
	drop := []string{"AGENT", "AI_AGENT"}
	for _, c := range All() {
		drop = append(drop, c.Nested...)
	}
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(drop, name)
	})
}

// Around returns the client in whose session a process with this environment runs, and whether there is
// one.
func Around(env func(name string) string) (agentcli.Client, bool) {
	for _, c := range All() {
		if len(c.Nested) > 0 && env(c.Nested[0]) != "" {
			return c, true
		}
	}
	return agentcli.Client{}, false
}
