package rig

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// folders returns the folders of a rig with fixed names, parents first.
func folders() []state.Path {
	return []state.Path{
		state.QuarantineDir, // the others need it
		state.RunDir, state.LogDir, state.WorktreeDir,
		"state/agents", "state/work", "state/hooks", "state/convoys", "state/merge-queue", "state/dispatch",
		"state/retire", "state/incidents", "state/permissions", "state/pauses", "state/spend", "state/mail", "state/nudge", "state/handoff", "state/events",
		"run/agents", "run/bin", state.CacheDir, state.CacheDir + "/mail", state.CacheDir + "/store", "run/clients", "run/locks", "run/progress", "run/prompts", "run/tests", "run/workers", "run/worktrees",
	}
}

// perAgent returns the folders with a subfolder for each agent, and the folder in that
// ("" for none).
func perAgent() map[state.Path]string {
	return map[state.Path]string{"state/mail": "archive", "state/nudge": "from", "state/handoff": ""}
}

// Belongs reports whether a path below state/ is one of the tree's.
func Belongs(p state.Path, dir bool) bool {
	parts := strings.Split(string(p), "/")
	if len(parts) == 1 {
		return true
	}
	top := state.StateDir.Join(parts[1])
	held, each := perAgent()[top]
	name := p.Base()
	switch {
	case len(parts) == 2 && !dir:
		return name == "rig.json"
	case !slices.Contains(folders(), top):
		return false
	case len(parts) == 2:
		return true
	case !each: // the store of the folder reports what has no name of an object
		return len(parts) == 3
	case len(parts) == 3:
		return dir && state.CheckID(name) == nil
	case len(parts) == 5:
		return held != "" && parts[3] == held
	case len(parts) != 4:
		return false
	case parts[1] == "nudge":
		return dir && name == held || name == "latest.json" || name == "seen.json"
	}
	return true
}

// InTheWay lists the regular files in the place of a folder of the rig, parents first.
// A power cut leaves them on a file system without a journal: the name of a new folder
// exists, but leads to whatever file got its inode. Nothing was acknowledged in such a
// folder, because that would have made it durable. Links are not listed: somebody made
// them on purpose.
func (r *Rig) InTheWay() ([]state.Path, error) {
	var found []state.Path
	add := func(p state.Path) {
		if info, err := os.Lstat(r.Tree.Abs(p)); err == nil && info.Mode().IsRegular() {
			found = append(found, p)
		}
	}
	for _, dir := range folders() {
		add(dir)
	}
	locks, err := r.entries("run/locks")
	for _, p := range locks {
		add(p)
	}
	failed := []error{err}
	for dir, each := range perAgent() {
		all, err := r.entries(dir)
		failed = append(failed, err)
		for _, p := range all {
			add(p)
			if each != "" {
				add(p.Join(each))
			}
		}
	}
	return found, errors.Join(failed...)
}

// entries lists the objects in a folder, by their names; none if it is not a folder.
func (r *Rig) entries(dir state.Path) ([]state.Path, error) {
	all, err := r.Tree.List(dir)
	if errors.Is(err, state.ErrNotRegular) {
		return nil, nil
	}
	var paths []state.Path
	for _, e := range all {
		if state.CheckID(e.Name()) == nil {
			paths = append(paths, dir.Join(e.Name()))
		}
	}
	return paths, err
}

// ClearWay moves a file in the place of a folder to the quarantine, unless it is a
// folder by now. Durable when it returns nil.
func (r *Rig) ClearWay(ctx context.Context, p state.Path) error {
	err := r.Tree.QuarantineNonFolder(ctx, p, "it stood where a folder of the rig belongs", r.Clock.Now())
	if err == nil {
		r.Events.Tell(event.FolderCleared(state.Human, p))
	}
	return err
}

// clearWays sets aside every file in the place of a folder.
func (r *Rig) clearWays(ctx context.Context) error {
	found, err := r.InTheWay()
	failed := []error{err}
	for _, p := range found {
		failed = append(failed, r.ClearWay(ctx, p))
	}
	return errors.Join(failed...)
}
