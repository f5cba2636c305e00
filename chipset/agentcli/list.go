package agentcli

import (
	"path/filepath"
	"slices"
)

// All lists the clients in the order in which init looks for one.
func All() []Client {
	return []Client{claude{}, codex{}, gemini{}, opencode{}, aider{}, cursor{}, amp{}, goose{}, shell{}}
}

// Presets are the presets every rig knows. The caller may change them.
func Presets() []Preset {
	var presets []Preset
	for _, c := range All() {
		presets = append(presets, c.Preset())
	}
	return presets
}

// Named returns the client of that name; any other name is that of no client in
// particular, whose exit code alone counts.
func Named(name string) Client {
	for _, c := range All() {
		if c.Preset().Name == name {
			return c
		}
	}
	return command{name}
}

// Of returns the client that a preset runs: the one it names, else the one whose
// program it executes, else none in particular.
func Of(p Preset) Client {
	if p.Client != "" {
		return Named(p.Client)
	}
	if len(p.Command) == 0 {
		return command{p.Name}
	}
	program := filepath.Base(p.Command[0])
	i := slices.IndexFunc(All(), func(c Client) bool { return c.Preset().Command[0] == program })
	if i < 0 {
		return command{p.Name}
	}
	return All()[i]
}

// Names of all clients that a definition may name.
func Names() []string {
	var names []string
	for _, c := range All() {
		names = append(names, c.Preset().Name)
	}
	return append(names, commandName)
}
