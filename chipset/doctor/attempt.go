package doctor

import (
	"fmt"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// againstAttempt finds beads that contradict the record of their attempt: finished ones that no attempt finished, so that
// the beads that depend on them would start on work that is not there; and assigned ones whose attempt is over.
func (c *relations) againstAttempt(b *bead.Bead, p state.Path) {
	end := c.Retire[b.AssignmentID]
	switch {
	case b.AssignmentID == "" && b.Status == bead.Merged:
		c.add("merged-without-request", p, Error, "", "it is merged, but was never assigned")
	case b.AssignmentID == "" && b.Status == bead.Closed && !b.Imported():
		c.add("finished-without-attempt", p, Error, "chipset work reopen "+string(b.ID), "it is closed, but was never assigned, and was not imported")
	case end != nil && end.Outcome != retire.Done && (b.Status == bead.Merged || b.Status == bead.Done || b.Status == bead.Closed && !b.Imported()):
		c.add("finished-without-attempt", p, Error, "chipset why "+string(b.ID), "it is %s under %s, but the outcome of that attempt is %s", b.Status, b.AssignmentID, end.Outcome)
	case end != nil && end.Stage.Final() && (b.Status == bead.Hooked || b.Status == bead.InProgress):
		c.add("attempt-over", p, Error, "chipset unsling "+string(b.ID)+" opens it again", "it is %s under %s, but that attempt is over (%s, %s), and no polecat will start it",
			b.Status, b.AssignmentID, end.Outcome, end.Stage)
	case b.AssignmentID != "" && b.Status == bead.Open:
		c.add("bead-open", p, Warning, "", "it is open, but has the assignment %s", b.AssignmentID)
	}
}

// waitsForCancelled finds open beads that can't start until a person acts.
func (c *relations) waitsForCancelled(b *bead.Bead, p state.Path) {
	if b.Status != bead.Open {
		return
	}
	for _, dep := range b.BlockedBy {
		if d := c.BeadByID[dep]; d != nil && d.Status == bead.Cancelled {
			c.add("dependency-cancelled", p, Warning, fmt.Sprintf("chipset work edit %s changes what it waits for; chipset work reopen %s brings the other back", b.ID, dep),
				"it waits for %s, which is cancelled", dep)
		}
	}
}

// attempt compares a merge request with the record of the attempt that submitted it,
// because the refinery lands what the request says.
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
			c.add("request-attempt", p, Error, "chipset queue drop "+string(q.ID)+" removes it, if it has not landed",
				"%s is %q, but %q in the record of the attempt %s", pair.field, pair.says, pair.ended, q.AssignmentID)
		}
	}
}
