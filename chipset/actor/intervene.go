package actor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// Acts that only the mayor and the person may do. The functions of the same names
// in package carry document what each does, and its errors.

// Sling puts a bead on an agent's hook.
func (a *Actor) Sling(ctx context.Context, id state.BeadID, to state.AgentID) (dispatch.Record, error) {
	if err := a.Authority("sling"); err != nil {
		return dispatch.Record{}, err
	}
	return a.sling(ctx, id, to)
}

// sling is carry.Sling with a conflict for a bead that is already slung.
func (a *Actor) sling(ctx context.Context, id state.BeadID, to state.AgentID) (dispatch.Record, error) {
	rec, err := carry.Sling(ctx, a.Rig, id, to, a.ID)
	var slung *carry.AlreadySlung
	if errors.As(err, &slung) {
		err = state.Conflictf("bead "+string(slung.Bead), "is already slung to %s", slung.Agent)
	}
	return rec, err
}

// FreePolecat returns a polecat with an empty hook, one with a running process first. Errors:
// state.ErrConflict when there is none.
func (a *Actor) FreePolecat() (state.AgentID, error) {
	agents, _, err := a.Agents.All()
	if err != nil {
		return "", err
	}
	var free state.AgentID
	for _, known := range agents {
		if known.Role != agent.Polecat || known.Status == agent.Retired {
			continue
		}
		h, err := a.Hooks.Get(string(known.ID))
		if err != nil || h.Status != hook.Empty {
			continue
		}
		if _, alive := a.Alive(known.ID); alive {
			return known.ID, nil
		}
		if free == "" {
			free = known.ID
		}
	}
	if free == "" {
		return "", WithHint(state.Conflictf("sling", "no polecat is free"), "chipset hook list shows what is on each hook")
	}
	return free, nil
}

// Unsling takes a slung bead back.
func (a *Actor) Unsling(ctx context.Context, id state.BeadID) (bead.Bead, error) {
	if err := a.Authority("unsling"); err != nil {
		return bead.Bead{}, err
	}
	return carry.Unsling(ctx, a.Rig, id, a.ID)
}

// CancelBead cancels a bead.
func (a *Actor) CancelBead(ctx context.Context, id state.BeadID, reason string) error {
	if err := a.Authority("work cancel"); err != nil {
		return err
	}
	return a.decideBead(ctx, id, func() error { return carry.Cancel(ctx, a.Rig, id, reason, a.ID) })
}

// ReopenBead makes a bead open again.
func (a *Actor) ReopenBead(ctx context.Context, id state.BeadID, reason string) error {
	if err := a.Authority("work reopen"); err != nil {
		return err
	}
	return a.decideBead(ctx, id, func() error { return carry.Reopen(ctx, a.Rig, id, reason, a.ID) })
}

// decideBead carries out a decision about a bead, and then marks the mayor's mail as
// read that asked the person for it.
func (a *Actor) decideBead(ctx context.Context, id state.BeadID, do func() error) error {
	before, err := a.Beads.Get(string(id))
	if doErr := do(); doErr != nil || err != nil || before.Status != bead.Blocked {
		return doErr
	}
	box := a.Mailbox(state.Human)
	unread, _, err := box.Unread()
	for i := range unread {
		e := &unread[i]
		if err == nil && e.From == a.Mayor() && e.Type == mail.Coordination && e.Ref != nil && e.Ref.BeadID == id && e.Ref.AssignmentID == before.AssignmentID {
			err = box.MarkRead(ctx, e.Name)
		}
	}
	if err != nil {
		return fmt.Errorf("the decision is made, but the mail about %s is not marked as read: %w", id, err)
	}
	return nil
}

// RetryRequest puts a merge request back into its place in the queue.
func (a *Actor) RetryRequest(ctx context.Context, id state.MergeID) (mergequeue.Request, error) {
	if err := a.Authority("queue retry"); err != nil {
		return mergequeue.Request{}, err
	}
	return carry.Retry(ctx, a.Rig, id, a.ID)
}

// DropRequest drops a merge request.
func (a *Actor) DropRequest(ctx context.Context, id state.MergeID, reason string) (mergequeue.Request, error) {
	if err := a.Authority("queue drop"); err != nil {
		return mergequeue.Request{}, err
	}
	if _, err := Text("the reason", reason, MaxVerdict); err != nil {
		return mergequeue.Request{}, err
	}
	return carry.Drop(ctx, a.Rig, id, reason, a.ID)
}

// DecideRequest lets the change to protected files land for which a merge request is held, or sends the work back with
// the reason. change is the one that the person was shown; "" is the present one. Only the person may decide.
func (a *Actor) DecideRequest(ctx context.Context, id state.MergeID, change string, d Decision) error {
	if a.ID != state.Human {
		return state.Conflictf("merge request "+string(id), "only the person may let protected files change, and you speak as %s", a.ID)
	}
	q, err := a.Queue.Get(string(id))
	switch {
	case err != nil:
		return err
	case d.Remember:
		return Invalidf("a decision about protected files (merge.protect) can't be remembered")
	case d.Approved && change == "" && q.Held != nil:
		change = q.Held.Change
	case !d.Approved && strings.TrimSpace(d.Reason) == "":
		return Invalidf("a reason is required to send it back")
	}
	if d.Approved {
		_, err = carry.Allow(ctx, a.Rig, id, change)
		return err
	}
	return carry.Deny(ctx, a.Rig, id, d.Reason, a.ID)
}

// BeadEdit is a change to the fields of a bead.
type BeadEdit struct {
	// What names the fields, for the log.
	What string
	// Dependencies is true if the change concerns blocked_by, too.
	Dependencies bool
	// Change runs under the bead's lock.
	Change func(b *bead.Bead) error
}

// EditBead changes a bead that nobody is working on. Errors: state.ErrConflict for
// one that can't be edited, *state.Unknown, those of CheckBead.
func (a *Actor) EditBead(ctx context.Context, id string, e BeadEdit) (bead.Bead, error) {
	if err := a.Authority("work edit"); err != nil {
		return bead.Bead{}, err
	}
	if e.Dependencies {
		// Two concurrent edits could each be fine and close a cycle together.
		lock, err := a.Tree.Lock(ctx, state.LockDispatch, "dependencies")
		if err != nil {
			return bead.Bead{}, err
		}
		defer lock.Unlock()
	}
	return a.Beads.By(a.ID, e.What).Edit(ctx, state.BeadID(id), func(b *bead.Bead) error {
		if !b.Editable() {
			return state.Conflictf("bead "+id, "is %s and can't be edited", b.Status)
		}
		if err := e.Change(b); err != nil {
			return err
		}
		if err := CheckBead(b); err != nil {
			return err
		}
		if e.Dependencies {
			if err := a.Beads.CheckDependencies(b.ID, b.BlockedBy); err != nil {
				return err
			}
		}
		b.Touch(a.Clock.Now())
		return nil
	})
}
