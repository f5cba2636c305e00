package rig

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/state"
)

// IdentityFile is the path of the tree's identity below .chipset.
const IdentityFile = string(state.StateDir) + "/rig.json"

// Snapshot is a saved state tree of a rig that was lost.
type Snapshot struct {
	Rig state.RigID
	// Files are those of the tree without its identity.
	Files []state.NewFile
}

// LostError is returned by Init for a repository whose rig is gone: git's own folder
// names it, but its tree is missing.
type LostError struct {
	Dir string
	Rig state.RigID
}

func (l *LostError) Error() string {
	return fmt.Sprintf("the rig %s was in %s, and its state is gone (git clean -x, or .chipset was removed)", l.Rig, l.Dir)
}

// Unwrap makes it a conflict.
func (l *LostError) Unwrap() error { return state.ErrConflict }

// lost returns a *LostError for a repository that had a rig at this place. The caller
// has checked that there is no tree.
func lost(repo *git.Repo) error {
	dir := repo.TopLevel()
	if recorded(repo) != dir {
		return nil
	}
	id, err := rememberedID(dir)
	if err != nil || id == "" {
		return err
	}
	return &LostError{Dir: filepath.Clean(dir), Rig: id}
}

// fill puts the files of a snapshot into a new tree. Durable when it returns nil.
func (s *Snapshot) fill(tree *state.Tree) error {
	return errors.Join(tree.WriteAll(s.Files)...)
}
