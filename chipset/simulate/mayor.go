package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// startGrace is how long a mayor that has just begun waits for polecats.
const startGrace = 2 * time.Second

// mayorRole carries out what roles/mayor decides, as chipset/execute does.
type mayorRole struct {
	w       *world
	state   mayor.State
	next    mayor.State // of the decision that is being carried out
	again   bool
	started time.Duration
	// finished is when the pipelines of an agent were last tried to be finished.
	finished map[state.AgentID]time.Duration
}

func newMayorRole(w *world) *mayorRole {
	return &mayorRole{w: w, state: mayor.Idle, finished: map[state.AgentID]time.Duration{}}
}

func (m *mayorRole) policy() mayor.Policy {
	most := m.w.o.MaxParallel
	if most == 0 {
		most = m.w.o.Polecats
	}
	return mayor.Policy{Mayor: mayorID, Witness: witnessID, MaxParallel: most, BatchThreshold: batchThreshold, MaxAttempts: maxAttempts,
		MaxConflicts: maxConflicts, MaxRestarts: maxRestarts, RestartCooldown: restartCooldown, ReworkConflicts: true}
}

func (m *mayorRole) recover() []operation {
	m.started = m.w.now
	var all []operation
	for _, r := range m.w.unconfirmed() {
		all = append(all, m.heal(r.BeadID))
	}
	return all
}

func (m *mayorRole) killed() { m.state = mayor.Idle }

func (m *mayorRole) tick() (*roles.Progress, bool) {
	w := m.w
	f := mayor.Facts{Now: w.clock(), Policy: m.policy(), Session: w.mayor.session, Starting: w.now-m.started < startGrace, Backlog: w.backlog,
		Polecats: w.views, Unconfirmed: w.unconfirmed(), Queue: w.conflicted(), Retired: w.records,
		Mail: slices.Clone(w.letters[mayorID]), Nudges: w.nudges(mayorID)}
	d := mayor.Decide(m.state, f)
	m.next, m.again = d.Next, false
	return roles.Begin(&d), d.Again
}

func (m *mayorRole) adopt() { m.state = m.next }

// conflicted are the requests that block the queue, in FIFO order: as the
// refinery stops at the first, they are among the first.
func (w *world) conflicted() (all []mergequeue.Request) {
	if w.live.Len() == w.waiting {
		return nil
	}
	left := w.live.Len() - w.waiting
	w.live.Scan(func(r *mergequeue.Request) bool {
		if r.Status == mergequeue.Conflicted {
			all = append(all, *r)
			left--
		}
		return left > 0
	})
	return all
}

func (m *mayorRole) after() time.Duration {
	w := m.w
	var after time.Duration
	if at := w.backlog.NextReady(w.clock()); !at.IsZero() {
		after = max(time.Millisecond, at.Sub(w.clock().Time))
	}
	if grace := startGrace - (w.now - m.started); grace > 0 && (after == 0 || grace < after) {
		after = grace
	}
	if m.again && (after == 0 || after > rigTick) {
		after = rigTick
	}
	return after
}

func (m *mayorRole) operation(a roles.Action) operation {
	w, cost := m.w, m.w.o.Step
	switch a := a.(type) {
	case mayor.HealDispatch:
		return m.heal(a.Bead)
	case mayor.Sling:
		return w.sling(a.Bead, a.Agent, mayorID)
	case mayor.ClearHook:
		return once(cost, func() error { return m.clearHook(a) })
	case mayor.Reopen:
		return m.reopen(a)
	case mayor.TakeBack:
		return m.takeBack(a)
	case mayor.FinishFor:
		return m.finishFor(a.Agent)
	case mayor.Block:
		return m.block(a)
	case mayor.Supersede:
		return once(cost, func() error { return w.supersede(a.MR) })
	case mayor.MakeConvoy:
		return m.makeConvoy(a.Beads)
	case mayor.UpdateConvoy:
		return once(cost, func() error { return m.updateConvoy(a) })
	}
	return once(0, func() error { w.fail("the mayor decided %T", a); return nil })
}

// clearHook empties a hook whose attempt is over, after a look at what it is now.
func (m *mayorRole) clearHook(a mayor.ClearHook) error {
	w, h := m.w, m.w.hookOf(a.Agent)
	if h.Assignment() != a.Assignment {
		return nil
	}
	switch {
	case a.Verify:
		if w.requestOf(h.WorkItem.BeadID, a.Assignment) == nil {
			w.fail("assignment %s is completed, but has no merge request", a.Assignment)
		}
	case h.Status != hook.Completed:
		b := w.backlog.Get(h.WorkItem.BeadID)
		if b.CheckAssignment(a.Assignment, bead.Hooked, bead.InProgress, bead.Done, bead.Failed, bead.Closed, bead.Merged) == nil {
			return nil
		}
	}
	return w.releaseHook(a.Agent, a.Assignment)
}

