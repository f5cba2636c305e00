package doctor

import (
	"context"
	"errors"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// landable reports whether the record of an ended attempt has all that the merge request
// of its bead needs.
func landable(end *retire.Record, b *bead.Bead) bool {
	return end != nil && end.Stage == retire.Released && end.Outcome == retire.Done && !end.Empty &&
		b.Status == bead.Done && end.BeadID == b.ID && end.AssignmentID == b.AssignmentID && end.Branch != "" && end.Head != ""
}

// resubmit submits the lost merge request of a bead again, from the record of its
// attempt. The bead is locked meanwhile, so that it can't be taken back. An unreadable
// request may be the lost one: it has to go first.
func resubmit(ctx context.Context, r *rig.Rig, id state.BeadID) error {
	target, err := r.Target(ctx)
	if err != nil {
		return err
	}
	l, err := r.Tree.Lock(ctx, state.LockBead, string(id), bead.Dir)
	if err != nil {
		return err
	}
	defer l.Unlock()
	b, err := r.Beads.Get(string(id))
	if err != nil {
		return err
	}
	end, err := r.Retire.Get(string(b.AssignmentID))
	if err != nil {
		return err
	}
	if !landable(&end, &b) {
		return state.Conflictf("bead "+string(id), "it has changed meanwhile")
	}
	if _, bad, err := r.Queue.Queue(); err != nil || len(bad) > 0 {
		return errors.Join(append(bad, err)...)
	}
	_, err = r.Queue.Submit(ctx, mergequeue.Request{BeadID: id, AssignmentID: end.AssignmentID, AgentID: end.AgentID,
		SourceBranch: end.Branch, TargetBranch: string(target), Head: end.Head, Base: end.Base}, r.Clock.Now())
	return err
}
