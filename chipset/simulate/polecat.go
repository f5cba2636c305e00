package simulate

import (
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
)

const (
	// prepareCost is the worktree, launchCost the worker's process.
	prepareCost = 80 * time.Millisecond
	launchCost  = 20 * time.Millisecond
	// commitCost is validating and committing what a worker left.
	commitCost = 40 * time.Millisecond
	// graceTime is what a worker takes to end that is told to.
	graceTime = 3 * time.Second
)

// polecatRole carries out what roles/polecat decides.
type polecatRole struct {
	*process
	at       int
	state    polecat.State
	status   agent.Status // that it last set
	worker   *worker
	progress bool
	// ended are the attempts of whose end the mayor was not told.
	ended []retire.Record
}

// recover finishes the attempts whose end an earlier process has published. Its
// worker ended with it, and the hook still names the session: the first decision
// begins again.
func (p *polecatRole) recover() {
	for _, a := range slices.Clone(p.w.unfinished[p.id]) {
		_ = p.retire(a) // each tick tries again
	}
}

func (p *polecatRole) killed() {
	if p.worker != nil {
		p.w.tally.thrownAway(p.w, p.worker, "process killed")
	}
	p.state, p.status, p.worker, p.progress, p.ended = polecat.State{}, "", nil, false, nil
}

func (p *polecatRole) after() time.Duration { return 0 }

func (p *polecatRole) round() (roles.Outcome, bool) {
	w := p.w
	h := *w.hookOf(p.id)
	f := polecat.Facts{Now: w.clock(), Self: p.id, Mayor: mayorID, Policy: policy.Polecat(w.def, 0), Process: p.session, Status: p.status,
		Hook: &h, Worker: polecat.Worker{Status: polecat.WorkerNone}, Ended: p.ended, Mail: w.entries(p.id), Nudges: w.nudges(p.id)}
	if h.WorkItem != nil {
		f.Bead = w.backlog.Get(h.WorkItem.BeadID)
		f.Held = w.held(f.Bead)
		f.Fresh = state.SessionID(w.newSerial("se-"))
	}
	if k := p.worker; k != nil {
		f.Worker = k.facts()
		f.Progress, p.progress = p.progress && k.exit == nil, false
	}
	f.Record = p.record(&f)
	d := polecat.Decide(p.state, f)
	return carryOut(p.process, &d, &p.state, p.do)
}

// record is the end of what is in hand, the one that is not finished yet first.
func (p *polecatRole) record(f *polecat.Facts) *retire.Record {
	hooked := f.Hook.Assignment()
	for _, a := range [3]state.AssignmentID{p.state.Retiring, f.Worker.Assignment, hooked} {
		if a == "" {
			continue
		}
		if rec, ok := p.w.records[a]; ok && (!rec.Stage.Final() || a == f.Worker.Assignment || a == hooked) {
			found := rec // rec itself would be allocated each time
			return &found
		}
	}
	return nil
}

func (p *polecatRole) do(a roles.Action) error {
	w := p.w
	switch a := a.(type) {
	case polecat.Activate:
		return w.updateHook(p.id, func(h *hook.Hook) error { return h.Activate(a.Item.AssignmentID, a.Session, w.clock()) })
	case polecat.Resume:
		p.spend(commitCost) // what the earlier session left is saved
		err := w.updateHook(p.id, func(h *hook.Hook) error { return h.Resume(a.Item.AssignmentID, a.Session, w.clock()) })
		if err == nil {
			p.forgetWorker("process killed")
		}
		return err
	case polecat.Start:
		return p.begin(a.Item)
	case polecat.Hold:
		return p.hold(a)
	case polecat.Continue: // of a session that was kept
		p.worker = nil
		delete(w.ended, a.Item.AssignmentID)
		p.spend(launchCost)
		p.launch(a.Item)
		return nil
	case polecat.Touch:
		return w.updateHook(p.id, func(h *hook.Hook) error {
			return h.Touch(a.Assignment, a.Session, w.clock(), policy.Polecat(w.def, 0).Touch)
		})
	case polecat.Publish:
		return p.publish(a.Record)
	case polecat.StopWorker:
		p.stopWorker(a.Delay)
		return nil
	case polecat.Retire:
		if err := p.retire(a.Record.AssignmentID); err != nil {
			return err
		}
		p.forgetWorker("")
		p.ended = append(p.ended[:len(p.ended):len(p.ended)], w.records[a.Record.AssignmentID])
		return nil
	case polecat.ForgetEnded:
		p.ended = slices.DeleteFunc(slices.Clone(p.ended), func(r retire.Record) bool { return r.AssignmentID == a.Assignment })
		return nil
	case polecat.Abandon:
		return p.abandon(a)
	case polecat.SetStatus:
		if err := w.setStatus(p.id, a.Status); err != nil {
			return err
		}
		p.status = a.Status
		return nil
	}
	w.fail("%s decided %T", p.id, a)
	return nil
}

