package rig

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/state"
)

// Unguarded lists what init wrote into git's own folder and is now missing: the
// exclude lines that keep the live tree out of stash and clean, and the pointer
// that leads commands inside a worktree to this rig. The line for state/ may be the
// only missing one: a rig that was made with --track-state has none.
func (r *Rig) Unguarded() (lines []string, pointer bool, err error) {
	present, err := r.excluded()
	if err != nil {
		return nil, false, err
	}
	for _, line := range excludeLines(false) {
		if !slices.Contains(present, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 1 && slices.Equal(lines, excludeLines(false)[3:]) {
		lines = nil // init --track-state
	}
	return lines, recorded(r.Git) != r.Dir, nil
}

// excluded returns the lines of .git/info/exclude.
func (r *Rig) excluded() ([]string, error) {
	data, err := state.ReadOutside(r.Git.ExcludePath(), maxGitFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	lines := strings.Split(string(data), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines, nil
}

// StateInGit lists where git tracks the live tree although it is excluded: "the index" of the checkout, and the
// branch. Switching between a branch that tracks it and one that does not overwrites or removes the tree without a
// warning, because git treats ignored files as expendable. The list is empty for a rig made with --track-state, and
// where the index can't be read.
func (r *Rig) StateInGit(ctx context.Context, branch git.Branch) ([]string, error) {
	present, err := r.excluded()
	if err != nil || !slices.Contains(present, excludeLines(false)[3]) {
		return nil, err
	}
	const marker = DirName + "/state/rig.json"
	places := []string{"the index", string(branch)}
	out, err := r.Git.Run(ctx, git.Command{Read: true, Args: []string{"cat-file", "--batch-check=%(objecttype)"},
		Stdin: []byte(":" + marker + "\n" + string(branch.Ref()) + ":" + marker + "\n")})
	var failed *git.Error
	if errors.As(err, &failed) && failed.Cause == nil {
		return nil, nil
	}
	answers := strings.Split(string(out), "\n")
	var held []string
	for i, place := range places {
		if i < len(answers) && answers[i] == "blob" {
			held = append(held, place)
		}
	}
	return held, err
}

// RestoreGuards restores what Unguarded lists. Durable when it returns nil.
func (r *Rig) RestoreGuards(ctx context.Context) error {
	tracked, err := r.tracksState(ctx)
	if err != nil {
		return err
	}
	if err := exclude(r.Git, tracked); err != nil {
		return err
	}
	return r.Settle()
}

// tracksState reports whether the person commits state/ themselves.
func (r *Rig) tracksState(ctx context.Context) (bool, error) {
	out, err := r.Git.Run(ctx, git.Command{Read: true, Args: []string{"ls-files", "--cached", "-z", "--", DirName + "/state/rig.json"}})
	if err != nil {
		return false, err
	}
	return len(out) > 0, nil
}
