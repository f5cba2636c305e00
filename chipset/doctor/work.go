package doctor

import (
	"context"
	"fmt"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

// relations is one look at how the records of a rig fit together. A contradiction that an
// unfinished sequence explains (a dispatch, the end of an attempt, a merge) is not
// reported: the unfinished sequence is a finding of its own.
type relations struct {
	*rig.Records
	inspection
}

// related makes a check of a method that compares the records of the rig.
func related(compare func(*relations, context.Context) error) check {
	return func(ctx context.Context, r *rig.Rig) ([]finding, error) {
		all, err := r.ReadAll(ctx)
		if err != nil {
			return nil, err
		}
		c := &relations{Records: all, inspection: inspection{r: r}}
		err = compare(c, ctx)
		return c.found, err
	}
}

func (c *relations) work(context.Context) error {
	for i := range c.Beads {
		c.bead(&c.Beads[i])
	}
	for _, a := range c.Agents {
		if h := c.Hooks[a.ID]; h != nil && h.WorkItem != nil {
			c.hook(h)
		}
	}
	c.cycles()
	c.requests()
	c.groups()
	c.branchNames()
	return nil
}

// pending reports whether an unfinished sequence explains why the records of an
// assignment don't agree yet.
func (c *relations) pending(id state.BeadID, a state.AssignmentID) bool {
	if d := c.DispatchOf(id); d != nil && d.AssignmentID == a && d.Stage != dispatch.Confirmed {
		return true
	}
	end := c.Retire[a]
	return end != nil && !end.Stage.Final()
}

func (c *relations) bead(b *bead.Bead) {
	p := c.r.Beads.Path(string(b.ID))
	for _, dep := range b.BlockedBy {
		if c.BeadByID[dep] == nil {
			c.add("dependency", p, Error, "chipset work edit "+string(b.ID)+" changes what it waits for",
				"it waits for %s, which does not exist", dep)
		}
	}
	if _, err := git.ParseBranch(bead.BranchFor(b.ID, 1)); err != nil && !b.Status.Finished() {
		c.add("bead-id", p, Error, "chipset work cancel "+string(b.ID)+", and add it again", "its ID can't be part of a branch name: %v", err)
	}
	c.waitsForCancelled(b, p)
	if c.pending(b.ID, b.AssignmentID) {
		return
	}
	c.againstAttempt(b, p)
	switch b.Status {
	case bead.Hooked, bead.InProgress:
		c.assigned(b, p)
	case bead.Done:
		c.done(b, p)
	case bead.Merged:
		if q := c.RequestOf(b.AssignmentID); b.AssignmentID != "" && (q == nil || q.Status != mergequeue.Merged) {
			c.add("merged-without-request", p, c.unless(c.r.Refinery(), q), "", "it is merged, but its assignment %s has %s", b.AssignmentID, described(q))
		}
	case bead.Open, bead.Closed, bead.Failed, bead.Blocked, bead.Cancelled:
	}
}

func described(q *mergequeue.Request) string {
	if q == nil {
		return "no merge request"
	}
	return fmt.Sprintf("the merge request %s, which is %s", q.ID, q.Status)
}

// unless returns the severity of a request that the refinery has not finished: a warning
// while the refinery is not running, because its next start finishes it.
func (c *relations) unless(id state.AgentID, q *mergequeue.Request) Severity {
	if _, alive := c.Alive[id]; !alive && q != nil && (q.Status == mergequeue.Merging || q.Status == mergequeue.Merged) {
		return Warning
	}
	return Error
}

func (c *relations) assigned(b *bead.Bead, p state.Path) {
	h := c.Hooks[b.Assignee]
	switch {
	case b.Assignee == "":
		c.opens(c.add("bead-hook", p, Error, "", "it is %s, but has no assignee", b.Status), b.ID)
	case h == nil || h.Assignment() != b.AssignmentID:
		f := c.add("bead-hook", p, Error, "",
			"it is %s under %s, but the hook of %s does not name that assignment", b.Status, b.AssignmentID, b.Assignee)
		if h == nil && !c.absent(c.r.Hooks.Path(string(b.Assignee))) {
			f.Hint = "repair its hook first, which can't be read" // the rebuilt hook will name it
			break
		}
		if h == nil && c.Agent(b.Assignee) != nil {
			f.Hint = "repair its hook first, which is missing"
			break
		}
		c.opens(f, b.ID)
	case b.Status == bead.InProgress && h.Status != hook.Active:
		f := c.add("bead-hook", p, Error, "", "it is in progress, but the hook of %s is %s", b.Assignee, h.Status)
		if h.Status == hook.Completed {
			c.opens(f, b.ID)
		} else {
			f.Severity, f.Hint = Warning, "its polecat activates the hook when it starts: chipset up"
		}
	}
	if d := c.DispatchOf(b.ID); d != nil && d.AssignmentID != b.AssignmentID {
		c.add("bead-dispatch", p, Warning, "", "its dispatch record names %s, the bead %s", d.AssignmentID, b.AssignmentID)
	}
}

// opens makes taking the bead back, as the mayor does, the repair.
func (c *relations) opens(f *finding, id state.BeadID) {
	f.repair = func(ctx context.Context) error {
		_, err := carry.Unsling(ctx, c.r, id, state.Human)
		return err
	}
}

// absent reports whether a path does not exist.
func (c *relations) absent(p state.Path) bool {
	there, err := c.r.Tree.Exists(p)
	return err == nil && !there
}

func (c *relations) done(b *bead.Bead, p state.Path) {
	q := c.RequestOf(b.AssignmentID)
	switch {
	case q == nil || q.Status == mergequeue.Superseded || q.Status == mergequeue.Dropped:
		f := c.add("done-without-request", p, Error, "chipset work cancel "+string(b.ID)+", then chipset work reopen "+string(b.ID),
			"it is done, but its assignment %s has %s", b.AssignmentID, described(q))
		if q == nil && c.r.Def != nil && c.r.Git != nil && landable(c.Retire[b.AssignmentID], b) {
			f.Hint = "chipset doctor --fix submits it again as its attempt ended"
			id := b.ID
			f.repair = func(ctx context.Context) error { return resubmit(ctx, c.r, id) }
		}
	case q.Status == mergequeue.Merged:
		f := c.add("landed-not-told", p, c.unless(c.r.Refinery(), q), "the refinery finishes this when it starts", "its request %s is merged, but the bead is done", q.ID)
		c.heals(f, c.r.Refinery(), agent.Refinery)
	}
}

func (c *relations) hook(h *hook.Hook) {
	p := c.r.Hooks.Path(string(h.AgentID))
	w := h.WorkItem
	b := c.BeadByID[w.BeadID]
	if c.pending(w.BeadID, w.AssignmentID) {
		return
	}
	if b == nil {
		if !c.absent(c.r.Beads.Path(string(w.BeadID))) {
			return // its file can't be read, which is another finding
		}
		if h.Status != hook.Completed {
			c.release(c.add("hook-bead", p, Error, "", "its bead %s does not exist", w.BeadID), h)
		}
		return
	}
	// A completed hook waits for the mayor, and its bead may have moved on.
	fits := h.Status == hook.Completed || b.AssignmentID == w.AssignmentID && (b.Status == bead.Hooked || b.Status == bead.InProgress)
	if !fits {
		c.release(c.add("hook-bead", p, Error, "",
			"it is %s with %s under %s, but the bead is %s under %q", h.Status, b.ID, w.AssignmentID, b.Status, b.AssignmentID), h)
	}
}

func (c *relations) release(f *finding, h *hook.Hook) {
	id, a := h.AgentID, h.Assignment()
	f.repair = func(ctx context.Context) error { return carry.ReleaseHook(ctx, c.r, id, a, state.Human) }
}

// cycles reports one dependency cycle of each group of beads that wait for each other.
func (c *relations) cycles() {
	for _, cycle := range bead.GraphOf(c.Beads).Cycles() {
		c.add("dependency-cycle", c.r.Beads.Path(string(cycle[0])), Error, "chipset work edit breaks it: none of them can ever start",
			"%s", wording.Join(cycle, " → "))
	}
}

func (c *relations) requests() {
	bySeq, byAssignment := map[int64]state.MergeID{}, map[state.AssignmentID]state.MergeID{}
	for i := range c.Queue {
		q := &c.Queue[i]
		p := c.r.Queue.Path(string(q.ID))
		if other, taken := bySeq[q.Seq]; taken {
			c.add("duplicate-seq", p, Error, "", "%s has the number %d, too", other, q.Seq).repair = func(ctx context.Context) error { return c.r.Queue.Renumber(ctx, q.ID, q.Seq, c.r.Clock.Now()) }
		}
		if other, taken := byAssignment[q.AssignmentID]; taken {
			f := c.add("assignment-twice", p, Error, "", "%s is for the assignment %s, too", other, q.AssignmentID)
			if q.Status == mergequeue.Pending {
				f.repair = dropTwinRequest(c.r, q.ID, other)
			} else if !q.Status.Live() && q.Status != mergequeue.Merged {
				c.found = c.found[:len(c.found)-1] // given up already
			}
		}
		c.attempt(q, p)
		bySeq[q.Seq], byAssignment[q.AssignmentID] = q.ID, q.ID
		b := c.BeadByID[q.BeadID]
		switch {
		case b == nil:
			c.add("request-bead", p, Error, "chipset queue drop "+string(q.ID)+" removes it", "its bead %s does not exist", q.BeadID)
		case q.Status.Live() && (b.AssignmentID != q.AssignmentID || b.Status != bead.Done && b.Status != bead.Merged):
			if b.Status == bead.Blocked && q.Status == mergequeue.Conflicted || c.pending(q.BeadID, q.AssignmentID) {
				continue // waits for a person, or for the end of its attempt
			}
			c.add("request-bead", p, Warning, "the mayor supersedes it", "it is %s, but its bead %s is %s under %q", q.Status, b.ID, b.Status, b.AssignmentID)
		case q.Status == mergequeue.Merged && b.Status != bead.Merged && (b.Status != bead.Done || b.AssignmentID != q.AssignmentID):
			// Whatever became of the bead since, it would land twice.
			c.add("landed-not-told", p, Error, "chipset work cancel "+string(b.ID)+", and look at chipset queue show "+string(q.ID),
				"it is merged, but its bead %s is %s", b.ID, b.Status)
		}
	}
}
