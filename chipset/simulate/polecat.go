package simulate

import (
	"errors"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/retire"
)

const (
	// prepareCost is the worktree, launchCost the worker's process.
	prepareCost = 60 * time.Millisecond
	launchCost  = 20 * time.Millisecond
	// commitCost is validating and committing what a worker left.
	commitCost = 40 * time.Millisecond
	// graceTime is what a worker takes to end that is told to.
	graceTime = 3 * time.Second
)

// polecatRole carries out what roles/polecat decides, as chipset/execute does.
type polecatRole struct {
	*process
	at       int
	state    polecat.State
	next     polecat.State // of the decision that is being carried out
	status   agent.Status  // that it last set
	worker   *worker
	progress bool
}

// recover finishes the pipelines that an earlier process began. Its worker ended
// with it, and the hook still names the session: the first decision begins anew.
func (p *polecatRole) recover() []operation { return p.w.finishAll(p.id) }

func (p *polecatRole) killed() {
	if p.worker != nil {
		p.w.tally.thrownAway(p.w, p.worker, "process killed")
	}
	p.state, p.status, p.worker, p.progress = polecat.State{}, "", nil, false
}

func (p *polecatRole) adopt() { p.state = p.next }

func (p *polecatRole) after() time.Duration { return 0 }

func (p *polecatRole) tick() (*roles.Progress, bool) {
	w := p.w
	h := *w.hookOf(p.id)
	f := polecat.Facts{Now: w.clock(), Self: p.id, Mayor: mayorID, Policy: polecat.Policy{Touch: touchEvery(), Courtesy: 2 * time.Second},
		Process: p.session, Status: p.status, Hook: &h, Worker: polecat.Worker{Status: polecat.WorkerNone}, Mail: w.entries(p.id), Nudges: w.nudges(p.id)}
	if h.WorkItem != nil {
		f.Bead = w.backlog.Get(h.WorkItem.BeadID)
		f.Fresh = state.SessionID(w.newSerial("se-"))
	}
	if k := p.worker; k != nil {
		f.Worker = k.facts()
		f.Progress, p.progress = p.progress && k.exit == nil, false
	}
	f.Record = p.record(&f)
	d := polecat.Decide(p.state, f)
	p.next = d.Next
	return roles.Begin(&d), d.Again
}

// record is the end of what is in hand, the one that is not finished yet first.
func (p *polecatRole) record(f *polecat.Facts) *retire.Record {
	hooked := f.Hook.Assignment()
	for _, a := range [3]state.AssignmentID{p.state.Retiring, f.Worker.Assignment, hooked} {
		rec, ok := p.w.records[a]
		if a != "" && ok && (!rec.Stage.Final() || a == f.Worker.Assignment || a == hooked) {
			return &rec
		}
	}
	return nil
}

func (p *polecatRole) operation(a roles.Action) operation {
	w, cost := p.w, p.w.o.Step
	switch a := a.(type) {
	case polecat.Activate:
		return once(cost, func() error {
			return w.updateHook(p.id, func(h *hook.Hook) error { return h.Activate(a.Item.AssignmentID, a.Session, w.clock()) })
		})
	case polecat.Resume:
		return once(commitCost, func() error { // what the earlier session left is saved
			err := w.updateHook(p.id, func(h *hook.Hook) error { return h.Resume(a.Item.AssignmentID, a.Session, w.clock()) })
			if err == nil {
				p.forgetWorker("process killed")
			}
			return err
		})
	case polecat.Start:
		return p.start(a.Item)
	case polecat.Touch:
		return once(cost, func() error {
			return w.updateHook(p.id, func(h *hook.Hook) error { return h.Touch(a.Assignment, a.Session, w.clock(), touchEvery()) })
		})
	case polecat.Publish:
		return once(cost, func() error { return p.publish(a.Record) })
	case polecat.StopWorker:
		return once(0, func() error { p.stopWorker(a.Courtesy); return nil })
	case polecat.Retire:
		return p.finish(a.Record.AssignmentID)
	case polecat.Abandon:
		return p.abandon(a)
	case polecat.SetStatus:
		return once(cost, func() error { return p.setStatus(a.Status) })
	}
	return once(0, func() error { w.fail("%s decided %T", p.id, a); return nil })
}

func (p *polecatRole) setStatus(to agent.Status) error {
	err := p.w.setStatus(p.id, to)
	if err == nil {
		p.status = to
	}
	return err
}

// start moves the bead, makes the worktree and launches the worker.
func (p *polecatRole) start(item hook.WorkItem) operation {
	w := p.w
	stage := 0
	return operation{launchCost, func() (bool, error) {
		if stage++; stage == 1 {
			return false, w.updateBead(item.BeadID, func(b *bead.Bead) error {
				if b.CheckAssignment(item.AssignmentID, bead.InProgress) == nil {
					return state.ErrUnchanged
				}
				if err := b.CheckAssignment(item.AssignmentID, bead.Hooked); err != nil {
					return err
				}
				return b.Become(bead.InProgress, "", w.clock())
			})
		}
		if stage == 2 && !w.full { // the worktree
			return false, nil
		}
		if w.full {
			// What can't be started is a failed attempt: its record needs room as well.
			return true, errDiskFull
		}
		if stage < 2+int(prepareCost/launchCost) {
			return false, nil
		}
		p.launch(item)
		return true, nil
	}}
}

