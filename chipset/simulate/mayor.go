package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
)

// mayorRole carries out what roles/mayor decides.
type mayorRole struct {
	*process
	state   mayor.State
	started time.Duration
	// finished is when the attempts of an agent were last tried to be finished.
	finished map[state.AgentID]time.Duration
	// due is when the next probe is due, zero when none is awaited.
	due state.Time
}

func (m *mayorRole) recover() {
	m.started = m.w.now
	for _, r := range m.w.unconfirmed() {
		_ = m.dispatch(&flow.Dispatch{}, r.BeadID) // each tick tries again
	}
}

func (m *mayorRole) killed() { m.state = mayor.Idle }

func (m *mayorRole) round() (roles.Outcome, bool) {
	w := m.w
	f := mayor.Facts{Now: w.clock(), Policy: policy.Mayor(w.def, mayorID, witnessID), Session: m.session, Starting: w.now-m.started < policy.StartGrace,
		Backlog: w.backlog, Polecats: w.views, Unconfirmed: w.unconfirmed(), Queue: w.conflicted(), Retired: w.records, Pauses: w.inForce(),
		Mail: slices.Clone(w.letters[mayorID]), Nudges: w.nudges(mayorID)}
	m.due = f.NextProbe()
	d := mayor.Decide(m.state, f)
	return carryOut(m.process, &d, &m.state, m.do)
}

func (m *mayorRole) after() (after time.Duration) {
	w := m.w
	if at := w.backlog.NextReady(w.clock()); !at.IsZero() {
		after = max(time.Millisecond, at.Sub(w.clock().Time))
	}
	if probe := m.due.Sub(w.clock().Time); probe > 0 && (after == 0 || probe < after) {
		after = probe
	}
	if grace := policy.StartGrace - (w.now - m.started); grace > 0 && (after == 0 || grace < after) {
		after = grace
	}
	return after
}

// conflicted are the requests that block the queue, in FIFO order: as the
// refinery stops at the first, they are among the first.
func (w *world) conflicted() (all []mergequeue.Request) {
	left := w.live.Len() - w.waiting
	if left == 0 {
		return nil
	}
	w.live.Scan(func(r *mergequeue.Request) bool {
		if r.Status == mergequeue.Conflicted {
			all = append(all, *r)
			left--
		}
		return left > 0
	})
	return all
}

func (m *mayorRole) do(a roles.Action) error {
	w := m.w
	switch a := a.(type) {
	case mayor.HealDispatch:
		return m.dispatch(&flow.Dispatch{}, a.Bead)
	case mayor.Sling:
		return m.sling(a.Bead, a.Agent)
	case mayor.Admit:
		return w.changePause(a.Scope, func(p *pause.Pause) error { return p.Admit(a.Beads, w.clock()) })
	case mayor.Lift:
		return w.changePause(a.Scope, func(p *pause.Pause) error { return p.Lift(w.clock()) })
	case mayor.ClearHook:
		return m.clearHook(a)
	case mayor.Reopen:
		return m.restart(a.Bead, a.Charge, flow.Rework(a, mayorID))
	case mayor.Block:
		return m.block(a)
	case mayor.TakeBack:
		if !m.hangsNowhere(a.Bead, a.Agent, a.Assignment) {
			return nil
		}
		return m.intervene(flow.TakeBack(a, mayorID))
	case mayor.Supersede:
		return w.changeRequest(flow.Supersede{MR: a.MR, BeadID: a.Bead, By: mayorID})
	case mayor.FinishFor:
		return m.finishFor(a.Agent)
	case mayor.MakeConvoy:
		return m.makeConvoy(a.Beads)
	case mayor.UpdateConvoy:
		return m.updateConvoy(a)
	}
	w.fail("the mayor decided %T", a)
	return nil
}

// sling begins a dispatch with its record. The mayor alone dispatches here, so the
// record needs no lock.
func (m *mayorRole) sling(id state.BeadID, to state.AgentID) error {
	w := m.w
	if _, under := w.dispatches[id]; under {
		if err := m.dispatch(&flow.Dispatch{}, id); err != nil {
			return err
		}
	}
	b := w.backlog.Get(id)
	if b.Status == bead.Hooked || b.Status == bead.InProgress {
		return nil // slung already
	}
	byID := map[state.BeadID]*bead.Bead{}
	for _, dep := range b.BlockedBy {
		byID[dep] = w.backlog.Get(dep)
	}
	if err := flow.Ready(b, byID); err != nil {
		return err
	}
	if err := flow.Free(w.hookOf(to)); err != nil {
		return err
	}
	rec := flow.NewDispatch(b, to, mayorID, state.AssignmentID(w.newSerial("as-")), w.clock())
	if err := w.putDispatch(rec); err != nil {
		return err
	}
	d := &flow.Dispatch{Begun: true}
	if err := m.dispatch(d, id); err != nil {
		return err
	}
	return d.Refusal
}

