package execute

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/team"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/handoff"
)

// execute carries one action out. It reports whether the next decision should
// follow at once.
func (p *Polecat) execute(ctx context.Context, a polecat.Action) (bool, error) {
	switch a := a.(type) {
	case polecat.CopyHook:
		return false, p.copyHook(a.Problem)
	case polecat.Activate:
		return true, p.activate(ctx, a)
	case polecat.Resume:
		return true, p.resume(ctx, a)
	case polecat.Start:
		return true, p.start(ctx, a.Item)
	case polecat.Continue:
		return true, p.goOn(ctx, a)
	case polecat.Touch:
		return false, p.touch(ctx, a)
	case polecat.Publish:
		rec, err := p.planned(a.Record)
		if err == nil {
			_, _, err = carry.Publish(ctx, p.Rig, rec)
		}
		return true, err
	case polecat.StopWorker:
		p.stopWorker(a)
		return false, nil
	case polecat.Finish:
		return true, p.finish(ctx, a)
	case polecat.Abandon:
		return true, p.abandon(ctx, a)
	case polecat.Claim:
		return true, p.claim(ctx, a.Bead)
	case polecat.SetStatus:
		return false, p.setStatus(ctx, a.Status)
	}
	return false, p.answer(ctx, a)
}

// answer carries out what concerns mail and nudges.
func (p *Polecat) answer(ctx context.Context, a polecat.Action) error {
	switch a := a.(type) {
	case polecat.Answer:
		return p.answerNudge(ctx, a)
	case polecat.MarkSeen:
		return p.markSeen(ctx, a.Nudge, a.Note)
	case polecat.MarkRead:
		if a.Note != "" {
			p.story("mail.stale", "", "", "", string(a.Entry.Name)+": "+a.Note)
		}
		return p.Rig.MarkRead(ctx, p.ID, &a.Entry)
	case polecat.AnswerShutdown:
		return p.answerShutdown(ctx, a.Entry)
	}
	return fmt.Errorf("unknown action %T", a)
}

// copyHook keeps a copy of a hook that can't be read. One that is missing
// leaves nothing to copy.
func (p *Polecat) copyHook(problem string) error {
	p.Say("%s: its hook can't be read: %s", p.ID, problem)
	p.story("hook.corrupt", "", "", "", problem)
	_, err := p.Rig.Tree.QuarantineCopy(p.Rig.Hooks.Path(string(p.ID)), problem, p.Now())
	if errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrCorrupt) {
		return nil
	}
	return err
}

func (p *Polecat) activate(ctx context.Context, a polecat.Activate) error {
	_, err := p.Rig.Hooks.Activate(ctx, p.ID, a.Item.AssignmentID, a.Session, p.Now())
	if err != nil {
		return err
	}
	p.Rig.Emit(event.Event{Type: "hook.activated", Agent: p.ID, Bead: a.Item.BeadID, Assignment: a.Item.AssignmentID, Session: a.Session,
		Subject: string(p.ID), From: string(hook.Pending), To: string(hook.Active)})
	return nil
}

// resume saves what an earlier session left before the hook names a new one:
// after that nobody would know whose work it is.
func (p *Polecat) resume(ctx context.Context, a polecat.Resume) error {
	if err := p.save(ctx, a.Item.AssignmentID, a.Item.BeadID, a.Item.Session, "the session ended with its process"); err != nil {
		return err
	}
	_, err := p.Rig.Hooks.Resume(ctx, p.ID, a.Item.AssignmentID, a.Session, p.Now())
	if err != nil {
		return err
	}
	p.forgetWorker()
	p.forgetSession(a.Item.Session)
	p.story("hook.resumed", a.Item.AssignmentID, a.Item.BeadID, a.Session, "after session "+string(a.Item.Session))
	p.Say("%s: begins %s anew", p.ID, a.Item.BeadID)
	return nil
}

// save puts the unfinished work of a session on its salvage ref and leaves a
// hand-off that names it, once.
func (p *Polecat) save(ctx context.Context, a state.AssignmentID, b state.BeadID, s state.SessionID, why string) error {
	ref, err := carry.SaveWork(ctx, p.Rig, p.ID, fmt.Sprintf("Unfinished work on %s: %s\n\nBead: %s\nAssignment: %s", b, why, b, a))
	if err != nil || ref == "" {
		return err
	}
	last, err := p.Rig.Handoffs.Latest(p.ID, b)
	if err != nil || last != nil && last.Salvage == ref && last.AssignmentID == a {
		return err
	}
	_, err = p.Rig.Handoffs.Write(handoff.Handoff{AgentID: p.ID, BeadID: b, AssignmentID: a, Session: s, Timestamp: p.Now(), Salvage: ref,
		Summary: "Written by the polecat itself: " + why + ". What it had done is saved on " + ref + "."})
	if err != nil {
		return err
	}
	p.Rig.Emit(event.Event{Type: "worker.salvaged", Agent: p.ID, Bead: b, Assignment: a, Session: s, Subject: ref, Text: why},
		event.Event{Type: "handoff.written", Agent: p.ID, Bead: b, Assignment: a, Session: s, Subject: string(p.ID)})
	p.Say("%s: saved the unfinished work on %s as %s", p.ID, b, ref)
	return nil
}

