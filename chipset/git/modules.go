package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gastown-chipset/chipset/state/wording"
)

// ErrNotSetUp is returned for something that a worktree needs and that nobody has set up in this repository.
var ErrNotSetUp = errors.New("not set up in this repository")

// Submodule is one submodule of a commit.
type Submodule struct {
	// Name is its name in configurations, Path where it is checked out.
	Name, Path string
	// URL is its address in the commit.
	URL string
}

// Submodules lists the submodules of a commit that both .gitmodules and the tree have.
func (r *Repo) Submodules(ctx context.Context, commit Hash) ([]Submodule, error) {
	named, err := r.modulesOf(ctx, commit)
	if err != nil || len(named) == 0 {
		return nil, err
	}
	args := []string{"ls-tree", "-z", string(commit), "--"}
	for _, m := range named {
		args = append(args, m.Path)
	}
	out, err := r.read(ctx, args...)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, record := range fields(out) {
		entry, path, _ := strings.Cut(record, "\t")
		there[path] = strings.HasPrefix(entry, ModeSubmodule+" ")
	}
	var found []Submodule
	for _, m := range named {
		if there[m.Path] {
			found = append(found, m)
		}
	}
	return found, nil
}

// modulesOf lists the submodules with a path in .gitmodules of a commit, in file order.
func (r *Repo) modulesOf(ctx context.Context, commit Hash) ([]Submodule, error) {
	blob := string(commit) + ":.gitmodules"
	if _, found, err := r.info(ctx, blob); err != nil || !found {
		return nil, err
	}
	out, err := r.read(ctx, "config", "--blob="+blob, "--null", "--list")
	if err != nil {
		return nil, err
	}
	var order []string
	byName := map[string]*Submodule{}
	for _, record := range fields(out) {
		key, value, _ := strings.Cut(record, "\n")
		rest, isModule := strings.CutPrefix(key, "submodule.")
		dot := strings.LastIndexByte(rest, '.')
		if !isModule || dot < 0 {
			continue
		}
		name := rest[:dot]
		if byName[name] == nil {
			byName[name] = &Submodule{Name: name}
			order = append(order, name)
		}
		switch rest[dot+1:] {
		case "path":
			byName[name].Path = strings.TrimSuffix(value, "/")
		case "url":
			byName[name].URL = value
		}
	}
	var list []Submodule
	for _, name := range order {
		if m := byName[name]; m.Path != "" && checkPath(m.Path) == nil && filepath.IsLocal(name) {
			list = append(list, *m)
		}
	}
	return list, nil
}

// ReaddressedSubmodule returns the name of a submodule that has different addresses in the two commits,
// or "".
func (r *Repo) ReaddressedSubmodule(ctx context.Context, base, head Hash) (string, error) {
	before, err := r.modulesOf(ctx, base)
	if err != nil || len(before) == 0 {
		return "", err
	}
	after, err := r.modulesOf(ctx, head)
	for _, old := range before {
		for _, now := range after {
			if old.Name == now.Name && old.URL != now.URL {
				return old.Name, err
			}
		}
	}
	return "", err
}

// CheckoutSubmodules checks out the submodules of HEAD in a linked worktree. It first removes what an earlier worker left of
// them, because git would run there with its configuration. It uses the addresses that the person has
// configured, never those of .gitmodules, and tries the person's own clone of a submodule first. Git's rule for submodules says
// which protocols an address may use: a local path only if the person allows it (protocol.file.allow).
// Submodules of submodules stay empty. ErrNotSetUp is returned for a submodule that has no address yet.
func (w *Worktree) CheckoutSubmodules(ctx context.Context) error {
	p, err := w.ours()
	if err != nil {
		return err
	}
	head, err := w.present(ctx, p)
	if err != nil {
		return err
	}
	modules, err := w.repo.Submodules(ctx, head)
	if err != nil || len(modules) == 0 {
		return err
	}
	if err := os.RemoveAll(filepath.Join(p.gitDir, "modules")); err != nil { //nolint:forbidigo // git's own clones, of this worktree alone
		return err
	}
	root, err := os.OpenRoot(p.workTree) //nolint:forbidigo // a worktree, which no link in it may lead out of
	if err != nil {
		return err
	}
	defer root.Close()
	for _, m := range modules {
		address, found, err := w.repo.config(ctx, "submodule."+m.Name+".url")
		if err == nil && !found {
			err = fmt.Errorf("its address is %w: git submodule update --init %s", ErrNotSetUp, m.Path)
		}
		if err == nil {
			err = root.RemoveAll(filepath.FromSlash(m.Path))
		}
		if err == nil {
			err = w.checkoutSubmodule(ctx, p, m, address)
		}
		if err != nil {
			return fmt.Errorf("submodule %s: %w", wording.Clip(m.Path, 200), err)
		}
	}
	return nil
}

// checkoutSubmodule clones one submodule, from its address if the person's own clone lacks the commit.
func (w *Worktree) checkoutSubmodule(ctx context.Context, p place, m Submodule, address string) error {
	update := func(url string, c Command) error {
		c.Args = []string{"submodule", "--quiet", "update", "--checkout", "--force", "--no-recommend-shallow", "--", m.Path}
		c.Config = append(c.Config, "submodule."+m.Name+".url="+url)
		_, err := w.repo.run(ctx, p, c)
		return err
	}
	own := filepath.Join(w.repo.common, "modules", filepath.FromSlash(m.Name))
	if info, err := os.Stat(filepath.Join(own, "objects")); err == nil && info.IsDir() {
		if update(own, Command{Config: []string{"protocol.file.allow=always"}, Env: []string{"GIT_ALLOW_PROTOCOL=file"}}) == nil {
			return nil
		}
		if err := os.RemoveAll(filepath.Join(p.gitDir, "modules", filepath.FromSlash(m.Name))); err != nil { //nolint:forbidigo // a clone that was just begun
			return err
		}
	}
	c := Command{Network: true}
	var err error
	if c.Env, err = w.repo.sshEnv(ctx); err != nil {
		return err
	}
	// A clone does not inherit this repository's own configuration.
	if allow, said, err := w.repo.config(ctx, "protocol.file.allow"); err != nil {
		return err
	} else if said {
		c.Config = []string{"protocol.file.allow=" + allow}
	}
	return update(address, c)
}

// Tracked returns the first file of the index at one of the paths or below it, or "".
func (w *Worktree) Tracked(ctx context.Context, paths ...string) (string, error) {
	if len(paths) == 0 {
		return "", nil
	}
	args := []string{"--literal-pathspecs", "ls-files", "-z", "--"}
	out, err := w.Run(ctx, Command{Args: append(args, paths...), Read: true})
	if found := fields(out); err == nil && len(found) > 0 {
		return found[0], nil
	}
	return "", err
}

// Ignored lists ignored, untracked files. A folder that holds nothing else is listed instead of its
// files, with a slash at its end.
func (w *Worktree) Ignored(ctx context.Context) ([]string, error) {
	out, err := w.Run(ctx, Command{Args: []string{"ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"}, Read: true})
	return fields(out), err
}
