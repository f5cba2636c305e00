package definition

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

const (
	defaultStallDetection = 300 * time.Second
	defaultPatrol         = 10 * time.Second

	// maxMessage is the largest message that the format of mail allows, in bytes.
	maxMessage = 64 << 10
)

// defaults returns a definition without agents, with all defaults that do not depend on
// other values; derive adds the others.
func defaults() *Definition {
	return &Definition{
		Topology: Topology{Name: "mayor-witness-polecat"},
		Dispatch: Dispatch{Strategy: StrategySling, MaxParallel: 10, BatchThreshold: 3, FormulaSupport: true},
		GUPP: GUPP{
			// -1 is not set: 0 is a value that slow_start may have.
			Thresholds: Thresholds{SlowStart: -1},
			Limits:     Limits{MaxRestarts: 3, RestartCooldown: time.Minute, MaxAttempts: 3, MaxConflicts: 10},
		},
		Rig:      Rig{Tick: 2 * time.Second},
		Worker:   Worker{Permissions: "ask", Grace: 5 * time.Second},
		Sandbox:  "auto",
		Worktree: Worktree{Timeout: 10 * time.Minute},
		Merge:    Merge{TestTimeout: 20 * time.Minute, OnConflict: OnConflictRework, MaxWaiting: 10, Batch: 1, Protect: protectedPaths()},
		Mail:     Mail{Retention: 24 * time.Hour, MaxSize: maxMessage},
		Limits:   Allowance{Beads: 20, Depth: 3, Mail: 200, Commands: 20_000, Log: 256 << 20, Disk: 20 << 30, Tasks: 4096},
		Notify:   Notify{Digest: true},
		Audit:    Audit{Every: time.Hour, Ref: DefaultAuditRef},
	}
}

// protectedPaths are the paths of files that run programs or tell agents what they may do: configuration of clients, of editors and
// of shells, hooks, CI, and files that git itself obeys.
func protectedPaths() []string {
	return []string{
		".claude/", ".mcp.json", ".codex/", ".gemini/", ".opencode/", "opencode.json", "opencode.jsonc", ".cursor/", ".aider.conf.yml", ".aider.model.*",
		".amp/", ".goose/",
		".vscode/", ".idea/", ".zed/", ".devcontainer/", ".devcontainer.json", ".envrc", ".npmrc", ".yarnrc", ".yarnrc.yml", "mise.toml", ".mise.toml",
		".githooks/", ".husky/", ".pre-commit-config.yaml", "lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml", ".lefthook/",
		".github/workflows/", ".github/actions/", ".github/hooks/", ".gitlab-ci.yml", ".gitlab/", ".gitea/workflows/", ".forgejo/workflows/", ".circleci/",
		".buildkite/", ".woodpecker/", ".woodpecker.yml", ".drone.yml", ".travis.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", ".ci/",
		"Jenkinsfile", "CODEOWNERS",
		".gitattributes", ".gitmodules", ".lfsconfig",
	}
}

// derive fills in the defaults that follow from other values.
func (d *Definition) derive() {
	thresholds := &d.GUPP.Thresholds
	thresholds.StallDetection = cmp.Or(thresholds.StallDetection, defaultStallDetection)
	// 300, 120, 600 and 60 seconds: whoever shortens the first wants all of them shorter.
	thresholds.NudgeInterval = cmp.Or(thresholds.NudgeInterval, thresholds.StallDetection*2/5)
	thresholds.RestartThreshold = cmp.Or(thresholds.RestartThreshold, 2*thresholds.StallDetection)
	if thresholds.SlowStart < 0 {
		thresholds.SlowStart = thresholds.StallDetection / 5
	}
	d.Rig.Name = cmp.Or(d.Rig.Name, d.Header.Name, "rig")
	d.Rig.BeadPrefix = cmp.Or(d.Rig.BeadPrefix, BeadPrefix(d.Rig.Name))
	d.Rig.Patrol = cmp.Or(d.Rig.Patrol, min(defaultPatrol, thresholds.StallDetection/10))
	d.Worker.Default = cmp.Or(strings.TrimSpace(d.Worker.Default), d.Runtime.preset())
	if d.Dispatch.Strategy == strategyRoundRobin {
		d.Dispatch.Strategy = StrategySling
	}
}

// preset returns the built-in preset of the first provider that has one.
func (r Runtime) preset() string {
	for _, provider := range r.Providers {
		name := strings.ReplaceAll(strings.ToLower(provider.Name), "-", "_")
		name = strings.TrimSuffix(strings.TrimSuffix(name, "_code"), "_cli")
		if slices.Contains([]string{"claude", "codex", "gemini", "opencode", "aider"}, name) {
			return name
		}
	}
	return "claude"
}

// builtinPresets names the presets that every rig knows.
func builtinPresets() []string {
	return []string{"claude", "codex", "gemini", "opencode", "aider", "cursor", "amp", "goose", "sh"}
}

// programOf returns the program that a built-in preset runs.
func programOf(preset string) string {
	if preset == "cursor" {
		return "cursor-agent"
	}
	return preset
}

// BeadPrefix derives a bead prefix of two to four letters from a rig's name: the
// initials of its words (my-rig gives mr), or the beginning of a single word
// (gastown gives ga).
func BeadPrefix(rigName string) string {
	words := strings.FieldsFunc(strings.ToLower(rigName), func(r rune) bool { return r < 'a' || r > 'z' })
	const most = 4
	switch {
	case len(words) == 0:
		return "bd"
	case len(words) > 1:
		initials := ""
		for _, word := range words[:min(len(words), most)] {
			initials += word[:1]
		}
		return initials
	case len(words[0]) == 1:
		return words[0] + words[0]
	}
	return words[0][:2]
}

// DefaultAuditRef is the branch that keeps the snapshots of the state tree.
const DefaultAuditRef = "chipset/audit"
