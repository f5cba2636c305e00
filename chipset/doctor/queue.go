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

// landable reports whether the finished end of an attempt says all that the merge
// request of its bead needs.
func landable(end *retire.Record, b *bead.Bead) bool {
	return end != nil && end.Stage == retire.Released && end.Outcome == retire.Done && !end.Empty &&
		b.Status == bead.Done && end.BeadID == b.ID && end.AssignmentID == b.AssignmentID && end.Branch != "" && end.Head != ""
}

// resubmit makes the merge request of a bead again that was lost, from the record
// of how its attempt ended. The bead is held meanwhile, so that nobody takes it
// back. A request that can't be read may be the lost one: it has to go first.
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
		return state.Conflictf("bead "+string(id), "it moved on meanwhile")
	}
	if _, bad, err := r.Queue.Queue(); err != nil || len(bad) > 0 {
		return errors.Join(append(bad, err)...)
	}
	_, err = r.Queue.Submit(ctx, mergequeue.Request{BeadID: id, AssignmentID: end.AssignmentID, AgentID: end.AgentID,
		SourceBranch: end.Branch, TargetBranch: string(target), Head: end.Head, Base: end.Base}, r.Clock.Now())
	return err
}
