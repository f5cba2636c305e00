package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

const (
	// checkOutCost, rebaseCost and landCost are what git takes.
	checkOutCost = 15 * time.Millisecond
	rebaseCost   = 25 * time.Millisecond
	landCost     = 20 * time.Millisecond
	// window is how many requests of a queue the refinery is shown, beside those of a
	// batch: it works at the front, and a queue of twenty is as deep to it as one of
	// a hundred thousand.
	window = 2 * maxWaiting
)

// refineryRole carries out what roles/refinery decides, as chipset/execute does.
type refineryRole struct {
	w      *world
	state  refinery.State
	next   refinery.State // of the decision that is being carried out
	deep   bool
	result refinery.Result
	got    refinery.Result
	run    *testRun
}

// testRun is a test command that runs.
type testRun struct {
	began  time.Duration
	tip    bool
	result refinery.Result
	ended  bool
}

func (r *refineryRole) recover() []operation { return nil }

func (r *refineryRole) killed() {
	r.stopTest()
	*r = refineryRole{w: r.w, deep: r.deep}
}

// tick is one round of fetch, decode, execute and retire.
func (r *refineryRole) tick() (*roles.Progress, bool) {
	w := r.w
	if r.run != nil && r.run.ended {
		r.result, r.run = r.run.result, nil
	}
	f := refinery.Facts{Now: w.clock(), Self: refineryID, Session: w.refinery.session, Deep: r.deep, Result: r.result, Beads: map[state.BeadID]bead.Bead{},
		Policy: r.policy(), Mail: w.entries(refineryID), Nudges: w.nudges(refineryID), Tip: w.onto}
	r.got = refinery.Result{}
	show := func(q *mergequeue.Request) {
		f.Queue = append(f.Queue, *q)
		f.Beads[q.BeadID] = *w.backlog.Get(q.BeadID)
	}
	for _, id := range w.untold {
		if q := w.requests[id]; !q.Status.Live() {
			show(q)
		}
	}
	left := window + 2*w.o.Batch
	w.live.Scan(func(q *mergequeue.Request) bool {
		show(q)
		left--
		return left > 0
	})
	d := refinery.Decide(r.state, f)
	r.next, r.got = d.Next, refinery.Result{}
	return roles.Begin(&d), d.Again
}

func (r *refineryRole) adopt() { r.state, r.result = r.next, r.got }

func (r *refineryRole) after() time.Duration {
	if at := r.state.WakeAt(); !at.IsZero() {
		return max(time.Millisecond, at.Sub(r.w.clock().Time))
	}
	return 0
}

// step makes a failure of a step its result.
func (r *refineryRole) step(cost time.Duration, id state.MergeID, do func(q *mergequeue.Request) (refinery.Result, error)) operation {
	return once(cost, func() error {
		q := *r.w.requests[id]
		if !q.Status.Live() {
			r.got = refinery.Result{Kind: refinery.Taken}
			return nil
		}
		res, err := do(&q)
		switch {
		case errors.Is(err, state.ErrConflict):
			res = refinery.Result{Kind: refinery.Taken}
		case err != nil:
			res = refinery.Result{Kind: refinery.Trouble, Text: err.Error()}
		}
		if res.Kind != refinery.None {
			r.got = res
		}
		return nil
	})
}

func (r *refineryRole) simple(do func() error) operation { return once(r.w.o.Step, do) }

func (r *refineryRole) other(action roles.Action) operation {
	w := r.w
	switch a := action.(type) {
	case refinery.StopTest:
		return r.simple(func() error { r.stopTest(); return nil })
	case refinery.MarkConflicted:
		return r.simple(func() error { return r.markConflicted(a) })
	case refinery.Requeue:
		return r.simple(func() error {
			return w.updateRequest(a.Request, func(m *mergequeue.Request) error {
				if m.Status != mergequeue.Merging {
					return state.ErrUnchanged
				}
				err := m.Become(mergequeue.Pending, w.clock())
				m.Waiting = a.Waiting
				return err
			})
		})
	case refinery.SetWaiting:
		return r.simple(func() error {
			return w.updateRequest(a.Request, func(m *mergequeue.Request) error {
				if !m.Status.Live() || m.Waiting == a.Waiting {
					return state.ErrUnchanged
				}
				m.Waiting = a.Waiting
				return nil
			})
		})
	case refinery.Retire:
		return r.simple(func() error { return r.retire(a.Request) })
	case refinery.Notify:
		return steps(w.o.Step, func() error { return r.notify(a.Request) }, func() error {
			return w.updateRequest(a.Request, func(m *mergequeue.Request) error {
				if m.Notified {
					return state.ErrUnchanged
				}
				m.Notified = true
				return nil
			})
		})
	case refinery.RecordDepth:
		return r.simple(func() error {
			w.tally.DepthWarnings++
			r.deep = true
			return nil
		})
	case refinery.ForgetDepth:
		return r.simple(func() error { r.deep = false; return nil })
	case refinery.LeaveOut, refinery.QueueBlocked, refinery.QueueUnblocked:
		return once(0, func() error { return nil })
	}
	return once(0, func() error { w.fail("the refinery decided %T", action); return nil })
}

func (r *refineryRole) markConflicted(a refinery.MarkConflicted) error {
	w := r.w
	return w.updateRequest(a.Request, func(m *mergequeue.Request) error {
		if m.Status != mergequeue.Merging {
			return state.ErrUnchanged
		}
		m.Failure, m.Reason, m.Waiting = a.Failure, a.Reason, ""
		m.NoticeName, m.Notified = w.newSerial("notice-"), false
		return m.Become(mergequeue.Conflicted, w.clock())
	})
}

// retire ends a request whose bead is no longer done under its assignment.
func (r *refineryRole) retire(id state.MergeID) error {
	w := r.w
	q := w.requests[id]
	b := w.backlog.Get(q.BeadID)
	if b.CheckAssignment(q.AssignmentID, bead.Done) == nil {
		return nil
	}
	to := mergequeue.Superseded
	if b.Status == bead.Cancelled || b.Status == bead.Blocked {
		to = mergequeue.Dropped
	}
	return w.updateRequest(id, func(m *mergequeue.Request) error {
		if m.Status != mergequeue.Pending && m.Status != mergequeue.Merging {
			return state.ErrUnchanged
		}
		m.Waiting = ""
		return m.Become(to, w.clock())
	})
}

func (r *refineryRole) notify(id state.MergeID) error {
	w, q := r.w, r.w.requests[id]
	ref := &mail.Ref{BeadID: q.BeadID, AssignmentID: q.AssignmentID}
	m := mail.Message{From: refineryID, To: mayorID, Type: mail.MergeNotification, Subject: string(q.BeadID), Ref: ref, ID: fmt.Sprintf("%s:%s:%d", id, q.Status, q.Attempts)}
	if err := w.send(m, nil); err != nil || q.Status == mergequeue.Merged {
		return err
	}
	m.To, m.Type, m.Priority = witnessID, mail.Coordination, mail.Low
	return w.send(m, nil)
}
