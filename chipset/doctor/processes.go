package doctor

import (
	"context"
	"errors"
	"io/fs"

	"github.com/gastown-chipset/chipset/chipset/execute"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// processes looks for workers without a polecat. A supervisor ends its worker within
// seconds; a worker that is still there outlived it.
func (l *inspection) processes(context.Context) error {
	r := l.r
	entries, err := r.Tree.List(rig.WorkerDir)
	if err != nil {
		return err
	}
	hooks, _, err := r.Hooks.All()
	if err != nil {
		return err
	}
	owner := map[string]state.AgentID{}
	for i := range hooks {
		if w := hooks[i].WorkItem; w != nil && w.Session != "" {
			owner[string(w.Session)] = hooks[i].AgentID
		}
	}
	for _, e := range entries {
		p := rig.WorkerDir.Join(e.Name())
		exit, there, err := process.ReadExit(r.Tree.Abs(p))
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			l.add("worker-record", p, Warning, "", "%v", err).repair = putAway(r, p, "it is not an exit record")
			continue
		}
		if err != nil || !there || !exit.Alive() {
			continue
		}
		if _, alive := r.Alive(owner[exit.ID]); !alive || owner[exit.ID] == "" {
			l.add("orphaned-worker", p, Error, "chipset up ends it and saves its work; so does chipset doctor --fix",
				"the worker of session %s is still running, but its polecat is not", exit.ID).repair = endOrphan(r, owner[exit.ID])
		}
	}
	return nil
}

// endOrphan runs the recovery of the worker's polecat; if that is not known, of all
// polecats that are not running.
func endOrphan(r *rig.Rig, owner state.AgentID) func(context.Context) error {
	if !healable(r) {
		return nil
	}
	return func(ctx context.Context) error {
		if owner != "" {
			return execute.HealPolecat(ctx, substitute(r, owner))
		}
		all, _, err := r.Agents.All()
		for _, a := range all {
			if _, alive := r.Alive(a.ID); a.Role == agent.Polecat && !alive {
				err = errors.Join(err, execute.HealPolecat(ctx, substitute(r, a.ID)))
			}
		}
		return err
	}
}