// publish fixes the end of an attempt: the first record wins.
func (p *polecatRole) publish(rec retire.Record) error {
	w, h := p.w, p.w.hookOf(p.id)
	if _, earlier := w.records[rec.AssignmentID]; earlier {
		return nil
	}
	if h.Assignment() != rec.AssignmentID || h.Status != hook.Active || rec.Session != "" && h.WorkItem.Session != rec.Session {
		return state.Conflictf("assignment "+string(rec.AssignmentID), "is over")
	}
	b := w.backlog.Get(h.WorkItem.BeadID)
	if err := b.CheckAssignment(rec.AssignmentID, bead.Hooked, bead.InProgress); err != nil {
		return err
	}
	rec.BeadID, rec.Branch, rec.Stage, rec.CreatedAt = b.ID, b.Branch, retire.Published, w.clock()
	return w.putRecord(rec)
}

func (p *polecatRole) finish(a state.AssignmentID) operation {
	o := p.w.finishing(a)
	return operation{o.cost, func() (bool, error) {
		done, err := o.step()
		if done && err == nil {
			p.forgetWorker("")
		}
		return done, err
	}}
}

// abandon saves the work of an assignment that was taken away.
func (p *polecatRole) abandon(a polecat.Abandon) operation {
	w := p.w
	o := w.finishing(a.Assignment)
	saved := false
	return operation{commitCost, func() (bool, error) {
		if w.full {
			return true, errDiskFull
		}
		if rec, ok := w.records[a.Assignment]; saved && ok && !rec.Stage.Final() {
			if done, err := o.step(); err != nil || !done {
				return done, err
			}
		} else if !saved {
			saved = true
			return false, nil
		}
		p.forgetWorker("taken away")
		return true, nil
	}}
}

// finishAll finishes the pipelines of an agent, oldest first.
func (w *world) finishAll(id state.AgentID) []operation {
	var all []operation
	for _, a := range slices.Clone(w.unfinished[id]) {
		all = append(all, w.finishing(a))
	}
	return all
}

// finishing is what is left of the done pipeline of an assignment. Each step is
// idempotent, and the stage advances after it.
func (w *world) finishing(a state.AssignmentID) operation {
	return operation{commitCost / 4, func() (bool, error) {
		rec, ok := w.records[a]
		if !ok || rec.Stage.Final() {
			return true, nil
		}
		next, err := w.retireStep(&rec)
		if err != nil {
			return true, err
		}
		rec.Stage = next
		return next.Final(), w.putRecord(rec)
	}}
}

func (w *world) retireStep(rec *retire.Record) (retire.Stage, error) {
	lands := rec.Outcome == retire.Done
	switch rec.Stage {
	case retire.Published:
		return retire.Committed, nil
	case retire.Committed:
		return w.recordEnd(rec)
	case retire.Recorded:
		var err error
		if lands {
			rec.MR, err = w.submit(rec)
		}
		return retire.Submitted, err
	case retire.Submitted:
		ref := &mail.Ref{BeadID: rec.BeadID, AssignmentID: rec.AssignmentID, Session: rec.Session}
		err := w.send(mail.Message{From: rec.AgentID, To: mayorID, Type: mail.CompletionReport, Subject: string(rec.BeadID), ID: "report-" + string(rec.AssignmentID), Ref: ref}, nil)
		if err == nil {
			err = w.send(mail.Message{From: rec.AgentID, To: witnessID, Type: mail.Coordination, Priority: mail.Low, Subject: string(rec.BeadID),
				ID: "note-" + string(rec.AssignmentID), Ref: ref}, nil)
		}
		return retire.Reported, err
	case retire.Reported:
		return retire.Completed, w.completeHook(rec)
	case retire.Completed:
		return retire.Released, nil
	case retire.Released, retire.Stale:
	}
	return rec.Stage, nil
}

// recordEnd moves the bead: the compare-and-swap that arbitrates. Who loses it
// lands nothing.
func (w *world) recordEnd(rec *retire.Record) (retire.Stage, error) {
	to := bead.Failed
	if rec.Outcome == retire.Done {
		to = bead.Done
	}
	err := w.updateBead(rec.BeadID, func(b *bead.Bead) error {
		if b.Status == to && b.AssignmentID == rec.AssignmentID {
			return state.ErrUnchanged // done before a crash
		}
		if err := b.CheckAssignment(rec.AssignmentID, bead.InProgress, bead.Hooked); err != nil {
			return err
		}
		if b.Status == bead.Hooked { // retired before its worker was started
			if err := b.Become(bead.InProgress, "", w.clock()); err != nil {
				return err
			}
		}
		return b.Become(to, rec.Reason, w.clock())
	})
	if errors.Is(err, state.ErrConflict) {
		return retire.Stale, w.completeHook(rec)
	}
	return retire.Recorded, err
}

// completeHook ends the attempt on the hook, unless the mayor has had it.
func (w *world) completeHook(rec *retire.Record) error {
	err := w.updateHook(rec.AgentID, func(h *hook.Hook) error { return h.Complete(rec.AssignmentID, "", w.clock()) })
	if errors.Is(err, state.ErrConflict) {
		return nil
	}
	return err
}
