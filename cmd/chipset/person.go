package main

import (
	"crypto/subtle"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/state"
)

// envPersonToken holds the content of the person's token, for scripts without a terminal.
const envPersonToken = "CHIPSET_PERSON_TOKEN"

// asPerson returns an actor that is to decide something for an agent. As the person or the
// mayor only the person decides; one of the crew answers what it was asked itself.
func (a *app) asPerson(me *actor.Actor, err error) (*actor.Actor, error) {
	if err != nil || me.ID != state.Human && me.ID != me.Mayor() {
		return me, err
	}
	return me, a.checkPerson(me.Dir)
}

// checkPerson returns an ErrConflict unless a person runs this command: outside of every
// session of an agent, and at a terminal or with the person's token. It is the one place
// that says who that is. A program of the same user that wants to be taken for the person
// can bring that about; a sandbox keeps it from that.
func (a *app) checkPerson(rigDir string) error {
	const what = "deciding"
	if a.given != nil || a.env(envSession) != "" || process.InSession(rigDir) {
		return state.Conflictf(what, "the person does that, and this is a worker's session")
	}
	if title := clients.Around(a.env); title != "" {
		return withHint(state.Conflictf(what, "the person does that, and this is a session of %s", title), "type it in a terminal of your own")
	}
	if a.hasToken() {
		return nil
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0) //nolint:forbidigo // a terminal is no file
	if err != nil {
		return withHint(state.Conflictf(what, "the person does that, and there is no terminal here"),
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

// hasToken reports whether the environment holds the token of a file that nobody else may
// read.
func (a *app) hasToken() bool {
	given := strings.TrimSpace(a.env(envPersonToken))
	if given == "" {
		return false
	}
	var info unix.Stat_t
	if err := unix.Lstat(a.tokenFile(), &info); err != nil || int(info.Uid) != os.Getuid() || info.Mode&0o077 != 0 {
		return false
	}
	const most = 4 << 10
	token, err := state.ReadOutside(a.tokenFile(), most)
	return err == nil && subtle.ConstantTimeCompare([]byte(strings.TrimSpace(string(token))), []byte(given)) == 1
}
