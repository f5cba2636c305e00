package simulate

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/flow"
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
)

// errMoved is returned by move when the target is not where it was tested.
var errMoved = errors.New("the target has moved")

// refineryRole carries out what roles/refinery decides.
type refineryRole struct {
	*process
	state  refinery.State
	deep   bool
	result refinery.Result
	got    refinery.Result
	run    *testRun
	// queue and beads are what the last round was shown, and their room is used again.
	queue []mergequeue.Request
	beads map[state.BeadID]bead.Bead
}

// testRun is a test command that runs.
type testRun struct {
	began  time.Duration
	tip    bool
	result refinery.Result
	ended  bool
}

func (r *refineryRole) recover() {}

func (r *refineryRole) killed() {
	r.stopTest()
	*r = refineryRole{process: r.process, deep: r.deep, beads: map[state.BeadID]bead.Bead{}}
}

// window is how many requests of a queue the refinery is shown: it works at the
// front, and a queue of twenty is as deep to it as one of a hundred thousand.
func (w *world) window() int { return 2 * (w.def.Merge.MaxWaiting + w.o.Batch) }

func (r *refineryRole) round() (roles.Outcome, bool) {
	w := r.w
	if r.run != nil && r.run.ended {
		r.result, r.run = r.run.result, nil
	}
	clear(r.beads)
	f := refinery.Facts{Now: w.clock(), Self: refineryID, Session: r.session, Deep: r.deep, Result: r.result, Queue: r.queue[:0], Beads: r.beads,
		Policy: policy.Refinery(w.def, mayorID), Mail: w.entries(refineryID), Nudges: w.nudges(refineryID), Tip: w.onto}
	show := func(q *mergequeue.Request) {
		f.Queue = append(f.Queue, *q)
		f.Beads[q.BeadID] = *w.backlog.Get(q.BeadID)
	}
	for _, id := range w.untold {
		if q := w.requests[id]; !q.Status.Live() {
			show(q)
		}
	}
	left := w.window()
	w.live.Scan(func(q *mergequeue.Request) bool {
		show(q)
		left--
		return left > 0
	})
	r.queue = f.Queue
	d := refinery.Decide(r.state, f)
	r.got = refinery.Result{}
	out, again := carryOut(r.process, &d, &r.state, r.do)
	if out.Worked {
		r.result = r.got
	}
	return out, again
}

func (r *refineryRole) after() time.Duration {
	if at := r.state.WakeAt(); !at.IsZero() {
		return max(time.Millisecond, at.Sub(r.w.clock().Time))
	}
	return 0
}

func (r *refineryRole) do(action roles.Action) error {
	w := r.w
	switch a := action.(type) {
	case refinery.CheckOut:
		return r.step(checkOutCost, a.Request, r.checkOut)
	case refinery.RebaseOnto:
		return r.step(rebaseCost, a.Request, func(q *mergequeue.Request) (refinery.Result, error) { return r.rebase(q, a) })
	case refinery.RunTest:
		return r.step(0, a.Request, func(q *mergequeue.Request) (refinery.Result, error) { return r.startTest(q, a) })
	case refinery.Land:
		return r.step(0, a.Request, func(*mergequeue.Request) (refinery.Result, error) { return r.land(a) })
	case refinery.StopTest:
		r.stopTest()
		return nil
	case refinery.MarkConflicted:
		return w.changeRequest(flow.Conflicted{MarkConflicted: a, By: refineryID})
	case refinery.Requeue:
		return w.changeRequest(flow.Requeued{Requeue: a})
	case refinery.SetWaiting:
		return w.changeRequest(flow.Waits{SetWaiting: a})
	case refinery.Retire:
		q := w.requests[a.Request]
		if end, over := flow.EndOf(q, w.backlog.Get(q.BeadID)); over {
			return w.changeRequest(end)
		}
		return nil
	case refinery.Notify:
		return r.notify(a.Request)
	case refinery.RecordDepth:
		r.deep = true
		return nil
	case refinery.ForgetDepth:
		r.deep = false
		return nil
	case refinery.LeaveOut, refinery.QueueBlocked, refinery.QueueUnblocked:
		return nil
	}
	w.fail("the refinery decided %T", action)
	return nil
}

// step makes a failure of a step its result.
func (r *refineryRole) step(cost time.Duration, id state.MergeID, do func(q *mergequeue.Request) (refinery.Result, error)) error {
	r.spend(cost)
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
}

// checkOut begins a request. One that an earlier process left in merging may have
// landed: then it is finished and not begun again.
func (r *refineryRole) checkOut(q *mergequeue.Request) (refinery.Result, error) {
	w := r.w
	if q.Status == mergequeue.Merging && w.landed[q.Candidate] {
		_, err := r.landing(&flow.Landing{By: refineryID, Landed: true}, []refinery.Layer{{Request: q.ID, Candidate: q.Candidate}})
		return refinery.Result{Kind: refinery.Landed}, err
	}
	if w.backlog.Get(q.BeadID).CheckAssignment(q.AssignmentID, bead.Done) != nil {
		return refinery.Result{Kind: refinery.Taken}, nil
	}
	err := w.changeRequest(flow.Begin{MR: q.ID})
	return refinery.Result{Kind: refinery.CheckedOut, Onto: w.onto}, err
}

