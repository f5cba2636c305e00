package execute

import (
	"context"
	"errors"
	"fmt"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

func (m *Mayor) do(ctx context.Context, a roles.Action) error {
	switch a := a.(type) {
	case mayor.HealDispatch:
		_, err := carry.HealDispatch(ctx, m.Rig, a.Bead)
		return err
	case mayor.Sling:
		return m.sling(ctx, a)
	case mayor.TakeOver:
		return m.takeOver(ctx, a)
	case mayor.Admit:
		return m.admit(ctx, a)
	case mayor.Lift:
		return m.lift(ctx, a.Scope)
	case mayor.ClearHook:
		return m.clearHook(ctx, a)
	case mayor.Reopen:
		return m.reopen(ctx, a)
	case mayor.TakeBack:
		return carry.TakeBack(ctx, m.Rig, a, m.ID)
	case mayor.FinishFor:
		return m.finishFor(ctx, a.Agent)
	case mayor.Block:
		return m.block(ctx, a)
	case mayor.Supersede:
		return carry.Supersede(ctx, m.Rig, a.MR, a.Bead, m.ID)
	case mayor.MakeConvoy:
		_, err := carry.MakeConvoy(ctx, m.Rig, m.ID, fmt.Sprintf("batch of %d", len(a.Beads)), a.Beads)
		if errors.Is(err, state.ErrConflict) || errors.Is(err, state.ErrNotFound) {
			return nil // a person was faster: the next tick decides again
		}
		return err
	case mayor.UpdateConvoy:
		return m.updateConvoy(ctx, a)
	}
	return m.base.do(ctx, a)
}

func (m *Mayor) sling(ctx context.Context, a mayor.Sling) error {
	_, err := carry.Sling(ctx, m.Rig, a.Bead, a.Agent, m.ID)
	var slung *carry.AlreadySlung
	if errors.As(err, &slung) {
		return nil
	}
	if err == nil {
		m.Say("mayor: slung %s to %s", a.Bead, a.Agent)
	}
	return err
}

// takeOver slings what another program has hung on a hook. The bead is made first and
// the hook emptied before it is slung, so that a crash between the steps leaves an
// open bead, which is slung like any other.
func (m *Mayor) takeOver(ctx context.Context, a mayor.TakeOver) error {
	err := m.Rig.Beads.Adopt(bead.Bead{ID: a.Bead, Title: wording.Subject(a.Title, bead.MaxTitle, string(a.Bead)), CreatedBy: m.ID,
		Metadata: map[string]string{"hooked_by": "another program"}}, m.Now())
	if err != nil && !errors.Is(err, state.ErrExists) {
		return err
	}
	if _, err := m.Rig.Hooks.TakeBare(ctx, a.Agent, a.Bead, m.Now()); err != nil {
		return err
	}
	err = m.sling(ctx, mayor.Sling{Bead: a.Bead, Agent: a.Agent})
	if errors.Is(err, state.ErrConflict) {
		m.Say("mayor: %s was on the hook of %s, but can't be slung: %v", a.Bead, a.Agent, err)
		return nil
	}
	return err
}

// clearHook empties a hook whose attempt is over, after a look at the files
// themselves: what the tick fetched may be older than this moment.
func (m *Mayor) clearHook(ctx context.Context, a mayor.ClearHook) error {
	if a.Verify {
		if err := m.verify(ctx, a.Assignment); err != nil {
			return err
		}
	} else if gone, err := m.over(a); err != nil || !gone {
		return err
	}
	return carry.ReleaseHook(ctx, m.Rig, a.Agent, a.Assignment, m.ID)
}

// over reports whether the bead of a hook's assignment has gone another way. A
// bead that can't be read has not: a person may repair it.
func (m *Mayor) over(a mayor.ClearHook) (bool, error) {
	h, err := m.Rig.Hooks.Get(string(a.Agent))
	if err != nil || h.Assignment() != a.Assignment {
		return false, err
	}
	if h.Status == hook.Completed {
		return true, nil
	}
	b, err := m.Rig.Beads.Get(string(h.WorkItem.BeadID))
	if errors.Is(err, state.ErrNotFound) {
		return true, nil
	}
	return err == nil && b.CheckAssignment(a.Assignment, bead.Hooked, bead.InProgress, bead.Done, bead.Failed, bead.Closed, bead.Merged) != nil, err
}

// verify holds a completed attempt against its merge request and its commits.
// One that does not hold is told to a person once; the hook is cleared all the
// same, because the bead and the queue are what decides.
func (m *Mayor) verify(ctx context.Context, a state.AssignmentID) error {
	all, _, err := m.Rig.Queue.Select(func(r *mergequeue.Request) bool { return r.AssignmentID == a })
	if err != nil {
		return err
	}
	complaint := ""
	mr := mergequeue.Find(all, a)
	if mr == nil {
		complaint = "there is no merge request of it"
	} else if _, found, err := m.Rig.Git.ResolveCommit(ctx, mr.Head); err != nil {
		return err
	} else if !found {
		complaint = "the commit " + mr.Head + " of its merge request is gone"
	}
	if complaint == "" {
		return nil
	}
	return m.send(ctx, mail.Message{To: state.Human, Type: mail.Coordination, Priority: mail.Urgent,
		Subject: "assignment " + string(a) + " is completed, but can't be verified", Body: complaint + "\n", ID: "verify-" + string(a)})
}

func (m *Mayor) reopen(ctx context.Context, a mayor.Reopen) error {
	if _, err := carry.Move(ctx, m.Rig, flow.Rework(a, m.ID)); err != nil {
		return err
	}
	if a.Note != "" {
		m.Say("mayor: reopened %s: %s", a.Bead, wording.Reason(a.Note))
	}
	return nil
}

// maxBody bounds the mayor's reports to a person, in bytes.
const maxBody = 48 << 10

// block tells the person first: a bead that is blocked already would not be
// told of after a crash, a mail with an id is not sent twice.
func (m *Mayor) block(ctx context.Context, a mayor.Block) error {
	b, err := m.Rig.Beads.Get(string(a.Bead))
	if err != nil || b.CheckAssignment(a.Assignment, a.From) != nil {
		return err
	}
	if a.Unhooked {
		if lost, err := carry.HangsNowhere(m.Rig, a.Bead, b.Assignee, a.Assignment); err != nil || !lost {
			return err
		}
	}
	if err := m.warnOfBlock(ctx, a, b); err != nil {
		return err
	}
	_, err = carry.Move(ctx, m.Rig, flow.Block(a, m.ID))
	if err == nil {
		m.Say("mayor: %s is blocked and is waiting for you: %s", a.Bead, wording.Reason(a.Reason))
	}
	return err
}

// warnOfBlock sends the mail.
func (m *Mayor) warnOfBlock(ctx context.Context, a mayor.Block, b bead.Bead) error {
	return m.send(ctx, mail.Message{To: state.Human, Type: mail.Coordination, Priority: mail.Urgent, Subject: a.Subject,
		Body: wording.Clip(a.Body, maxBody), ID: flow.BlockID(a.Assignment, &b),
		Ref: &mail.Ref{BeadID: a.Bead, AssignmentID: a.Assignment}})
}

// finishFor heals an agent without a process. One that can't be healed is left
// alone for a while.
func (m *Mayor) finishFor(ctx context.Context, id state.AgentID) error {
	now := m.Now()
	if last, ok := m.unfinished[id]; ok && now.Sub(last.Time) < policy.FinishAgain && now.After(last.Time) {
		return state.Conflictf("the work of "+string(id), "could not be finished at %s, and is tried again later", last)
	}
	err := HealPolecat(ctx, Agent{Rig: m.Rig, ID: id, Session: m.Session, Self: m.Self, Say: m.Say})
	if err != nil {
		m.unfinished[id] = now
	}
	return err
}

func (m *Mayor) updateConvoy(ctx context.Context, a mayor.UpdateConvoy) error {
	_, err := m.Rig.Convoys.By(m.ID, "").Update(ctx, string(a.ID), func(c *convoy.Convoy) error {
		c.Progress = a.Progress
		if a.Complete {
			now := m.Now()
			c.CompletedAt = &now
		}
		return nil
	})
	if err == nil && a.Complete {
		m.Say("mayor: convoy %s has landed", a.ID)
	}
	return err
}
