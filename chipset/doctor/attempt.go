package doctor

import (
	"fmt"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// againstAttempt finds beads that say something else than the attempt at them: finished ones that no attempt of a polecat
// finished, so that what waits for them would start on work that is not there; and those at work whose attempt is over.
func (c *relations) againstAttempt(b *bead.Bead, p state.Path) {
	end := c.Retire[b.AssignmentID]
	switch {
	case b.AssignmentID == "" && b.Status == bead.Merged:
		c.add("merged-without-request", p, Error, "", "it is merged, but was never assigned")
	case b.AssignmentID == "" && b.Status == bead.Closed && !b.Imported():
		c.add("finished-without-attempt", p, Error, "chipset work reopen "+string(b.ID), "it is closed, but was never assigned, and was not imported")
	case end != nil && end.Outcome != retire.Done && (b.Status == bead.Merged || b.Status == bead.Done || b.Status == bead.Closed && !b.Imported()):
		c.add("finished-without-attempt", p, Error, "chipset why "+string(b.ID), "it is %s under %s, but that attempt ended with %s", b.Status, b.AssignmentID, end.Outcome)
	case end != nil && end.Stage.Final() && (b.Status == bead.Hooked || b.Status == bead.InProgress):
		c.add("attempt-over", p, Error, "chipset unsling "+string(b.ID)+" opens it again", "it is %s under %s, but that attempt is over (%s, %s): no polecat begins it",
			b.Status, b.AssignmentID, end.Outcome, end.Stage)
	case b.AssignmentID != "" && b.Status == bead.Open:
		c.add("bead-open", p, Warning, "", "it is open, and carries the assignment %s", b.AssignmentID)
	}
}

// waitsForCancelled finds open beads that nothing but a person can ever start.
func (c *relations) waitsForCancelled(b *bead.Bead, p state.Path) {
	if b.Status != bead.Open {
		return
	}
	for _, dep := range b.BlockedBy {
		if d := c.BeadByID[dep]; d != nil && d.Status == bead.Cancelled {
			c.add("dependency-cancelled", p, Warning, fmt.Sprintf("chipset work edit %s changes what it waits for, or chipset work reopen %s", b.ID, dep),
				"it waits for %s, which is cancelled", dep)
		}
	}
}

// attempt holds a merge request against the record of the attempt that submitted
// it: the refinery lands what the request says.
func (c *relations) attempt(q *mergequeue.Request, p state.Path) {
	end := c.Retire[q.AssignmentID]
	if end == nil {
		return
	}
	for _, pair := range []struct{ field, says, ended string }{
		{"bead_id", string(q.BeadID), string(end.BeadID)},
		{"agent_id", string(q.AgentID), string(end.AgentID)},
		{"head", q.Head, end.Head},
		{"source_branch", q.SourceBranch, end.Branch},
	} {
		if pair.ended != "" && pair.says != pair.ended {
			c.add("request-attempt", p, Error, "chipset queue drop "+string(q.ID)+" takes it out, if it has not landed",
				"%s is %q, but the attempt %s ended with %q", pair.field, pair.says, q.AssignmentID, pair.ended)
		}
	}
}
