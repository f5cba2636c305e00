package execute

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
)

// TestProfile: what a worker and a test may do, from the facts alone.
func TestProfile(t *testing.T) {
	t.Parallel()
	claude := clients.Named("claude")
	c := confined{level: sandbox.Auto, allow: definition.Allow{Read: []string{"~/.aws"}, Write: []string{"/srv/data"}},
		root: "/rig", git: "/rig/.git", worktree: "/rig/.chipset/worktrees/polecat-alpha", admin: "/rig/.git/worktrees/polecat-alpha", home: "/home/u",
		lookup: func(name string) string {
			return map[string]string{"CLAUDE_CONFIG_DIR": "/moved", "GOCACHE": "/gocache"}[name]
		},
		session: "ses-1"}
	test := c.profile()
	c.client, c.show = &claude, []string{"/rig/.chipset/run/prompts/ses-1.txt"}
	worker := c.profile()

	for _, path := range []string{"/rig/.chipset/worktrees/polecat-alpha", "/gocache", "/home/u/go/pkg/mod", "/srv/data"} {
		if !slices.Contains(worker.Write, path) || !slices.Contains(test.Write, path) {
			t.Errorf("%s can't be changed by both", path)
		}
	}
	for _, path := range []string{"/rig/.git/objects", "/rig/.git/refs/heads/polecat", "/rig/.git/worktrees/polecat-alpha", "/rig/.chipset/state/retire",
		"/rig/.chipset/state/mail", "/moved/projects"} {
		if !slices.Contains(worker.Write, path) || slices.Contains(test.Write, path) {
			t.Errorf("%s must be changed by workers alone", path)
		}
	}
	for _, path := range []string{"/", "/rig", "/rig/.git", "/rig/.git/refs", "/rig/.git/refs/heads", "/rig/.chipset", "/rig/.chipset/state", "/rig/.chipset/run",
		"/rig/.chipset/state/work", "/rig/.chipset/state/permissions", "/rig/.chipset/state/agents", "/home/u", "/moved", "/moved/settings.json", "/tmp"} {
		if slices.Contains(worker.Write, filepath.Clean(path)) || slices.Contains(test.Write, path) {
			t.Errorf("%s can be changed", path)
		}
	}
	for _, path := range []string{"/home/u/.ssh", "/home/u/.codex", "/moved", "/rig/.chipset/worktrees", "/rig/.chipset/logs", "/rig/.env"} {
		if !slices.Contains(worker.Hide, path) || !slices.Contains(test.Hide, path) {
			t.Errorf("%s is not hidden", path)
		}
	}
	for _, path := range []string{"/moved", "/rig/.chipset/run/prompts/ses-1.txt"} {
		if !slices.Contains(worker.Show, path) || slices.Contains(test.Show, path) {
			t.Errorf("%s must be shown to the worker alone", path)
		}
	}
	if !slices.Contains(test.Show, "/home/u/.aws") || worker.Temp != "/rig/.chipset/run/tmp/ses-1" {
		t.Errorf("show %q, temporary folder %s", test.Show, worker.Temp)
	}
}
