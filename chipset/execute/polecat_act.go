package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/handoff"
	"github.com/gastown-chipset/chipset/state/retire"
)

func (p *Polecat) do(ctx context.Context, a roles.Action) error {
	switch a := a.(type) {
	case polecat.CopyHook:
		return p.copyHook(a.Problem)
	case polecat.Activate:
		return p.activate(ctx, a)
	case polecat.Resume:
		return p.resume(ctx, a)
	case polecat.Start:
		return p.start(ctx, a.Item)
	case polecat.Continue:
		return p.continueSession(ctx, a)
	case polecat.Hold:
		return p.hold(ctx, a)
	case polecat.TakeBack:
		return p.takeBack(ctx)
	case polecat.Touch:
		return p.touch(ctx, a)
	case polecat.Publish:
		return p.publish(ctx, a.Record)
	case polecat.StopWorker:
		p.stopWorker(a)
		return nil
	case polecat.Retire:
		return p.retire(ctx, a.Record)
	case polecat.ForgetEnded:
		p.ended = slices.DeleteFunc(p.ended, func(r retire.Record) bool { return r.AssignmentID == a.Assignment })
		return nil
	case polecat.Abandon:
		return p.abandon(ctx, a)
	case polecat.Claim:
		return p.claim(ctx, a.Bead)
	case polecat.SetStatus:
		return p.setStatus(ctx, a.Status)
	}
	return p.base.do(ctx, a)
}

func (p *Polecat) publish(ctx context.Context, rec retire.Record) error {
	rec, err := p.planned(rec)
	if err == nil {
		_, _, err = carry.Publish(ctx, p.Rig, rec)
	}
	return err
}

// copyHook keeps a copy of a hook that can't be read. One that is missing
// leaves nothing to copy.
func (p *Polecat) copyHook(problem string) error {
	p.Say("%s: can't read its hook: %s", p.ID, problem)
	p.tell(event.HookCorrupt(p.ID, problem))
	_, err := p.Rig.Tree.QuarantineCopy(p.Rig.Hooks.Path(string(p.ID)), problem, p.Now())
	if errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrCorrupt) {
		return nil
	}
	return err
}

func (p *Polecat) activate(ctx context.Context, a polecat.Activate) error {
	_, err := p.Rig.Hooks.Activate(ctx, p.ID, a.Item.AssignmentID, a.Session, p.Now())
	return err
}

// resume saves what an earlier session left before the hook names a new one:
// after that nobody would know whose work it is.
func (p *Polecat) resume(ctx context.Context, a polecat.Resume) error {
	why := a.Why
	if why == "" {
		why = "the session ended with its process"
	}
	if err := p.save(ctx, a.Item.AssignmentID, a.Item.BeadID, a.Item.Session, why); err != nil {
		return err
	}
	_, err := p.Rig.Hooks.By(p.ID, "after session "+string(a.Item.Session)).Resume(ctx, p.ID, a.Item.AssignmentID, a.Session, p.Now())
	if err != nil {
		return err
	}
	p.forgetWorker()
	p.forgetSession(a.Item.Session)
	p.Say("%s: restarting %s: %s", p.ID, a.Item.BeadID, why)
	return nil
}

// save puts the unfinished work of a session on its salvage ref and leaves a
// hand-off that names it, once.
func (p *Polecat) save(ctx context.Context, a state.AssignmentID, b state.BeadID, s state.SessionID, why string) error {
	p.restoreObjects(ctx, event.Work{Bead: b, Assignment: a, Session: s})
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
	p.tell(event.WorkerSalvaged(p.ID, event.Work{Bead: b, Assignment: a, Session: s}, ref, why))
	p.Say("%s: saved the unfinished work on %s as %s", p.ID, b, ref)
	return nil
}

func (p *Polecat) touch(ctx context.Context, a polecat.Touch) error {
	_, err := p.Rig.Hooks.Touch(ctx, p.ID, a.Assignment, a.Session, p.Now(), polecat.TouchInterval(p.stall()))
	return err
}

// stopWorker begins to end the worker; its exit is news of its own.
func (p *Polecat) stopWorker(a polecat.StopWorker) {
	w := p.worker
	if w == nil {
		return
	}
	p.tell(event.WorkerStopped(p.ID, w.work(), a.Why))
	grace := p.Rig.Def.Worker.Grace
	if a.Delay > 0 {
		w.stopTimer = time.AfterFunc(a.Delay, func() { w.job.Stop(grace) })
		return
	}
	w.job.Stop(grace)
}

// planned makes a success of a worker that had to plan first, and whose plan
// nobody approved, a failure: what it did was not to be done yet.
func (p *Polecat) planned(rec retire.Record) (retire.Record, error) {
	if rec.Outcome != retire.Done {
		return rec, nil
	}
	err := actor.CheckPlan(p.Rig, rec.AgentID, rec.AssignmentID)
	if errors.Is(err, actor.ErrNoPlan) {
		rec.Outcome, rec.Reason = retire.Fail, "the worker ended without an approved plan: "+err.Error()
		return rec, nil
	}
	return rec, err
}

func (p *Polecat) retire(ctx context.Context, rec retire.Record) error {
	rec, err := p.finish(ctx, rec)
	if err != nil {
		return err
	}
	p.forgetWorker()
	if !p.beside {
		p.ended = append(p.ended, rec)
	}
	return nil
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
	if err := p.tellTaken(ctx, hook.WorkItem{AssignmentID: a.Assignment, BeadID: a.Bead, Session: a.Session}); err != nil {
		return err
	}
	if err := carry.FreeWorktree(ctx, p.Rig, p.ID); err != nil {
		p.tell(event.WorktreeNotReleased(p.ID, event.Work{Bead: a.Bead, Assignment: a.Assignment, Session: a.Session}, err.Error()))
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
	if err == nil {
		p.status = to
	}
	return err
}
