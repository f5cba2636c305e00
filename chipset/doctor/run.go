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

// runFolder looks at the folders of the rig, at its definition, and at run/,
// where a wrong kind of file would refuse every lock.
func (l *inspection) runFolder(context.Context) error {
	defer l.definition()
	l.folders()
	if len(l.found) > 0 {
		return nil // through a link nothing is looked at
	}
	return errors.Join(l.locks(locksDir, 0), l.stamps(), l.worktreeRecords())
}

func (l *inspection) folders() {
	for _, dir := range []state.Path{state.StateDir, state.RunDir, state.LogDir, state.WorktreeDir} {
		info, err := os.Lstat(l.r.Tree.Abs(dir))
		if err != nil || info.IsDir() {
			continue // what is missing is made by the next use, and state/ by nobody
		}
		f := l.add("folder", dir, Error, "", "it is a link or a file, and not a folder")
		if dir != state.StateDir {
			f.repair = putAway(l.r, dir, "it stood where a folder of the rig belongs")
		}
	}
}

// putAway moves what is of no use where it stands into the quarantine.
func putAway(r *rig.Rig, p state.Path, reason string) func(context.Context) error {
	return func(context.Context) error {
		_, err := r.Tree.Quarantine(p, reason, r.Clock.Now())
		return err
	}
}

// locksDir is where the lock files lie.
const locksDir = state.RunDir + "/locks"

// lockDepth is where the lock files lie below run/locks: locks/{kind}/{name}.lock.
const lockDepth = 1

func (l *inspection) locks(dir state.Path, depth int) error {
	wrong := func(p state.Path, what string) {
		l.add("lock-file", p, Error, "", "%s", what).repair = putAway(l.r, p, what)
	}
	entries, err := l.r.Tree.List(dir)
	if errors.Is(err, state.ErrCorrupt) {
		wrong(dir, "it is not a folder, so nobody can take a lock")
		return nil
	}
	for _, e := range entries {
		p := dir.Join(e.Name())
		switch {
		case depth < lockDepth && e.IsDir():
			err = errors.Join(err, l.locks(p, depth+1))
		case depth < lockDepth:
			wrong(p, "it is not a folder, so nobody can take a lock")
		case !e.Type().IsRegular():
			wrong(p, "it is not a plain file, so nobody can take this lock")
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
			l.add("stale-liveness", rig.StampDir.Join(string(id)+".json"), Info, "", "no process speaks for %s any more", stamp.AgentID).repair =
				func(ctx context.Context) error {
					return l.r.Substitute(ctx, id, state.NewSessionID(), func() error { return nil }) // which takes the stamp away
				}
		}
	}
	return nil
}

// worktreeRecords looks at what says whose work a worktree holds.
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
		l.add("run-file", p, Warning, "", "it does not say whose work a worktree holds").repair = func(ctx context.Context) error {
			if named && healable(l.r) {
				if err := execute.RescueWorktree(ctx, substitute(l.r, id)); err != nil {
					return err
				}
			}
			return putAway(l.r, p, "it did not say whose work a worktree holds")(ctx)
		}
	}
	return nil
}

func (l *inspection) definition() {
	const rule, p = "definition", rig.DefinitionName
	switch _, problems, err := rig.LoadDefinition(l.r.Tree.Abs(p), definition.Options{ForceCount: true}); {
	case l.r.DefCopied:
		l.addSettled(rule, p, Warning, "", "it is gone from the checkout; what the rig was last started with is in force")
	case errors.Is(err, state.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		l.addSettled(rule, p, Error, "", "it is missing")
	case err != nil:
		l.addSettled(rule, p, Error, "", "%v", err)
	case len(problems.Errors()) > 0:
		l.addSettled(rule, p, Error, "", "%v", problems.Errors())
	}
}
