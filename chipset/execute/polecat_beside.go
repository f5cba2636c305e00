package execute

import (
	"context"
	"errors"
	"fmt"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/wording"
)

// The agent of a person's own sessions holds a bead as a polecat does. It is given a worktree, and what it reports is
// retired; no process is started or ended.

// isSession reports whether an agent is that of a person's own sessions.
func isSession(a *Agent) bool {
	known, err := a.Rig.Agents.Get(string(a.ID))
	return err == nil && known.IsSession()
}

// lookBeside tells what the person's session was given to work on by this process.
func (p *Polecat) lookBeside() polecat.Worker {
	if p.given.AssignmentID == "" {
		return polecat.Worker{Status: polecat.WorkerNone}
	}
	return polecat.Worker{Status: polecat.WorkerBeside, Assignment: p.given.AssignmentID, Bead: p.given.BeadID, Session: p.given.Session}
}

// give makes the worktree of an assignment ready and tells the person's session where it is. That the worktree is ready is
// recorded last: from then on it is the session's, and stays as it is while it is whole.
func (p *Polecat) give(ctx context.Context, b *bead.Bead, item hook.WorkItem) error {
	whole, err := carry.WorktreeWhole(ctx, p.Rig, p.ID, item.Session)
	if err != nil {
		return err
	}
	use, _ := carry.ReadWorktree(p.Rig, p.ID)
	if whole && use.Ready {
		p.given = item
		return nil
	}
	occasion, lost := ready, ""
	if toldOf(&use, &item) {
		occasion, lost = anew, "It was damaged or missing, and has been made again. "
		if use.Ready {
			if err := p.save(ctx, item.AssignmentID, item.BeadID, item.Session, "its worktree was torn or gone"); err != nil {
				return err
			}
		}
		if ref := p.salvaged(&item); ref != "" {
			lost += "What could be saved of it is on " + ref + ". "
		}
	}
	if !whole {
		if _, err := p.prepareWorktree(ctx, b, item); err != nil {
			return err
		}
	}
	if err := p.furnish(ctx, item); err != nil {
		return err
	}
	body := fmt.Sprintf("Work on it in %s, where its branch %s is checked out, and nowhere else. %s`chipset work show %s` prints what is to be done. "+
		"Commit there, and end it with `chipset done --summary TEXT`, `chipset fail --reason TEXT` or `chipset block --reason TEXT`.\n",
		p.Rig.Worktree(p.ID), b.Branch, lost, b.ID)
	if err := p.tellSession(ctx, &item, occasion, fmt.Sprintf("%s is yours: %s", b.ID, b.Title), body); err != nil {
		return err
	}
	use, known := carry.ReadWorktree(p.Rig, p.ID)
	if !known {
		return state.Conflictf("the worktree of "+string(p.ID), "its record is gone")
	}
	use.Ready, use.Remade = true, false
	if err := carry.WriteWorktree(p.Rig, use); err != nil {
		return err
	}
	p.given = item
	p.tell(event.WorkerStarted(p.ID, event.Work{Bead: b.ID, Assignment: item.AssignmentID, Session: item.Session}, "a session of yours"))
	p.Say("%s: holds %s for your session: %s", p.ID, b.ID, b.Title)
	return nil
}

// toldOf reports whether the person's session already knows of the worktree of its assignment.
func toldOf(use *carry.Worktree, item *hook.WorkItem) bool {
	return use.AssignmentID == item.AssignmentID && (use.Ready || use.Remade)
}

// tellSession writes to the person's session about its assignment, once for each occasion.
func (p *Polecat) tellSession(ctx context.Context, item *hook.WorkItem, occasion, subject, body string) error {
	return p.send(ctx, mail.Message{To: p.ID, Type: mail.Coordination, Subject: subject, Body: body, ID: occasion + string(item.AssignmentID),
		Ref: &mail.Ref{BeadID: item.BeadID, AssignmentID: item.AssignmentID, Session: item.Session}})
}

// tellOver tells the person's session that it does not have a bead any more, and why.
func (p *Polecat) tellOver(ctx context.Context, item *hook.WorkItem, why, salvage string) error {
	if err := p.retireNotices(ctx, item.AssignmentID); err != nil {
		return err
	}
	body := string(item.BeadID) + " " + why + "\n"
	if salvage != "" {
		body += "What was not finished is saved on " + salvage + ".\n"
	}
	return p.tellSession(ctx, item, over, wording.FirstLine(string(item.BeadID)+" "+why), body+"The worktree is not yours any more.\n")
}

// tellTaken tells the person's session of an assignment that was taken away, and what of it is saved.
func (p *Polecat) tellTaken(ctx context.Context, item hook.WorkItem) error {
	if !p.beside {
		return nil
	}
	return p.tellOver(ctx, &item, "was taken from you", p.salvaged(&item))
}

// salvaged is the ref on which the unfinished work of an assignment was saved last, "" without one.
func (p *Polecat) salvaged(item *hook.WorkItem) string {
	last, err := p.Rig.Handoffs.Latest(p.ID, item.BeadID)
	if err != nil || last == nil || last.AssignmentID != item.AssignmentID {
		return ""
	}
	return last.Salvage
}

// tellEnd tells the person's session of an attempt that came to nothing.
func (p *Polecat) tellEnd(ctx context.Context, e flow.TellSession) error {
	rec := &e.Record
	item := hook.WorkItem{AssignmentID: rec.AssignmentID, BeadID: rec.BeadID, Session: rec.Session}
	switch {
	case e.Taken:
		return p.tellTaken(ctx, item)
	case rec.Outcome == retire.Fail:
		return p.tellOver(ctx, &item, "failed: "+rec.Reason, rec.Salvage)
	case rec.Outcome == retire.Block:
		return p.tellOver(ctx, &item, "waits for the person: "+rec.Reason, rec.Salvage)
	}
	return p.retireNotices(ctx, rec.AssignmentID)
}

// retireNotices marks what told the person's session where to work as read: its next one must not believe it.
func (p *Polecat) retireNotices(ctx context.Context, a state.AssignmentID) error {
	box := p.Rig.Mailbox(p.ID)
	unread, _, err := box.Unread()
	for i := range unread {
		if e := &unread[i]; e.From == p.ID && (e.ID == ready+string(a) || e.ID == anew+string(a)) {
			err = errors.Join(err, box.MarkRead(ctx, e.Name))
		}
	}
	return err
}

// What the mail to a person's session is for, before the assignment in its ID.
const (
	ready = "ready-"
	anew  = "anew-"
	over  = "over-"
)
