package execute

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/team"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

func (m *Mayor) execute(ctx context.Context, a mayor.Action) error {
	switch a := a.(type) {
	case mayor.HealDispatch:
		_, err := carry.HealDispatch(ctx, m.Rig, a.Bead)
		return err
	case mayor.Sling:
		return m.sling(ctx, a)
	case mayor.ClearHook:
		return m.clearHook(ctx, a)
	case mayor.Reopen:
		return m.reopen(ctx, a)
	case mayor.TakeBack:
		return carry.TakeBack(ctx, m.Rig, a.Bead, a.Assignment, m.ID)
	case mayor.FinishFor:
		return m.finishFor(ctx, a.Agent)
	case mayor.Block:
		return m.block(ctx, a)
	case mayor.Supersede:
		return carry.Supersede(ctx, m.Rig, a.MR, a.Bead, m.ID)
	case mayor.MakeConvoy:
		return m.makeConvoy(ctx, a.Beads)
	case mayor.UpdateConvoy:
		return m.updateConvoy(ctx, a)
	case mayor.Nudge:
		return m.nudge(ctx, a)
	case mayor.Tell:
		return m.tell(ctx, mail.Message{To: a.To, Type: a.Type, Subject: a.Subject, Body: a.Body,
			InReplyTo: string(a.InReplyTo), Thread: a.Thread, ID: a.ID, Ref: a.Ref, Metadata: a.Metadata})
	case mayor.MarkRead:
		return m.Rig.MarkRead(ctx, m.ID, &a.Letter.Entry)
	case mayor.MarkSeen:
		return m.Rig.Slot(m.ID).MarkSeen(ctx, a.Nudge)
	}
	return fmt.Errorf("unknown action %T", a)
}

func (m *Mayor) nudge(ctx context.Context, a mayor.Nudge) error {
	n := nudge.Nudge{From: m.ID, Type: a.Type, Message: clipText(a.Message, nudge.MaxMessage-8), Ref: &a.Ref}
	if !a.InReplyTo.IsZero() {
		n.InReplyTo = &a.InReplyTo
	}
	if _, err := m.Rig.Slot(a.To).Send(ctx, n, m.Now()); err != nil {
		return err
	}
	m.Rig.Emit(event.Event{Type: "nudge.sent", Agent: m.ID, Bead: a.Ref.BeadID, Assignment: a.Ref.AssignmentID, Subject: string(a.To), Text: string(a.Type)})
	return nil
}

// maxSubject bounds the subjects of the mayor's mail, in bytes.
const maxSubject = 300

// tell sends mail of the mayor. What it quotes was written by others, and is
// made fit for a subject line and for the rig's limit. Mail to somebody who
// can't get any is dropped with an event: its message would never be handled.
func (m *Mayor) tell(ctx context.Context, msg mail.Message) error {
	msg.From = m.ID
	if msg.Type == mail.ShutdownResponse {
		msg.Metadata = team.Approval()
	}
	msg.Subject = clipText(subjectLine(msg.Subject), maxSubject)
	_, err := m.Rig.Send(ctx, msg)
	if errors.Is(err, state.ErrTooLarge) {
		msg.Subject, msg.Body = clipText(msg.Subject, maxSubject/3), "The text is larger than a message may be here: see chipset log.\n"
		_, err = m.Rig.Send(ctx, msg)
	}
	if errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrConflict) {
		m.Rig.Emit(event.Event{Type: "mail.undeliverable", Agent: m.ID, Subject: string(msg.To), Text: msg.Subject + ": " + err.Error()})
		return nil
	}
	return err
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

// over tells whether the bead of a hook's assignment has gone another way. A
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
	return m.tell(ctx, mail.Message{To: state.Human, Type: mail.Coordination, Priority: mail.Urgent,
		Subject: "assignment " + string(a) + " is completed, but can't be verified", Body: complaint + "\n", ID: "verify-" + string(a)})
}

func (m *Mayor) reopen(ctx context.Context, a mayor.Reopen) error {
	if _, err := carry.Move(ctx, m.Rig, flow.Rework(a, m.ID)); err != nil {
		return err
	}
	m.Say("mayor: %s goes back to open: %s", a.Bead, clipText(firstLine(a.Note), 160))
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
	if err := m.warnOfBlock(ctx, a, b); err != nil {
		return err
	}
	_, err = carry.Move(ctx, m.Rig, flow.Block(a, m.ID))
	if err == nil {
		m.Say("mayor: %s is blocked and waits for you: %s", a.Bead, clipText(firstLine(a.Reason), 160))
	}
	return err
}

// warnOfBlock sends the mail.
func (m *Mayor) warnOfBlock(ctx context.Context, a mayor.Block, b bead.Bead) error {
	return m.tell(ctx, mail.Message{To: state.Human, Type: mail.Coordination, Priority: mail.Urgent, Subject: a.Subject,
		Body: clipText(a.Body, maxBody), ID: flow.BlockID(a.Assignment, &b),
		Ref: &mail.Ref{BeadID: a.Bead, AssignmentID: a.Assignment}})
}

// finishAgain is how long the mayor leaves an agent alone whose pipeline could
// not be finished.
const finishAgain = time.Minute

// finishFor heals an agent without a process, not too often.
func (m *Mayor) finishFor(ctx context.Context, id state.AgentID) error {
	now := m.Now()
	if last, ok := m.finished[id]; ok && now.Sub(last.Time) < finishAgain && now.After(last.Time) {
		return nil
	}
	m.finished[id] = now
	return HealPolecat(ctx, Agent{Rig: m.Rig, ID: id, Session: m.Session, Self: m.Self, Say: m.Say})
}

// makeConvoy publishes the convoy before its beads name it: a bead that names
// no convoy is batched again, one that names a missing convoy would be wrong.
func (m *Mayor) makeConvoy(ctx context.Context, ids []state.BeadID) error {
	c := convoy.Convoy{ID: convoy.NewID(), Name: fmt.Sprintf("batch of %d", len(ids)), BeadIDs: ids, CreatedAt: m.Now()}
	if err := m.Rig.Convoys.Create(string(c.ID), c); err != nil {
		return err
	}
	m.Rig.Emit(event.Event{Type: "convoy.created", Agent: m.ID, Subject: string(c.ID), Text: c.Name})
	for _, id := range ids {
		_, err := m.Rig.Beads.Update(ctx, string(id), func(b *bead.Bead) error {
			if b.ConvoyID != "" {
				return state.ErrUnchanged
			}
			b.ConvoyID = c.ID
			b.Touch(m.Now())
			return nil
		})
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
	}
	return nil
}

func (m *Mayor) updateConvoy(ctx context.Context, a mayor.UpdateConvoy) error {
	_, err := m.Rig.Convoys.Update(ctx, string(a.ID), func(c *convoy.Convoy) error {
		c.Progress = a.Progress
		if a.Complete {
			now := m.Now()
			c.CompletedAt = &now
		}
		return nil
	})
	if err == nil && a.Complete {
		m.Rig.Emit(event.Event{Type: "convoy.completed", Agent: m.ID, Subject: string(a.ID)})
		m.Say("mayor: convoy %s has landed", a.ID)
	}
	return err
}
