package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/gastown-chipset/chipset/state/wording"
)

// identityDomain is reserved by RFC 2606 and can never receive mail.
const identityDomain = "chipset.invalid"

// IdentityEnv returns the variables that give commits an author and a committer where the person has
// configured none: the agent's ID, and an address below chipset.invalid. It returns nil when
// git has an identity. What is configured in part is kept. Workers are started with it too.
func (r *Repo) IdentityEnv(ctx context.Context, agentID string) ([]string, error) {
	person, err := r.person(ctx)
	if err != nil || person.complete {
		return nil, err
	}
	name, email := person.name, person.email
	if name == "" {
		name = agentID
	}
	if email == "" {
		email = agentID + "@" + identityDomain
	}
	var env []string
	for _, who := range []string{"GIT_AUTHOR", "GIT_COMMITTER"} {
		for _, v := range [][2]string{{who + "_NAME", name}, {who + "_EMAIL", email}} {
			if !slices.ContainsFunc(r.env, func(e string) bool { return len(e) > len(v[0])+1 && e[:len(v[0])+1] == v[0]+"=" }) {
				env = append(env, v[0]+"="+v[1])
			}
		}
	}
	return env, nil
}

// Committer is who commits, as "Name <address>": the person that git knows, completed like IdentityEnv.
func (r *Repo) Committer(ctx context.Context, agentID string) (string, error) {
	identity, err := r.IdentityEnv(ctx, agentID)
	if err != nil {
		return "", err
	}
	out, err := r.run(ctx, r.plain(), Command{Args: []string{"var", "GIT_COMMITTER_IDENT"}, Env: identity, Read: true})
	if err != nil {
		return "", err
	}
	who, _, found := strings.Cut(line(out), "> ")
	if !found || strings.ContainsAny(who, "\n\x00") {
		return "", fmt.Errorf("committer: unexpected identity %q", wording.Clip(line(out), 200))
	}
	return who + ">", nil
}

// person is the identity that git has configured.
type person struct {
	complete    bool   // git needs no defaults
	name, email string // "" if not configured
}

// configMemo caches what was read from git's configuration while its files are unchanged.
type configMemo[T any] struct {
	mu    sync.Mutex
	asked bool
	files string // their state then
	known T
}

// get returns the cached value, or else that of ask.
func (m *configMemo[T]) get(r *Repo, ask func() (T, error)) (T, error) {
	files := r.configFiles()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asked && m.files == files {
		return m.known, nil
	}
	found, err := ask()
	if err == nil {
		m.asked, m.files, m.known = true, files, found
	}
	return found, err
}

func (r *Repo) person(ctx context.Context) (person, error) {
	return r.identity.get(r, func() (person, error) { return r.askPerson(ctx) })
}

func (r *Repo) askPerson(ctx context.Context) (who person, err error) {
	who.complete = true
	for _, variable := range []string{"GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"} {
		// Without useConfigOnly git would make an address up from the host's name.
		_, err := r.read(ctx, "-c", "user.useConfigOnly=true", "var", variable)
		if err != nil && !exited(err, 128) {
			return person{}, err
		}
		who.complete = who.complete && err == nil
	}
	if who.complete {
		return who, nil
	}
	if who.name, _, err = r.config(ctx, "user.name"); err != nil {
		return person{}, err
	}
	who.email, _, err = r.config(ctx, "user.email")
	return who, err
}

// configFiles describes the state of the files of a person's configuration. A change in an
// included file goes unnoticed until the next process.
func (r *Repo) configFiles() string {
	value := func(name string) string {
		for _, entry := range r.env {
			if v, ok := strings.CutPrefix(entry, name+"="); ok {
				return v
			}
		}
		return ""
	}
	home := value("HOME")
	config := value("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(home, ".config")
	}
	var all strings.Builder
	for _, path := range []string{filepath.Join(r.common, "config"), filepath.Join(r.common, "config.worktree"),
		value("GIT_CONFIG_GLOBAL"), value("GIT_CONFIG_SYSTEM"), "/etc/gitconfig", filepath.Join(home, ".gitconfig"), filepath.Join(config, "git", "config")} {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintf(&all, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		}
	}
	return all.String()
}
