package rig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/state"
)

// ErrUntrusted is returned by [Open] and [OpenState] for a rig that the person has neither made here nor
// trusted: its files came with the repository, or belong to another user. Nothing in it is used.
var ErrUntrusted = errors.New("this rig is not trusted here")

// trusted checks that git's own folder, which no commit can write to, names the tree in dir, and that the tree is the
// user's own. Errors: ErrUntrusted; state.ErrNoTree when git names another rig.
func trusted(dir string, tree *state.Tree) error {
	if err := owned(tree.Root()); err != nil {
		return err
	}
	id, err := rememberedID(dir)
	switch {
	case err != nil:
		return err
	case id == "":
		return fmt.Errorf("%s: %w: its files came with the repository", dir, ErrUntrusted)
	case id != tree.RigID():
		return fmt.Errorf("%s: %w: rig.json says %s, but this repository's rig is %s", tree.Root(), state.ErrNoTree, tree.RigID(), id)
	}
	return nil
}

// rememberedID returns the rig that git's folder names, "" for none. It does not run git, which can't open a damaged repository.
func rememberedID(dir string) (state.RigID, error) {
	data, err := state.ReadOutside(filepath.Join(commonDir(dir), idName), maxPointer)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return "", err
	}
	return state.RigID(strings.TrimSpace(string(data))), nil
}

// owned returns ErrUntrusted for a tree of another user. Under sudo it may belong to the user who called sudo.
func owned(root string) error {
	for _, p := range []string{root, filepath.Join(root, string(state.StateDir)), filepath.Join(root, string(state.StateDir), "rig.json")} {
		info, err := os.Lstat(p)
		if err != nil {
			return err
		}
		owner, known := info.Sys().(*syscall.Stat_t)
		if !known || int(owner.Uid) == os.Geteuid() || os.Geteuid() == 0 && fmt.Sprint(owner.Uid) == os.Getenv("SUDO_UID") {
			continue
		}
		return fmt.Errorf("%s: %w: it belongs to another user (%d)", p, ErrUntrusted, owner.Uid)
	}
	return nil
}

// OpenUntrusted is OpenState for a rig that came with its repository, so that a person can inspect it. Further errors:
// state.ErrConflict for a trusted rig, ErrUntrusted for one of another user, git.ErrNotRepo outside of a
// repository.
func OpenUntrusted(ctx context.Context, dir string, clock state.Clock) (*Rig, error) {
	r, err := open(ctx, dir, clock, false, func(_ string, tree *state.Tree) error { return owned(tree.Root()) })
	if err != nil {
		return nil, err
	}
	if r.Git == nil {
		return nil, fmt.Errorf("%s: %w", r.Dir, git.ErrNotRepo)
	}
	if id, err := rememberedID(r.Dir); err != nil || id == r.Tree.RigID() {
		return nil, errors.Join(err, state.Conflictf("trust", "the rig in %s is already trusted", r.Dir))
	}
	return r, nil
}

// Trust makes a rig that came with its repository the rig of this repository. Durable when it returns nil.
func (r *Rig) Trust() error { return remember(r.Git, r.Dir, r.Tree.RigID()) }