// rebase puts a request on a commit, above others of a stack. Whether it conflicts
// is drawn once for each attempt: with more that landed meanwhile, it does sooner.
func (r *refineryRole) rebase(q *mergequeue.Request, a refinery.RebaseOnto) (refinery.Result, error) {
	w := r.w
	if !a.Stacked {
		if err := w.changeRequest(flow.Advance{MR: q.ID, Onto: a.Onto}); err != nil {
			return refinery.Result{}, err
		}
	}
	l := w.beads[q.BeadID]
	meanwhile := float64(w.commits - l.base + r.state.Work.Stack.Len())
	if l.luck < 1-(1-w.o.Conflict)*math.Pow(1-w.o.Overlap, meanwhile) {
		return refinery.Result{Kind: refinery.Conflict, Text: "conflict"}, nil
	}
	return refinery.Result{Kind: refinery.Rebased, Onto: a.Onto, Candidate: w.newSerial("commit-")}, nil
}

// startTest runs the test command on the top of a stack, or on the bare tip.
func (r *refineryRole) startTest(q *mergequeue.Request, a refinery.RunTest) (refinery.Result, error) {
	w, tip := r.w, a.Tip
	r.stopTest()
	if err := w.changeRequest(flow.Advance{MR: q.ID, Onto: a.Onto, Test: &a}); err != nil {
		return refinery.Result{}, err
	}
	run := &testRun{began: w.now, tip: tip, result: refinery.Result{Kind: refinery.Green}}
	takes := w.around(w.o.Test, w.o.Spread/2)
	red := w.chance(w.o.Flaky)
	if !tip {
		red = red || w.beads[q.BeadID].broken
		for _, l := range a.Stack.Layers() {
			red = red || w.beads[w.requests[l.Request].BeadID].broken
		}
	}
	switch limit := w.def.Merge.TestTimeout; {
	case w.noTests:
		takes = min(takes, time.Second)
		run.result = refinery.Result{Kind: refinery.Red, Failure: mergequeue.FailCouldNotRun, Text: "exit status 127"}
	case takes >= limit:
		takes = limit
		run.result = refinery.Result{Kind: refinery.Red, Failure: mergequeue.FailCouldNotRun, Text: "no end in time"}
	case red:
		run.result = refinery.Result{Kind: refinery.Red, Failure: mergequeue.FailTests, Text: "exit status 1"}
	}
	r.run = run
	w.after(takes, func() {
		if r.run != run {
			return
		}
		run.ended = true
		w.tally.tested(w.now-run.began, run)
		r.wake()
	})
	return refinery.Result{}, nil
}

func (r *refineryRole) stopTest() {
	if r.run != nil && !r.run.ended {
		r.w.tally.testLost(r.w.now - r.run.began)
	}
	r.run = nil
}

// land advances the target from the tip that was tested.
func (r *refineryRole) land(a refinery.Land) (refinery.Result, error) {
	lost, err := r.landing(&flow.Landing{By: refineryID, Land: a}, flow.Layers(a))
	switch {
	case errors.Is(err, errMoved):
		return refinery.Result{Kind: refinery.Moved}, nil
	case err != nil:
		return refinery.Result{}, err
	case lost != "":
		return refinery.Result{Kind: refinery.Taken, Request: lost}, nil
	}
	return refinery.Result{Kind: refinery.Landed}, nil
}

// landing carries a landing out, and returns the request that was taken away.
func (r *refineryRole) landing(l *flow.Landing, stack []refinery.Layer) (lost state.MergeID, err error) {
	w := r.w
	err = r.sequence(l, func() {
		l.Layers = l.Layers[:0]
		for _, s := range stack {
			q := w.requests[s.Request]
			l.Layers = append(l.Layers, flow.Layer{Request: *q, Bead: *w.backlog.Get(q.BeadID), Candidate: s.Candidate})
		}
	}, func(e flow.Effect) error {
		move, ok := e.(flow.MoveTarget)
		if !ok {
			return nil // what was landed is durable
		}
		r.spend(landCost)
		lost, err := w.moveTarget(&move, l.Layers)
		l.Lost = lost
		return err
	})
	return l.Lost, err
}

// moveTarget makes the target hold a stack, and its beads merged, in one step: the
// beads are locked meanwhile.
func (w *world) moveTarget(move *flow.MoveTarget, stack []flow.Layer) (lost state.MergeID, err error) {
	switch {
	case w.full:
		return "", errDiskFull
	case w.onto != move.Land.Onto:
		return "", errMoved
	}
	for _, e := range move.Beads {
		b := *w.backlog.Get(e.BeadID)
		if err := e.Change(&b, w.clock()); err != nil {
			return e.MR, nil //nolint:nilerr // it was taken away
		}
	}
	for i, e := range move.Beads {
		if err := w.changeBead(e); err != nil {
			w.fail("%s can't land: %v", e.BeadID, err)
		}
		w.commits++
		w.landed[stack[i].Candidate] = true
		w.judge.lands(w, w.requests[e.MR])
	}
	w.onto = move.Land.Candidate
	return "", nil
}

func (r *refineryRole) notify(id state.MergeID) error {
	w, q := r.w, r.w.requests[id]
	ref := &mail.Ref{BeadID: q.BeadID, AssignmentID: q.AssignmentID}
	m := mail.Message{From: refineryID, To: mayorID, Type: mail.MergeNotification, Subject: string(q.BeadID), Ref: ref,
		ID: fmt.Sprintf("%s:%s:%d", id, q.Status, q.Attempts)}
	err := w.send(m, nil)
	if err == nil && q.Status != mergequeue.Merged {
		m.To, m.Type, m.Priority = witnessID, mail.Coordination, mail.Low
		err = w.send(m, nil)
	}
	if err != nil {
		return err
	}
	r.spend(w.o.Step)
	return w.updateRequest(id, func(m *mergequeue.Request) error {
		if m.Notified {
			return state.ErrUnchanged
		}
		m.Notified = true
		return nil
	})
}
