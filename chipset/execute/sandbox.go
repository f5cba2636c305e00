package execute

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

// tempDir holds the temporary folders of workers and tests, by their sessions.
const tempDir = state.RunDir + "/tmp"

// confined is what the profile of a command follows from. All paths are absolute.
type confined struct {
	allow definition.Allow
	level sandbox.Mode
	// root is the folder with .chipset, git the repository's git folder, worktree where the command runs, admin what
	// git keeps for that worktree.
	root, git, worktree, admin string
	home                       string
	lookup                     func(string) string
	session                    state.SessionID
	// client is who works, nil for a test. show are files of the rig that it is handed.
	client *agentcli.Client
	show   []string
}

// profile says what a worker or a test may do. Everything that is writable stands here.
//
// A worker also writes what its own chipset and git commands need: its branch, git's objects, mail, and the record that
// ends its attempt. It can't write beads, the queue, permissions, agents or the definition.
func (c confined) profile() *sandbox.Profile {
	chipset := func(path state.Path) string { return filepath.Join(c.root, rig.DirName, string(path)) }
	p := &sandbox.Profile{Mode: c.level, Temp: chipset(tempDir.Join(string(c.session)))}

	p.Write = append([]string{c.worktree}, sandbox.Caches(c.home, c.lookup)...)
	p.Write = append(p.Write, expand(c.home, c.allow.Write)...)
	if c.client != nil {
		p.Write = append(p.Write, filepath.Join(c.git, "objects"), filepath.Join(c.git, "refs/heads/polecat"),
			filepath.Join(c.git, "logs/refs/heads/polecat"), c.admin)
		for _, path := range []state.Path{"state/mail", "state/nudge", "state/retire", "state/events", "state/hooks", "state/handoff", state.QuarantineDir,
			"run/locks", "run/clients", "run/progress"} {
			p.Write = append(p.Write, chipset(path))
		}
		p.Write = append(p.Write, c.ofClient(c.client, c.client.Home.Changed)...)
	}

	p.Hide = sandbox.Secrets(c.home)
	p.Hide = append(p.Hide, filepath.Join(c.root, ".env"), filepath.Join(c.root, ".env.*"))
	for _, dir := range []state.Path{state.WorktreeDir, state.LogDir, tempDir, "run/prompts"} {
		p.Hide = append(p.Hide, chipset(dir))
	}
	for _, other := range clients.All() {
		p.Hide = append(p.Hide, c.ofClient(&other, other.Home.Own)...)
	}
	p.Show = append(expand(c.home, c.allow.Read), c.show...)
	if c.client != nil {
		p.Show = append(p.Show, c.ofClient(c.client, c.client.Home.Own)...)
	}
	return p
}

// ofClient returns paths below the home of a client's user, where its own variable may have moved them.
func (c confined) ofClient(client *agentcli.Client, names []string) []string {
	var paths []string
	for _, name := range names {
		path := filepath.Join(c.home, name)
		if moved := c.lookup(client.Home.Moved); client.Home.Moved != "" && filepath.IsAbs(moved) {
			if below, is := strings.CutPrefix(name, client.Home.Own[0]); is && (below == "" || below[0] == '/') {
				path = filepath.Join(moved, below)
			}
		}
		paths = append(paths, path)
	}
	return paths
}

// expand returns the paths of a definition, ~ being the home.
func expand(home string, paths []string) []string {
	var all []string
	for _, path := range paths {
		if below, is := strings.CutPrefix(path, "~/"); is {
			path = filepath.Join(home, below)
		}
		all = append(all, path)
	}
	return all
}

// confine returns the profile of a command of this rig, and nil where its definition wants none. It makes the folders
// that the profile takes for granted. show are files of the rig that the command is handed.
func confine(r *rig.Rig, worktree string, session state.SessionID, client *agentcli.Client, show []string) (*sandbox.Profile, error) {
	level := sandbox.Mode(r.Def.Sandbox)
	if level == sandbox.Off {
		return nil, nil //nolint:nilnil // no profile is what a job without a sandbox has
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	if err := r.Tree.MkdirAll(tempDir); err != nil {
		return nil, err
	}
	c := confined{allow: r.Def.Allow, level: level, root: r.Dir, git: r.Git.CommonDir(), worktree: worktree, home: home, lookup: os.Getenv,
		session: session, client: client, show: show}
	if client != nil {
		if c.admin, err = r.Git.In(worktree).GitDir(); err != nil {
			return nil, err
		}
		for _, dir := range c.ofClient(client, client.Home.Changed) {
			if err := os.MkdirAll(dir, 0o700); err != nil { //nolint:forbidigo // the client's folders are no state
				return nil, err
			}
		}
	}
	return c.profile(), nil
}

// variables filters an environment for a command of this rig: in a sandbox, what is usual and what more and the
// definition name.
func variables(r *rig.Rig, environ, more []string) []string {
	if sandbox.Mode(r.Def.Sandbox) == sandbox.Off {
		return environ
	}
	return sandbox.Environment(environ, append(slices.Clone(more), r.Def.Allow.Env...))
}
