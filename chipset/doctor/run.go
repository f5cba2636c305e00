package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/execute"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

// runFolder checks the folders of the rig, its definition, and run/, where a file of the
// wrong kind would refuse every lock.
func (l *inspection) runFolder(context.Context) error {
	defer l.definition()
	l.folders()
	if len(l.found) > 0 {
		return nil // nothing is read through a link
	}
	return errors.Join(l.locks(locksDir, 0), l.stamps(), l.worktreeRecords())
}

func (l *inspection) folders() {
	for _, dir := range []state.Path{state.StateDir, state.RunDir, state.LogDir, state.WorktreeDir} {
		info, err := os.Lstat(l.r.Tree.Abs(dir))
		if err != nil || info.IsDir() {
			continue // the next use makes a missing one; the rule "identity" reports a missing state/
		}
		f := l.add("folder", dir, Error, "", "it is a link or a file, not a folder")
		if dir != state.StateDir {
			f.repair = putAway(l.r, dir, "it stood in the place of a folder of the rig")
		}
	}
}

// putAway moves a file that is of no use into the quarantine.
func putAway(r *rig.Rig, p state.Path, reason string) func(context.Context) error {
	return func(context.Context) error {
		_, err := r.Tree.Quarantine(p, reason, r.Clock.Now())
		return err
	}
}

// locksDir is the folder of the lock files.
const locksDir = state.RunDir + "/locks"

// lockDepth is the depth of the lock files below run/locks: locks/{kind}/{name}.lock.
const lockDepth = 1

func (l *inspection) locks(dir state.Path, depth int) error {
	wrong := func(p state.Path, what string) {
		l.add("lock-file", p, Error, "", "%s", what).repair = putAway(l.r, p, what)
	}
	entries, err := l.r.Tree.List(dir)
	if errors.Is(err, state.ErrCorrupt) {
		wrong(dir, "it is not a folder, so no lock can be taken")
		return nil
	}
	for _, e := range entries {
		p := dir.Join(e.Name())
		switch {
		case depth < lockDepth && e.IsDir():
			err = errors.Join(err, l.locks(p, depth+1))
		case depth < lockDepth:
			wrong(p, "it is not a folder, so no lock of its kind can be taken")
		case !e.Type().IsRegular():
			wrong(p, "it is not a regular file, so this lock can't be taken")
		}
	}
	return err
}

func (l *inspection) stamps() error {
	ids, foreign, err := l.r.Stamps()
	if err != nil {
		return l.notice(err)
	}
	for _, p := range foreign {
		l.add("run-file", p, Warning, "", "it is not a liveness stamp").repair = putAway(l.r, p, "it is not a liveness stamp")
	}
	for _, id := range ids {
		if stamp, alive := l.r.Alive(id); !alive {
			l.add("stale-liveness", rig.StampDir.Join(string(id)+".json"), Info, "", "%s is no longer running", stamp.AgentID).repair =
				func(ctx context.Context) error {
					return l.r.Substitute(ctx, id, state.NewSessionID(), func() error { return nil }) // which takes the stamp away
				}
		}
	}
	return nil
}

// worktreeRecords checks the records of whose work a worktree holds.
func (l *inspection) worktreeRecords() error {
	dir := carry.WorktreeRecords
	entries, err := l.r.Tree.List(dir)
	if err != nil {
		return l.notice(err)
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		id, err := state.ParseAgentID(name)
		named := ok && err == nil
		if _, known := carry.ReadWorktree(l.r, id); named && known {
			continue
		}
		p := dir.Join(e.Name())
		l.add("run-file", p, Warning, "", "it is not a record of whose work a worktree holds").repair = func(ctx context.Context) error {
			if named && healable(l.r) {
				if err := execute.RescueWorktree(ctx, substitute(l.r, id)); err != nil {
					return err
				}
			}
			return putAway(l.r, p, "it is not a record of whose work a worktree holds")(ctx)
		}
	}
	return nil
}

func (l *inspection) definition() {
	const rule, p = "definition", rig.DefinitionName
	switch _, problems, err := rig.LoadDefinition(l.r.Tree.Abs(p), definition.Options{ForceCount: true}); {
	case l.r.DefCopied:
		l.addSettled(rule, p, Warning, "", "it is gone from the checkout; the rig uses the copy of its last start")
	case errors.Is(err, state.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		l.addSettled(rule, p, Error, "", "it is missing")
	case err != nil:
		l.addSettled(rule, p, Error, "", "%v", err)
	case len(problems.Errors()) > 0:
		l.addSettled(rule, p, Error, "", "%v", problems.Errors())
	}
}