// begin moves the bead, makes the worktree and launches the worker.
func (p *polecatRole) begin(item hook.WorkItem) error {
	w := p.w
	err := w.updateBead(item.BeadID, func(b *bead.Bead) error { return flow.BeginWork(b, item.AssignmentID, w.clock()) })
	if err != nil {
		return err
	}
	p.spend(prepareCost)
	if w.full {
		return errDiskFull // what can't be started is a failed attempt: its record needs room as well
	}
	p.spend(launchCost)
	p.launch(item)
	return nil
}

// hold takes note of a bead that waits, and of the fault that it waits for.
func (p *polecatRole) hold(a polecat.Hold) error {
	w := p.w
	if !a.Fault.IsZero() {
		if err := w.note(pause.Try{At: w.clock(), BeadID: a.Item.BeadID, Assignment: a.Item.AssignmentID}, a.Fault); err != nil {
			return err
		}
	}
	for _, pa := range w.inForce() {
		if err := w.changePause(pa.Scope, func(p *pause.Pause) error { return p.Wait(a.Item.BeadID, w.clock()) }); err != nil {
			return err
		}
	}
	return nil
}

// publish fixes the end of an attempt: the first record wins.
func (p *polecatRole) publish(rec retire.Record) error {
	w, h := p.w, p.w.hookOf(p.id)
	if _, earlier := w.records[rec.AssignmentID]; earlier {
		return nil
	}
	if err := flow.CheckAttempt(&rec, h); err != nil {
		return err
	}
	rec, err := flow.NewRetire(rec, h, w.backlog.Get(h.WorkItem.BeadID), w.clock())
	if err != nil {
		return err
	}
	rec.Settled = true
	return w.putRecord(rec)
}

// abandon saves the work of an assignment that was taken away.
func (p *polecatRole) abandon(a polecat.Abandon) error {
	w := p.w
	p.spend(commitCost)
	if w.full {
		return errDiskFull
	}
	if rec, ok := w.records[a.Assignment]; ok && !rec.Stage.Final() {
		if err := p.retire(a.Assignment); err != nil {
			return err
		}
	}
	p.forgetWorker("taken away")
	return nil
}

// retire carries out what is left of the end of an attempt. The commits and the
// worktree are modelled: they take their time, and are there.
func (p *process) retire(a state.AssignmentID) error {
	w := p.w
	if rec := w.records[a]; !rec.Stage.Final() {
		if err := w.noteEnd(&rec); err != nil {
			return err
		}
	}
	r := &flow.Retirement{Mayor: mayorID, Witness: witnessID, Target: "main"}
	return p.sequence(r, func() {
		r.Record, r.Now = w.records[a], w.clock()
		r.Bead = *w.backlog.Get(r.Record.BeadID)
		h := w.hookOf(r.Record.AgentID)
		r.Active = h.Status == hook.Active && h.Assignment() == a
	}, func(e flow.Effect) (err error) {
		if w.full {
			return errDiskFull
		}
		switch e := e.(type) {
		case flow.SecureWork:
			p.spend(commitCost)
			work := e.Record
			if flow.Lands(&work) {
				work.Head = "head-" + string(a)
			}
			r.Work = &work
		case flow.SaveWork:
			p.spend(commitCost)
			work := e.Record
			r.Work = &work
		case flow.Submit:
			r.Request = w.submit(e.Request)
		}
		return nil
	})
}
