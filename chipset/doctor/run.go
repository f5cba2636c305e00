package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/execute"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

// checkRun looks at the folders of the rig, at its definition, and at run/,
// where a wrong kind of file would refuse every lock.
func checkRun(_ context.Context, r *rig.Rig) ([]finding, error) {
	found := checkFolders(r)
	if len(found) == 0 { // through a link nothing is looked at
		locks, err := checkLocks(r, locksDir, 0)
		if err != nil {
			return found, err
		}
		stamps, err := checkStamps(r)
		if err != nil {
			return found, err
		}
		found = append(append(found, locks...), stamps...)
		records, err := checkWorktreeRecords(r)
		if err != nil {
			return found, err
		}
		found = append(found, records...)
	}
	return append(found, checkDefinition(r)...), nil
}

func checkFolders(r *rig.Rig) []finding {
	var found []finding
	for _, dir := range []state.Path{state.StateDir, state.RunDir, state.LogDir, state.WorktreeDir} {
		info, err := os.Lstat(r.Tree.Abs(dir))
		if err != nil || info.IsDir() {
			continue // what is missing is made by the next use, and state/ by nobody
		}
		f := finding{Finding: Finding{Rule: "folder", Path: string(dir), Severity: Error, Detail: "it is a link or a file, and not a folder"}}
		if dir != state.StateDir {
			f.repair = putAway(r, dir, "it stood where a folder of the rig belongs")
		}
		found = append(found, f)
	}
	return found
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

func checkLocks(r *rig.Rig, dir state.Path, depth int) ([]finding, error) {
	wrong := func(p state.Path, what string) finding {
		return finding{Finding: Finding{Rule: "lock-file", Path: string(p), Severity: Error, Detail: what}, repair: putAway(r, p, what)}
	}
	entries, err := r.Tree.List(dir)
	if errors.Is(err, state.ErrCorrupt) {
		return []finding{wrong(dir, "it is no folder, so nobody can take a lock")}, nil
	}
	var found []finding
	for _, e := range entries {
		p := dir.Join(e.Name())
		switch {
		case depth < lockDepth && e.IsDir():
			more, err := checkLocks(r, p, depth+1)
			if err != nil {
				return found, err
			}
			found = append(found, more...)
		case depth < lockDepth:
			found = append(found, wrong(p, "it is no folder, so nobody can take a lock"))
		case !e.Type().IsRegular():
			found = append(found, wrong(p, "it is no plain file, so nobody can take this lock"))
		}
	}
	return found, err
}

func checkStamps(r *rig.Rig) ([]finding, error) {
	ids, foreign, err := r.Stamps()
	if err != nil {
		return noticed(nil, err)
	}
	var found []finding
	for _, p := range foreign {
		found = append(found, finding{Finding: Finding{Rule: "run-file", Path: string(p), Severity: Warning, Detail: "it is no liveness stamp"},
			repair: putAway(r, p, "it is no liveness stamp")})
	}
	for _, id := range ids {
		stamp, alive := r.Alive(id)
		if alive {
			continue
		}
		found = append(found, finding{Finding: Finding{Rule: "stale-liveness", Path: string(rig.StampDir.Join(string(id) + ".json")), Severity: Info,
			Detail: fmt.Sprintf("no process speaks for %s any more", stamp.AgentID)}, repair: func(ctx context.Context) error { return unstamp(ctx, r, id) }})
	}
	return found, nil
}

func unstamp(ctx context.Context, r *rig.Rig, id state.AgentID) error {
	lock, err := r.Claim(ctx, id, state.NewSessionID())
	if err != nil {
		return err
	}
	defer lock.Unlock()
	r.Unstamp(id)
	return nil
}

// checkWorktreeRecords looks at what says whose work a worktree holds.
func checkWorktreeRecords(r *rig.Rig) ([]finding, error) {
	dir := carry.WorktreeRecords
	entries, err := r.Tree.List(dir)
	if err != nil {
		return noticed(nil, err)
	}
	var found []finding
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		id, err := state.ParseAgentID(name)
		if ok && err == nil {
			if _, known := carry.ReadWorktree(r, id); known {
				continue
			}
		}
		p := dir.Join(e.Name())
		f := finding{Finding: Finding{Rule: "run-file", Path: string(p), Severity: Warning, Detail: "it does not say whose work a worktree holds"}}
		f.repair = func(ctx context.Context) error {
			if ok && err == nil && healable(r) {
				if err := execute.RescueWorktree(ctx, substitute(r, id)); err != nil {
					return err
				}
			}
			return putAway(r, p, "it did not say whose work a worktree holds")(ctx)
		}
		found = append(found, f)
	}
	return found, nil
}

func checkDefinition(r *rig.Rig) []finding {
	f := finding{settled: true, Finding: Finding{Rule: "definition", Path: rig.DefinitionName}}
	switch _, problems, err := rig.LoadDefinition(r.Tree.Abs(rig.DefinitionName), definition.Options{}); {
	case r.DefCopied:
		f.Severity, f.Detail = Warning, "it is gone from the checkout; what the rig was last started with is in force"
	case errors.Is(err, state.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		f.Severity, f.Detail = Error, "it is missing"
	case err != nil:
		f.Severity, f.Detail = Error, err.Error()
	case len(problems.Errors()) > 0:
		f.Severity, f.Detail = Error, problems.Errors().Error()
	default:
		return nil
	}
	return []finding{f}
}
