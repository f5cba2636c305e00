package doctor

import (
	"context"
	"errors"
	"regexp"
	"strconv"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// errStillRuns is returned by rebuildHook while the agent is running.
var errStillRuns = errors.New("its agent is running; stop it first (chipset down)")

// rebuildHook makes a missing or unreadable hook again from the beads, which decide in
// such a case. Its gen is above every one that anybody has seen: a gen that fell would
// make a stale compare-and-swap succeed. The old file is kept in the quarantine. The
// agent must not be running, because only its own process knows what it does.
func rebuildHook(ctx context.Context, r *rig.Rig, id state.AgentID) error {
	if _, alive := r.Alive(id); alive {
		return errStillRuns
	}
	l, err := r.Tree.Lock(ctx, state.LockHook, string(id), hook.Dir)
	if err != nil {
		return err
	}
	defer l.Unlock()
	h, err := hookFromBeads(r, id)
	if err != nil {
		return err
	}
	h.Gen = genAbove(r, id)
	_, err = r.Hooks.Get(string(id))
	switch {
	case err == nil:
		return nil // somebody was faster
	case errors.Is(err, state.ErrHardLinked):
		return err
	case errors.Is(err, state.ErrNotRegular): // no content to copy
		if _, err := r.Tree.Quarantine(r.Hooks.Path(string(id)), err.Error(), r.Clock.Now()); err != nil {
			return err
		}
	case errors.Is(err, state.ErrCorrupt):
		if _, err := r.Tree.QuarantineCopy(r.Hooks.Path(string(id)), err.Error(), r.Clock.Now()); err != nil {
			return err
		}
	case !errors.Is(err, state.ErrNotFound):
		return err
	}
	return r.Hooks.Put(string(id), h)
}

// hookFromBeads returns the hook that an agent has according to the beads. An attempt
// whose end is being recorded is active: its polecat finishes it.
func hookFromBeads(r *rig.Rig, id state.AgentID) (hook.Hook, error) {
	now := r.Clock.Now()
	h := hook.Hook{AgentID: id, Gen: 1, Status: hook.Empty, LastActivity: now}
	all, bad, err := r.Beads.All()
	if err != nil {
		return h, err
	}
	if len(bad) > 0 {
		return h, bad[0] // it may be the one on the hook
	}
	for i := range all {
		b := &all[i]
		if b.Assignee != id || b.AssignmentID == "" {
			continue
		}
		end, err := r.Retire.Get(string(b.AssignmentID))
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return h, err
		}
		ending := err == nil && !end.Stage.Final()
		st := hook.Active
		switch {
		case b.Status == bead.Hooked:
			st = hook.Pending
		case b.Status != bead.InProgress && !ending:
			continue
		}
		if h.Status != hook.Empty {
			return h, state.Conflictf("hook "+string(id), "both %s and %s claim to be on it", h.WorkItem.BeadID, b.ID)
		}
		h.Status = st
		h.WorkItem = &hook.WorkItem{AssignedAt: b.UpdatedAt, AssignmentID: b.AssignmentID, BeadID: b.ID, Title: b.Title}
		if ending {
			h.WorkItem.Session = end.Session
		}
	}
	return h, nil
}

// genAbove returns a gen that the hook never had: the clock in milliseconds, which no
// hook reaches by counting, or one above the gen in the damaged file.
func genAbove(r *rig.Rig, id state.AgentID) int64 {
	gen := r.Clock().UnixMilli()
	data, err := r.Tree.Read(r.Hooks.Path(string(id)), 16*state.MaxFile)
	if err != nil {
		return gen
	}
	for _, m := range regexp.MustCompile(`"gen"\s*:\s*([0-9]{1,15})\b`).FindAllSubmatch(data, -1) {
		if n, err := strconv.ParseInt(string(m[1]), 10, 64); err == nil {
			gen = max(gen, n+1)
		}
	}
	return gen
}