func (p *Polecat) touch(ctx context.Context, a polecat.Touch) error {
	now := p.Now()
	h, err := p.Rig.Hooks.Touch(ctx, p.ID, a.Assignment, a.Session, now, polecat.TouchInterval(p.stall()))
	if err == nil && h.LastActivity == now {
		p.story("hook.touched", a.Assignment, h.WorkItem.BeadID, a.Session, "")
	}
	return err
}

// stopWorker begins to end the worker; its exit is news of its own.
func (p *Polecat) stopWorker(a polecat.StopWorker) {
	w := p.worker
	if w == nil {
		return
	}
	p.story("worker.stopped", w.assignment, w.bead, w.session, a.Why)
	grace := p.Rig.Def.Worker.Grace
	if a.Courtesy > 0 {
		w.courtesy = time.AfterFunc(a.Courtesy, func() { w.job.Stop(grace) })
		return
	}
	w.job.Stop(grace)
}

func (p *Polecat) finish(ctx context.Context, a polecat.Finish) error {
	rec, err := carry.Finish(ctx, p.retireDeps(), a.Record)
	if err != nil {
		return err
	}
	p.forgetWorker()
	return p.tellIdle(ctx, &rec)
}

// abandon gives up an assignment that was taken away. A record of its end that
// was published meanwhile has lost, and is closed as stale.
func (p *Polecat) abandon(ctx context.Context, a polecat.Abandon) error {
	if err := p.save(ctx, a.Assignment, a.Bead, a.Session, "the assignment was taken away"); err != nil {
		return err
	}
	if rec, err := p.Rig.Retire.Get(string(a.Assignment)); err == nil && !rec.Stage.Final() {
		if _, err := carry.Finish(ctx, p.retireDeps(), rec); err != nil {
			return err
		}
	}
	if err := carry.FreeWorktree(ctx, p.Rig, p.ID); err != nil {
		p.story("worktree.not_released", a.Assignment, a.Bead, a.Session, err.Error())
	}
	p.forgetWorker()
	p.Say("%s: %s was taken away", p.ID, a.Bead)
	return nil
}

// claim slings a bead to this polecat. Others claim as well; who loses the
// compare-and-swap looks again.
func (p *Polecat) claim(ctx context.Context, b state.BeadID) error {
	_, err := carry.Sling(ctx, p.Rig, b, p.ID, p.ID)
	var slung *carry.AlreadySlung
	if errors.As(err, &slung) {
		return nil
	}
	if err == nil {
		p.Say("%s: claimed %s", p.ID, b)
	}
	return err
}

// setStatus leaves an agent retired that the definition no longer names.
func (p *Polecat) setStatus(ctx context.Context, to agent.Status) error {
	_, err := p.Rig.Agents.Update(ctx, string(p.ID), func(a *agent.Agent) error {
		if a.Status == to || a.Status == agent.Retired {
			return state.ErrUnchanged
		}
		a.Status, a.UpdatedAt = to, p.Now()
		return nil
	})
	return err
}

// answerNudge answers before the nudge is marked: a crash in between answers
// twice, which a reader of latest-wins pings does not notice.
func (p *Polecat) answerNudge(ctx context.Context, a polecat.Answer) error {
	if _, err := p.Rig.Agents.Get(string(a.Nudge.From)); err != nil && a.Nudge.From != state.Human {
		return p.markSeen(ctx, a.Nudge, "not answered: "+err.Error())
	}
	asked := a.Nudge.Timestamp
	_, err := p.Rig.Slot(a.Nudge.From).Send(ctx, nudge.Nudge{From: p.ID, Type: nudge.Response, Message: clipText(a.Message, nudge.MaxMessage-8),
		Ref: p.presentRef(), InReplyTo: &asked}, p.Now())
	if err != nil {
		return err
	}
	p.Rig.Emit(event.Event{Type: "nudge.sent", Agent: p.ID, Subject: string(a.Nudge.From), Text: string(nudge.Response) + ": " + a.Message})
	return p.markSeen(ctx, a.Nudge, "")
}

func (p *Polecat) presentRef() *nudge.Ref {
	if w := p.worker; w != nil {
		return &nudge.Ref{BeadID: w.bead, AssignmentID: w.assignment, Session: w.session}
	}
	h, err := p.Rig.Hooks.Get(string(p.ID))
	if err != nil || h.WorkItem == nil {
		return nil
	}
	return &nudge.Ref{BeadID: h.WorkItem.BeadID, AssignmentID: h.WorkItem.AssignmentID, Session: h.WorkItem.Session}
}

func (p *Polecat) markSeen(ctx context.Context, n nudge.Nudge, note string) error {
	if err := p.Rig.Slot(p.ID).MarkSeen(ctx, n); err != nil {
		return err
	}
	text := string(n.Type)
	if note != "" {
		text += ": " + note
	}
	p.Rig.Emit(event.Event{Type: "nudge.seen", Agent: p.ID, Subject: string(p.ID), From: string(n.From), Text: text})
	return nil
}

func (p *Polecat) answerShutdown(ctx context.Context, e mail.Entry) error {
	_, err := p.Rig.Send(ctx, mail.Message{From: p.ID, To: e.From, Type: mail.ShutdownResponse, Subject: string(p.ID) + " ends",
		Body: "Nothing is in hand; no more work is taken.\n", Metadata: team.Approval(), InReplyTo: string(e.Name), ID: "shutdown:" + string(e.Name), Ref: e.Ref})
	if err != nil && !errors.Is(err, state.ErrNotFound) && !errors.Is(err, state.ErrConflict) {
		return err
	}
	return p.Rig.MarkRead(ctx, p.ID, &e)
}
