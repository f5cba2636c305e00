package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/process/private"
	"github.com/gastown-chipset/chipset/chipset/process/proxy"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/permission"
)

// confined is what the profile of a command follows from. All paths are absolute.
type confined struct {
	allow definition.Allow
	level sandbox.Mode
	// root is the folder with .chipset, git the repository's git folder, worktree where the command runs, admin what
	// git keeps for that worktree.
	root, git, worktree, admin string
	// self is the rig's own binary, temp the command's temporary folder.
	self, temp, home string
	lookup           func(string) string
	// network and hosts are where it may connect to: what the definition says, and what beyond that.
	network definition.Network
	hosts   []string
	// client is who works, nil for a test. stand holds the folder that it has instead of its own, "" for none. show are
	// files of the rig that it is handed.
	client *agentcli.Client
	stand  string
	show   []string
	// readOnly keeps the worktree as it is.
	readOnly bool
}

// profile says what a worker or a test may do. Everything that is writable stands here.
//
// A worker also writes what git needs for a commit on its branch, and the folders of its client's sessions. It reaches
// the rig through the broker alone: of .chipset it reads what it is handed, and writes its worktree and its log.
func (c confined) profile() *sandbox.Profile {
	p := &sandbox.Profile{Mode: c.level, Temp: c.temp}
	if c.network.Restricted {
		p.Network = &proxy.Rules{Allow: slices.Concat(c.network.Allow, c.hosts)}
		if c.client != nil {
			p.Network.Allow = append(p.Network.Allow, c.client.Hosts...)
		}
	}

	p.Write = append(sandbox.Caches(c.home, c.lookup), expand(c.home, c.allow.Write)...)
	if c.readOnly {
		p.Show = append(p.Show, c.worktree)
	} else {
		p.Write = append(p.Write, c.worktree)
	}
	if c.client != nil {
		p.Plain, p.Objects = append(c.ofGit(), c.admin), c.objects()
		p.Write = append(p.Write, c.ofClient(c.client, slices.Concat(c.client.Home.Changed, c.client.Home.Renewed))...)
		if c.stand != "" {
			p.Write = append(p.Write, c.stand)
		}
	}

	p.Hide = append(sandbox.Secrets(c.home, c.lookup), filepath.Join(c.root, ".env"), filepath.Join(c.root, ".env.*"),
		filepath.Join(c.root, rig.DirName), filepath.Dir(c.temp))
	for _, other := range clients.All() {
		p.Hide = append(p.Hide, c.ofClient(&other, other.Home.Own)...)
	}
	p.Show = slices.Concat(p.Show, expand(c.home, c.allow.Read), c.show)
	if c.client != nil {
		p.Show = append(p.Show, c.self)
		p.Show = append(p.Show, c.ofClient(c.client, c.client.Home.Own)...)
	}
	return p
}

// objects is the folder in which a commit makes loose objects.
func (c confined) objects() string { return filepath.Join(c.git, "objects") }

// ofGit returns what else a commit changes in the folder that all worktrees of the repository share.
func (c confined) ofGit() []string {
	return []string{filepath.Join(c.git, rig.WorkRefs), filepath.Join(c.git, "logs", rig.WorkRefs)}
}