func (m *mayorRole) dispatch(d *flow.Dispatch, id state.BeadID) error {
	w := m.w
	return m.sequence(d, func() {
		d.Record = w.dispatches[id]
		d.Bead = *w.backlog.Get(id)
		d.Hooked = ""
		if d.Record.AgentID != "" {
			d.Hooked = w.hookOf(d.Record.AgentID).Assignment()
		}
	}, nil)
}

// restart is an intervention that is counted: an attempt was for nothing.
func (m *mayorRole) restart(id state.BeadID, c mayor.Charge, s flow.Step) error {
	if m.w.backlog.Get(id).CheckAssignment(s.Assignment, s.From...) == nil {
		m.w.tally.reopened(m.w, id, c, s.From[0])
	}
	return m.intervene(s)
}

func (m *mayorRole) intervene(s flow.Step) error { return m.w.intervene(m.sequence, s) }

// intervene carries a step out with what follows from it.
func (w *world) intervene(run func(flow.Sequence, func(), func(flow.Effect) error) error, s flow.Step) error {
	b := w.backlog.Get(s.BeadID)
	i := &flow.Intervention{Step: s, Assignment: b.AssignmentID, Assignee: b.Assignee}
	err := run(i, func() {
		if i.Assignee != "" {
			i.Hooked = w.hookOf(i.Assignee).Assignment()
		}
		if s.Supersede {
			i.Request = w.requestOf(s.BeadID, i.Assignment)
		}
	}, nil)
	if err == nil {
		err = i.Refusal
	}
	return err
}

// clearHook empties a hook whose attempt is over, after a look at what it is now.
func (m *mayorRole) clearHook(a mayor.ClearHook) error {
	w, h := m.w, m.w.hookOf(a.Agent)
	if h.Assignment() != a.Assignment {
		return nil
	}
	id := h.WorkItem.BeadID
	switch {
	case a.Verify:
		if w.requestOf(id, a.Assignment) == nil {
			w.fail("assignment %s is completed, but has no merge request", a.Assignment)
		}
	case h.Status != hook.Completed:
		b := w.backlog.Get(id)
		if b.CheckAssignment(a.Assignment, bead.Hooked, bead.InProgress, bead.Done, bead.Failed, bead.Closed, bead.Merged) == nil {
			return nil
		}
	}
	return w.changeHook(flow.ClearHook{Agent: a.Agent, Assignment: a.Assignment, BeadID: id, By: mayorID})
}

func (m *mayorRole) hangsNowhere(id state.BeadID, agent state.AgentID, a state.AssignmentID) bool {
	rec := m.w.dispatches[id]
	return flow.MayTakeBack(&rec, m.w.hookOf(agent).Assignment(), a)
}

// block tells the person first.
func (m *mayorRole) block(a mayor.Block) error {
	w := m.w
	b := w.backlog.Get(a.Bead)
	if err := b.CheckAssignment(a.Assignment, a.From); err != nil {
		return err
	}
	if a.Unhooked && !m.hangsNowhere(a.Bead, b.Assignee, a.Assignment) {
		return nil
	}
	err := w.send(mail.Message{From: mayorID, To: state.Human, Type: mail.Coordination, Priority: mail.Urgent, Subject: a.Subject,
		ID: flow.BlockID(a.Assignment, b)}, nil)
	if err != nil {
		return err
	}
	m.spend(w.o.Step)
	return m.restart(a.Bead, a.Charge, flow.Block(a, mayorID))
}

// finishFor finishes the attempts of an agent without a process, not too often.
func (m *mayorRole) finishFor(id state.AgentID) error {
	w := m.w
	if last, ok := m.finished[id]; ok && w.now-last < policy.FinishAgain || w.byID[id].alive {
		return nil
	}
	m.finished[id] = w.now
	for _, a := range slices.Clone(w.unfinished[id]) {
		if w.byID[id].alive { // its own start does it
			return nil
		}
		if err := m.retire(a); err != nil {
			return err
		}
	}
	return nil
}

func (m *mayorRole) makeConvoy(ids []state.BeadID) error {
	w := m.w
	if w.full {
		return errDiskFull
	}
	w.convoys++
	id := state.ConvoyID(fmt.Sprintf("cv-%06d", w.convoys))
	w.backlog.PutConvoy(convoy.Convoy{ID: id, BeadIDs: ids, CreatedAt: w.clock()})
	for _, b := range ids {
		m.spend(w.o.Step)
		err := w.updateBead(b, func(b *bead.Bead) error {
			if b.ConvoyID != "" {
				return state.ErrUnchanged
			}
			b.ConvoyID = id
			b.Touch(w.clock())
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *mayorRole) updateConvoy(a mayor.UpdateConvoy) error {
	if m.w.full {
		return errDiskFull
	}
	c := m.w.backlog.Convoy(a.ID)
	c.Progress = a.Progress
	if a.Complete {
		now := m.w.clock()
		c.CompletedAt = &now
	}
	m.w.backlog.PutConvoy(c)
	return nil
}

// unconfirmed are the dispatches that are under way, by bead.
func (w *world) unconfirmed() []dispatch.Record {
	if len(w.dispatches) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Values(w.dispatches), func(a, b dispatch.Record) int { return cmp.Compare(a.BeadID, b.BeadID) })
}
