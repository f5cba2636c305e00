package carry

import (
	"context"
	"errors"
	"fmt"

	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
)

// AlreadySlung is returned by Sling for a bead that is durably on a hook. Sling has at most
// completed an earlier dispatch; this is not a failure.
type AlreadySlung struct {
	Bead  state.BeadID
	Agent state.AgentID
}

func (a *AlreadySlung) Error() string {
	return fmt.Sprintf("bead %s is already slung to %s", a.Bead, a.Agent)
}

// Sling puts a ready bead on an empty hook. When it returns nil, bead, hook
// and assignment mail are durable. Errors: *AlreadySlung; ErrConflict if the
// bead is not open, waits for others (which are named), or the hook is taken;
// ErrNotFound. An error leaves nothing half done. If the process dies,
// the next Sling of the bead, or HealDispatch, finishes or undoes it.
func Sling(ctx context.Context, r *rig.Rig, id state.BeadID, to, by state.AgentID) (dispatch.Record, error) {
	return (&carrier{Rig: r}).sling(ctx, id, to, by)
}

func (c *carrier) sling(ctx context.Context, id state.BeadID, to, by state.AgentID) (dispatch.Record, error) {
	lock, err := c.Tree.Lock(ctx, state.LockDispatch, string(id), dispatch.Dir)
	if err != nil {
		return dispatch.Record{}, err
	}
	defer lock.Unlock()
	// Finish an earlier dispatch that a crash interrupted: a caller that gets AlreadySlung
	// relies on the hook and on the mail.
	if _, err := c.settleDispatch(ctx, id); err != nil && !errors.Is(err, state.ErrCorrupt) {
		return dispatch.Record{}, err
	}
	b, err := c.ready(id)
	if err != nil {
		return dispatch.Record{}, err
	}
	if err := c.acceptsWork(to); err != nil {
		return dispatch.Record{}, err
	}
	rec := flow.NewDispatch(&b, to, by, state.NewAssignmentID(), c.Clock.Now())
	first := flow.PutDispatch{Record: rec}
	if err := c.do(ctx, first); err != nil {
		return rec, err
	}
	if err := c.did(first.Name()); err != nil {
		return rec, err
	}
	d := &flow.Dispatch{Begun: true}
	if err := c.dispatch(ctx, d, id); err != nil {
		return rec, err
	}
	switch {
	case d.Record.Stage == dispatch.Confirmed:
		return d.Record, nil
	case d.Refusal != nil:
		return rec, d.Refusal
	}
	return rec, state.Conflictf("bead "+string(id), "is not there any more, or was taken away")
}

// dispatch carries out a dispatch, with its lock held.
func (c *carrier) dispatch(ctx context.Context, d *flow.Dispatch, id state.BeadID) error {
	return c.run(ctx, d, func() (err error) {
		d.Record, err = c.Dispatch.Get(string(id))
		if errors.Is(err, state.ErrNotFound) {
			d.Record = dispatch.Record{}
			return nil
		}
		if err != nil {
			return err
		}
		d.Bead, err = c.Beads.Get(string(id))
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
		d.Hooked, err = c.hooked(d.Record.AgentID)
		return err
	})
}

// ready reads the bead and refuses one that can't be slung.
func (c *carrier) ready(id state.BeadID) (bead.Bead, error) {
	b, err := c.Beads.Get(string(id))
	if err != nil {
		return b, err
	}
	if b.Status == bead.Hooked || b.Status == bead.InProgress {
		if err := c.settle(bead.Dir, hook.Dir); err != nil { // visible is not durable
			return b, err
		}
		return b, &AlreadySlung{id, b.Assignee}
	}
	byID := make(map[state.BeadID]*bead.Bead, len(b.BlockedBy))
	for _, dep := range b.BlockedBy {
		if d, err := c.Beads.Get(string(dep)); err == nil {
			byID[dep] = &d
		} else if !errors.Is(err, state.ErrNotFound) {
			return b, err
		}
	}
	return b, flow.Ready(&b, byID)
}

func (c *carrier) acceptsWork(to state.AgentID) error {
	a, err := c.Agents.Get(string(to))
	if err != nil {
		return err
	}
	if err := flow.AcceptsWork(&a); err != nil {
		return err
	}
	h, err := c.Hooks.Get(string(to))
	if err != nil {
		return err
	}
	return flow.Free(&h)
}

// HealDispatch finishes or undoes a dispatch whose process
// died. It reports whether there was anything to do.
func HealDispatch(ctx context.Context, r *rig.Rig, id state.BeadID) (bool, error) {
	return (&carrier{Rig: r}).heal(ctx, id)
}

func (c *carrier) heal(ctx context.Context, id state.BeadID) (bool, error) {
	lock, err := c.Tree.Lock(ctx, state.LockDispatch, string(id), dispatch.Dir)
	if err != nil {
		return false, err
	}
	defer lock.Unlock()
	return c.settleDispatch(ctx, id)
}

// settleDispatch is heal with the dispatch lock held.
func (c *carrier) settleDispatch(ctx context.Context, id state.BeadID) (bool, error) {
	rec, err := c.Dispatch.Get(string(id))
	if errors.Is(err, state.ErrNotFound) {
		return false, nil
	}
	if err != nil || rec.Stage == dispatch.Confirmed {
		return false, err
	}
	if err := c.settle(dispatch.Dir, bead.Dir, hook.Dir); err != nil {
		return false, err
	}
	return true, c.dispatch(ctx, &flow.Dispatch{}, id)
}

// HealDispatches heals all dispatches and returns how many. One that
// can't be healed does not stop the others; the error joins all failures.
func HealDispatches(ctx context.Context, r *rig.Rig) (int, error) {
	all, _, err := r.Dispatch.All()
	if err != nil {
		return 0, err
	}
	n := 0
	var failed []error
	for _, rec := range all {
		if rec.Stage == dispatch.Confirmed {
			continue
		}
		healed, err := HealDispatch(ctx, r, rec.BeadID)
		if err != nil {
			failed = append(failed, fmt.Errorf("dispatch of %s: %w", rec.BeadID, err))
		} else if healed {
			n++
		}
	}
	return n, errors.Join(failed...)
}

// ReleaseHook clears a hook if it still names the assignment, and leaves any
// other hook alone.
func ReleaseHook(ctx context.Context, r *rig.Rig, id state.AgentID, a state.AssignmentID, by state.AgentID) error {
	if id == "" {
		return nil
	}
	h, err := r.Hooks.Get(string(id))
	if errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrCorrupt) {
		return nil // the witness reports it
	}
	if err != nil || h.WorkItem == nil {
		return err
	}
	err = (&carrier{Rig: r}).do(ctx, flow.ClearHook{Agent: id, Assignment: a, BeadID: h.WorkItem.BeadID, By: by})
	if errors.Is(err, state.ErrConflict) {
		return nil // somebody was faster
	}
	return err
}