// ofClient returns paths below the home of a client's user, where its own variable may have moved them.
func (c confined) ofClient(client *agentcli.Client, names []string) []string {
	var paths []string
	for _, name := range names {
		path := filepath.Join(c.home, name)
		if moved := c.lookup(client.Home.Moved); client.Home.Moved != "" && filepath.IsAbs(moved) {
			if below, is := strings.CutPrefix(name, client.Home.Own[0]); is && (below == "" || below[0] == '/') {
				if path = filepath.Join(moved, below); client.Home.MovedAbove {
					path = filepath.Join(moved, name)
				}
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

// confine returns what the profile of a command follows from, and makes the folders that it takes for granted.
func confine(r *rig.Rig, worktree string, session state.SessionID) (confined, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return confined{}, err
	}
	if err := sandbox.MakeCaches(home, os.Getenv); err != nil {
		return confined{}, fmt.Errorf("caches: %w", err)
	}
	temp, err := private.Temp()
	if err != nil {
		return confined{}, fmt.Errorf("temporary folder: %w", err)
	}
	return confined{allow: r.Def.Allow, network: r.Def.Network, level: sandbox.Mode(r.Def.Sandbox), root: r.Dir, git: r.Git.CommonDir(), worktree: worktree,
		temp: filepath.Join(temp, string(session)), home: home, lookup: os.Getenv}, nil
}

// confine returns the profile of a command of a site, nil where the definition wants none.
func (s *Site) confine(session state.SessionID) (*sandbox.Profile, error) {
	if !boxed(s.Rig) {
		return nil, nil //nolint:nilnil // no profile is what a job without a sandbox has
	}
	c, err := confine(s.Rig, s.Dir, session)
	if err != nil {
		return nil, err
	}
	c.show = linked(s.Rig)
	if c.hosts, err = allowedHosts(s.Rig, ""); err != nil {
		return nil, err
	}
	return c.profile(), nil
}

// confineWorker returns the profile of a worker, nil where the definition wants none, and variables that it needs in it.
// show are files of the rig that it is handed, env what its preset sets.
func (p *Polecat) confineWorker(client *agentcli.Client, session state.SessionID, show, env []string) (*sandbox.Profile, []string, error) {
	if !boxed(p.Rig) {
		return nil, nil, nil
	}
	c, err := confine(p.Rig, p.Rig.Worktree(p.ID), session)
	if err != nil {
		return nil, nil, err
	}
	c.client, c.show, c.self = client, show, p.Self
	c.readOnly = client.OwnSandbox && p.Rig.Def.Worker.Permissions == agentcli.PermissionAsk
	c.lookup = func(name string) string { return cmp.Or(lookup(env, name), os.Getenv(name)) }
	if c.hosts, err = allowedHosts(p.Rig, p.ID); err != nil {
		return nil, nil, err
	}
	c.hosts = append(c.hosts, client.HostsOf(append(ownEnvironment(), env...))...)
	if c.admin, err = p.Rig.Git.In(c.worktree).GitDir(); err != nil {
		return nil, nil, err
	}
	dirs := c.ofGit()
	for first := range 256 {
		dirs = append(dirs, fmt.Sprintf("%s/%02x", c.objects(), first))
	}
	for _, dir := range dirs {
		err = errors.Join(err, os.MkdirAll(dir, 0o777)) //nolint:forbidigo // as git makes them
	}
	for _, dir := range c.ofClient(client, client.Home.Changed) {
		err = errors.Join(err, os.MkdirAll(dir, 0o700)) //nolint:forbidigo // the client's folders are no state
	}
	var needed []string
	if err == nil && p.Rig.Def.Worktree.LFS {
		needed, err = p.Rig.Git.In(c.worktree).LFSEnvironment()
	}
	if err != nil || !client.Home.Stand {
		return c.profile(), needed, err
	}
	c.stand = p.Rig.Tree.Abs(standDir.Join(string(session)))
	variable, err := c.makeStand()
	return c.profile(), append(needed, variable), err
}

// allowedHosts returns the hosts that the person has approved for an agent or, with "", for tests.
func allowedHosts(r *rig.Rig, id state.AgentID) ([]string, error) {
	if !r.Def.Network.Restricted {
		return nil, nil
	}
	rules, _, err := r.Permissions.All()
	return permission.Hosts(rules, id), err
}

// askForHosts asks the person about hosts that a command was refused; who says whose command it was.
func askForHosts(ctx context.Context, r *rig.Rig, by state.AgentID, who string, x process.Exit) ([]string, error) {
	var refused []string
	var failed []error
	for _, visit := range x.Hosts {
		if visit.Refused == 0 {
			break
		}
		refused = append(refused, visit.Host)
		_, err := r.Permissions.AskForHost(ctx, visit.Host, permission.Rule{By: by, Reason: who, CreatedAt: r.Clock.Now()})
		failed = append(failed, err)
	}
	return refused, errors.Join(failed...)
}

// boxed reports whether a definition wants a sandbox.
func boxed(r *rig.Rig) bool { return sandbox.Mode(r.Def.Sandbox) != sandbox.Off }

// inSandbox reports whether the machine gives the rig's commands the sandbox that the definition wants.
func inSandbox(r *rig.Rig) bool { return sandbox.InForce(sandbox.Mode(r.Def.Sandbox)) }

// lookup returns a variable of a list, "" for one that is not in it.
func lookup(env []string, name string) string {
	for _, entry := range env {
		if value, is := strings.CutPrefix(entry, name+"="); is {
			return value
		}
	}
	return ""
}

// removeTemp removes the temporary folder of a session whose supervisor was killed.
func removeTemp(session string) error {
	if state.CheckID(session) != nil {
		return nil // no session, and no name to remove something by
	}
	temp, err := private.Temp()
	if err != nil {
		return err
	}
	return process.RemoveTemp(filepath.Join(temp, session))
}

// variables filters an environment for a command of this rig: in a sandbox, what is usual and what more and the
// definition name.
func variables(r *rig.Rig, environ, more []string) []string {
	if !boxed(r) {
		return environ
	}
	return sandbox.Environment(environ, append(slices.Clone(more), r.Def.Allow.Env...))
}