// reopen swaps the bead first, then clears its hook, then supersedes its request.
func (m *mayorRole) reopen(a mayor.Reopen) operation {
	w := m.w
	var assignee state.AgentID
	return steps(w.o.Step, func() error {
		return w.updateBead(a.Bead, func(b *bead.Bead) error {
			if err := b.CheckAssignment(a.Assignment, a.From); err != nil {
				return err
			}
			assignee = b.Assignee
			w.tally.reopened(w, b, a.Charge, a.From)
			if err := b.Become(bead.Open, "", w.clock()); err != nil {
				return err
			}
			a.Charge.To(b)
			if !a.ReadyAt.IsZero() {
				b.ReadyAt = &a.ReadyAt
			}
			return nil
		})
	}, func() error { return w.releaseHook(assignee, a.Assignment) }, func() error {
		if a.MR == "" {
			return nil
		}
		return w.supersede(a.MR)
	})
}

// block tells the person first.
func (m *mayorRole) block(a mayor.Block) operation {
	w := m.w
	var assignee state.AgentID
	return steps(w.o.Step, func() error {
		b := w.backlog.Get(a.Bead)
		if err := b.CheckAssignment(a.Assignment, a.From); err != nil {
			return err
		}
		return w.send(mail.Message{From: mayorID, To: state.Human, Type: mail.Coordination, Priority: mail.Urgent, Subject: a.Subject,
			ID: fmt.Sprintf("block-%s-%d-%d-%d", a.Assignment, b.Attempts, b.Conflicts, b.Restarts)}, nil)
	}, func() error {
		return w.updateBead(a.Bead, func(b *bead.Bead) error {
			if err := b.CheckAssignment(a.Assignment, a.From); err != nil {
				return err
			}
			assignee = b.Assignee
			w.tally.reopened(w, b, a.Charge, a.From)
			a.Charge.To(b)
			return b.Become(bead.Blocked, a.Reason, w.clock())
		})
	}, func() error { return w.releaseHook(assignee, a.Assignment) })
}

// takeBack makes a bead open again that hangs on no hook.
func (m *mayorRole) takeBack(a mayor.TakeBack) operation {
	w := m.w
	return once(w.o.Step, func() error {
		if rec, under := w.dispatches[a.Bead]; under && rec.AssignmentID == a.Assignment || w.hookOf(a.Agent).Assignment() == a.Assignment {
			return nil
		}
		return w.updateBead(a.Bead, func(b *bead.Bead) error {
			if err := b.CheckAssignment(a.Assignment, bead.Hooked, bead.InProgress); err != nil {
				return err
			}
			return b.Become(bead.Open, "", w.clock())
		})
	})
}

// finishFor runs the done pipelines of an agent without a process, not too often.
func (m *mayorRole) finishFor(id state.AgentID) operation {
	w := m.w
	m.again = true
	if last, ok := m.finished[id]; ok && w.now-last < time.Minute || w.byID[id].alive {
		return once(0, func() error { return errSkip })
	}
	m.finished[id] = w.now
	all := w.finishAll(id)
	i := 0
	return operation{w.o.Step, func() (bool, error) {
		if w.byID[id].alive || i == len(all) { // its own next start does it
			return true, nil
		}
		done, err := all[i].step()
		if done {
			i++
		}
		return i == len(all), err
	}}
}

