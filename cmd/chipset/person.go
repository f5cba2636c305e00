package main

import (
	"context"
	"crypto/subtle"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/agentcli/session"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

// envPersonToken holds the content of the person's token, for scripts without a terminal.
const envPersonToken = "CHIPSET_PERSON_TOKEN"

// asPerson checks that an actor may decide something for an agent. Only the person may decide as
// the person or the mayor; a crew agent that is named explicitly answers requests to itself.
func (a *app) asPerson(me *actor.Actor, err error) (*actor.Actor, error) {
	if err != nil || me.ID != state.Human && me.ID != me.Mayor() && (a.as != "" || a.env(envAgent) != "") {
		return me, err
	}
	return me, a.checkPerson(me.Dir)
}

// ownVoice returns the agent that a command acts as. A person's own session in a client never speaks as
// the person or the mayor: it speaks as a crew agent, which is registered if necessary.
func (a *app) ownVoice(ctx context.Context, r *rig.Rig, id state.AgentID) (state.AgentID, error) {
	if id != state.Human && id != r.Mayor() {
		return id, nil
	}
	if a.given == nil && process.InSession(r.Dir) {
		return "", state.Conflictf("speaking as "+string(id), "this command runs in a worker's session, or in a test")
	}
	c, inside := a.clientAround()
	if !inside {
		return id, nil
	}
	if a.nobodyNamed(id) {
		return member(ctx, r, c.Preset.Name)
	}
	return "", withHint(state.Conflictf("speaking as "+string(id), "this is a session of %s, which speaks only as itself", c.About.Title),
		"leave that out; run what only the person may do in a terminal of your own")
}

// member returns the agent of the session that this process runs in, if that is known, else the one with
// the client's own name.
func member(ctx context.Context, r *rig.Rig, client string) (state.AgentID, error) {
	if id, err := session.Around(r, client, process.Ancestors()); id != "" || err != nil {
		return id, err
	}
	return actor.Crew(ctx, r, client, client)
}

// clientAround returns the client in whose session this command runs, and whether there is one: by the environment of
// this process, or, without the person's token, of one of its ancestors.
func (a *app) clientAround() (agentcli.Client, bool) {
	c, inside := clients.Around(a.env)
	if inside || a.hasToken() {
		return c, inside
	}
	inside = process.AnyAncestor(func(env map[string]string) (found bool) {
		c, found = clients.Around(func(name string) string { return env[name] })
		return found
	})
	return c, inside
}

// checkPerson returns an ErrConflict unless a person runs this command: outside of every
// session of an agent, and at a terminal or with the person's token. No other place decides
// that. A program of the same user can pretend to be the person, unless a sandbox prevents
// it.
func (a *app) checkPerson(rigDir string) error {
	const what = "only the person may do this"
	if a.given != nil || a.env(envSession) != "" || process.InSession(rigDir) {
		return state.Conflictf(what, "this is a worker's session")
	}
	if c, inside := a.clientAround(); inside {
		return withHint(state.Conflictf(what, "this is a session of %s", c.About.Title), "type it in a terminal of your own")
	}
	if a.hasToken() {
		return nil
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0) //nolint:forbidigo // a terminal is no file
	if err != nil {
		return withHint(state.Conflictf(what, "there is no terminal here"),
			"a script sets $"+envPersonToken+" to the content of "+a.tokenFile()+", a file of mode 0600 that you make")
	}
	return tty.Close()
}

// tokenFile is where the person keeps the token.
func (a *app) tokenFile() string {
	dir := a.env("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(a.env("HOME"), ".config")
	}
	return filepath.Join(dir, "chipset", "person-token")
}

// hasToken reports whether the environment holds the person's token.
func (a *app) hasToken() bool {
	given := strings.TrimSpace(a.env(envPersonToken))
	if given == "" {
		return false
	}
	token, err := readSecret(a.tokenFile())
	return err == nil && subtle.ConstantTimeCompare([]byte(token), []byte(given)) == 1
}

// readSecret returns the text of a file that only the person may read.
func readSecret(path string) (string, error) {
	var info unix.Stat_t
	if err := unix.Lstat(path, &info); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if int(info.Uid) != os.Getuid() || info.Mode&0o077 != 0 {
		return "", withHint(usagef("%s may be read by others", path), "chmod 600 "+path)
	}
	const most = 4 << 10
	data, err := state.ReadOutside(path, most)
	return strings.TrimSpace(string(data)), err
}
