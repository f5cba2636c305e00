package rig

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/state"
)

// Unguarded lists what init wrote into git's own folder and is missing now: the
// exclude lines that keep the live tree out of stash and clean, and the pointer
// that leads commands inside a worktree to this rig and says which one it is. The line for state/ alone
// is not missed: a rig that was made with --track-state has none.
func (r *Rig) Unguarded() (lines []string, pointer bool, err error) {
	data, err := state.ReadOutside(r.Git.ExcludePath(), maxGitFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	present := strings.Split(string(data), "\n")
	for i := range present {
		present[i] = strings.TrimSpace(present[i])
	}
	for _, line := range excludeLines(false) {
		if !slices.Contains(present, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 1 && slices.Equal(lines, excludeLines(false)[3:]) {
		lines = nil // init --track-state
	}
	id, err := state.ReadOutside(filepath.Join(r.Git.CommonDir(), idName), maxPointer)
	named := err == nil && strings.TrimSpace(string(id)) == string(r.Tree.RigID())
	return lines, recorded(r.Git) != r.Dir || !named, nil
}

// RestoreGuards writes again what Unguarded lists. Durable when it returns nil.
func (r *Rig) RestoreGuards(ctx context.Context) error {
	tracked, err := r.tracksState(ctx)
	if err != nil {
		return err
	}
	if err := exclude(r.Git, tracked); err != nil {
		return err
	}
	return remember(r.Git, r.Dir, r.Tree.RigID())
}

// tracksState tells whether the person commits state/ as it lies there.
func (r *Rig) tracksState(ctx context.Context) (bool, error) {
	out, err := r.Git.Run(ctx, git.Command{Read: true, Args: []string{"ls-files", "--cached", "-z", "--", DirName + "/state/rig.json"}})
	if err != nil {
		return false, err
	}
	return len(out) > 0, nil
}