func (m *mayorRole) makeConvoy(ids []state.BeadID) operation {
	w, i := m.w, -1
	var id state.ConvoyID
	return operation{w.o.Step, func() (bool, error) {
		if i++; i == 0 {
			if w.full {
				return false, errDiskFull
			}
			w.convoys++
			id = state.ConvoyID("cv-" + pad(w.convoys, 6))
			w.backlog.PutConvoy(convoy.Convoy{ID: id, BeadIDs: ids, CreatedAt: w.clock()})
			return false, nil
		}
		err := w.updateBead(ids[i-1], func(b *bead.Bead) error {
			if b.ConvoyID != "" {
				return state.ErrUnchanged
			}
			b.ConvoyID = id
			b.Touch(w.clock())
			return nil
		})
		return i == len(ids), err
	}}
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

func (m *mayorRole) heal(id state.BeadID) operation {
	w := m.w
	var undo bool
	n := 0
	return operation{w.o.Step, func() (bool, error) {
		rec, under := w.dispatches[id]
		if !under {
			return true, nil
		}
		b := w.backlog.Get(id)
		if n++; n == 1 {
			undo = b.AssignmentID != rec.AssignmentID
			switch {
			case undo:
				return false, w.releaseHook(rec.AgentID, rec.AssignmentID)
			case b.Status != bead.Hooked && b.Status != bead.InProgress:
				return true, w.removeDispatch(id) // the attempt is over
			}
		}
		if undo {
			return true, w.removeDispatch(id)
		}
		return w.carryOut(&rec)
	}}
}

// sling is the dispatch pipeline: record, bead, hook, launched, mail, confirmed.
func (w *world) sling(id state.BeadID, to, by state.AgentID) operation {
	began := false
	return operation{w.o.Step, func() (bool, error) {
		if rec, under := w.dispatches[id]; began && under {
			return w.carryOut(&rec)
		}
		b := w.backlog.Get(id)
		switch {
		case b.Status == bead.Hooked || b.Status == bead.InProgress:
			return true, nil // slung already
		case b.Status != bead.Open:
			return true, state.Conflictf("bead "+string(id), "is %s", b.Status)
		case len(w.backlog.Blockers(b)) > 0:
			return true, state.Conflictf("bead "+string(id), "waits for others")
		case w.hookOf(to).Status != hook.Empty:
			return true, state.Conflictf("hook "+string(to), "is taken")
		}
		began = true
		a := state.AssignmentID(w.newSerial("as-"))
		return false, w.putDispatch(dispatch.Record{BeadID: id, AgentID: to, AssignmentID: a, By: by, Branch: bead.BranchFor(id, b.Assignments+1),
			Stage: dispatch.Stored, CreatedAt: w.clock()})
	}}
}

// carryOut does the next step of a dispatch that is not done yet.
func (w *world) carryOut(rec *dispatch.Record) (done bool, err error) {
	b := w.backlog.Get(rec.BeadID)
	switch {
	case b.AssignmentID != rec.AssignmentID && rec.Stage == dispatch.Stored:
		err = w.updateBead(rec.BeadID, func(b *bead.Bead) error {
			if err := b.Become(bead.Hooked, "", w.clock()); err != nil {
				return err
			}
			b.Assignee, b.AssignmentID, b.Branch = rec.AgentID, rec.AssignmentID, rec.Branch
			b.Assignments++
			return nil
		})
	case b.AssignmentID != rec.AssignmentID: // taken away between two steps
		return true, errors.Join(w.releaseHook(rec.AgentID, rec.AssignmentID), w.removeDispatch(rec.BeadID))
	case rec.Stage == dispatch.Stored && b.Status == bead.Hooked && w.hookOf(rec.AgentID).Assignment() != rec.AssignmentID:
		err = w.updateHook(rec.AgentID, func(h *hook.Hook) error {
			return h.Set(hook.WorkItem{AssignedAt: rec.CreatedAt, AssignmentID: rec.AssignmentID, BeadID: rec.BeadID, Title: b.Title}, w.clock())
		})
		if errors.Is(err, state.ErrConflict) {
			return true, errors.Join(w.giveBack(rec), err)
		}
	case rec.Stage == dispatch.Stored:
		rec.Stage = dispatch.Launched
		err = w.putDispatch(*rec)
	default:
		err = w.send(mail.Message{From: rec.By, To: rec.AgentID, Type: mail.WorkAssignment, Subject: string(rec.BeadID) + " assigned",
			ID: "assign-" + string(rec.AssignmentID), Ref: &mail.Ref{BeadID: rec.BeadID, AssignmentID: rec.AssignmentID}}, nil)
		if err == nil {
			rec.Stage = dispatch.Confirmed
			err = w.putDispatch(*rec)
		}
		return true, err
	}
	return err != nil, err
}

// giveBack undoes a dispatch whose hook was taken by somebody else.
func (w *world) giveBack(rec *dispatch.Record) error {
	err := w.updateBead(rec.BeadID, func(b *bead.Bead) error {
		if b.CheckAssignment(rec.AssignmentID, bead.Hooked) != nil {
			return state.ErrUnchanged
		}
		return b.Become(bead.Open, "", w.clock())
	})
	if err != nil {
		return err
	}
	return w.removeDispatch(rec.BeadID)
}
