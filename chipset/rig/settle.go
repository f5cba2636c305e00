package rig

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git/repair"
	"github.com/gastown-chipset/chipset/state"
)

// TestRecords holds the exit records of test commands.
const TestRecords = state.RunDir + "/tests"

// CopyOf returns the root of the live rig that this one was copied from, before
// [Rig.Settle] made it a rig of its own, or "".
func (r *Rig) CopyOf() string {
	data, err := state.ReadOutside(filepath.Join(r.Git.CommonDir(), pointerName), maxPointer)
	from := strings.TrimSuffix(string(data), "\n")
	if err != nil || !filepath.IsAbs(from) || from == r.Dir || checkoutOf(r.Git, from) {
		return ""
	}
	original, err := state.Open(filepath.Join(from, DirName))
	if err != nil || original.RigID() != r.Tree.RigID() {
		return ""
	}
	return from
}

// Settle adapts a rig that was moved or copied as a whole to its new place: it repairs
// the links between git and the worktrees, and records the place in git's folder. A rig
// that it was copied from is not touched, and the records of that rig's processes are
// removed: what they were doing counts as not done. Durable when it returns nil.
func (r *Rig) Settle() error {
	found, err := r.Tree.List(state.WorktreeDir)
	if err != nil {
		return err
	}
	for _, e := range found {
		if e.IsDir() {
			err = errors.Join(err, repair.Relink(r.Git, r.Tree.Abs(state.WorktreeDir.Join(e.Name()))))
		}
	}
	if r.CopyOf() != "" {
		for _, dir := range []state.Path{WorkerDir, TestRecords, StampDir} {
			err = errors.Join(err, r.Tree.RemoveAll(dir))
		}
	}
	if err != nil {
		return err
	}
	return remember(r.Git, r.Dir, r.Tree.RigID())
}
