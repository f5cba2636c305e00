package simulate

import (
	"errors"
	"math"
	"time"

	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

func (r *refineryRole) policy() refinery.Policy {
	return refinery.Policy{MaxWaiting: maxWaiting, Mayor: mayorID, Batch: r.w.o.Batch}
}

func (r *refineryRole) operation(action roles.Action) operation {
	switch a := action.(type) {
	case refinery.CheckOut:
		return r.step(checkOutCost, a.Request, r.checkOut)
	case refinery.RebaseOnto:
		return r.step(rebaseCost, a.Request, func(q *mergequeue.Request) (refinery.Result, error) { return r.rebase(q, a) })
	case refinery.RunTest:
		return r.step(r.w.o.Step, a.Request, func(q *mergequeue.Request) (refinery.Result, error) { return r.startTest(q, a) })
	case refinery.Land:
		l := &landing{r: r, Land: a, stack: a.Stack.Layers()}
		if len(l.stack) == 0 {
			l.stack = []refinery.Layer{{Request: a.Request, Candidate: a.Candidate}}
		}
		return operation{landCost / 2, l.step}
	}
	return r.other(action)
}

// checkOut begins a request. One that an earlier process left in merging may have
// landed: then it is finished and not begun again.
func (r *refineryRole) checkOut(q *mergequeue.Request) (refinery.Result, error) {
	w := r.w
	if q.Status == mergequeue.Merging && w.landed[q.Candidate] {
		return refinery.Result{Kind: refinery.Landed}, r.merged(q.ID)
	}
	if w.backlog.Get(q.BeadID).CheckAssignment(q.AssignmentID, bead.Done) != nil {
		return refinery.Result{Kind: refinery.Taken}, nil
	}
	err := w.updateRequest(q.ID, func(m *mergequeue.Request) error {
		if m.Status != mergequeue.Merging {
			if err := m.Become(mergequeue.Merging, w.clock()); err != nil {
				return err
			}
			m.Attempts++
		}
		m.Stage, m.Waiting, m.Failure, m.Reason = mergequeue.StageCheckout, "", "", ""
		m.ResetCandidate()
		m.UpdatedAt = w.clock()
		return nil
	})
	return refinery.Result{Kind: refinery.CheckedOut, Onto: w.onto}, err
}

// advance records the stage that a merging request comes to.
func (r *refineryRole) advance(q *mergequeue.Request, stage mergequeue.Stage, change func(m *mergequeue.Request)) error {
	return r.w.updateRequest(q.ID, func(m *mergequeue.Request) error {
		if m.Status != mergequeue.Merging {
			return state.Conflictf("merge request "+string(m.ID), "is %s", m.Status)
		}
		m.Stage, m.Waiting, m.UpdatedAt = stage, "", r.w.clock()
		change(m)
		return nil
	})
}

// rebase puts a request on a commit, above others of a stack. Whether it conflicts
// is drawn once for each attempt: with more that landed meanwhile, it does sooner.
func (r *refineryRole) rebase(q *mergequeue.Request, a refinery.RebaseOnto) (refinery.Result, error) {
	w := r.w
	if !a.Stacked {
		if err := r.advance(q, mergequeue.StageRebase, func(m *mergequeue.Request) { m.Onto = a.Onto }); err != nil {
			return refinery.Result{}, err
		}
	}
	l := w.beads[q.BeadID]
	meanwhile := float64(w.commits - l.base + r.next.Work.Stack.Len())
	if l.luck < 1-(1-w.o.Conflict)*math.Pow(1-w.o.Overlap, meanwhile) {
		return refinery.Result{Kind: refinery.Conflict, Text: "conflict"}, nil
	}
	return refinery.Result{Kind: refinery.Rebased, Onto: a.Onto, Candidate: w.newSerial("commit-")}, nil
}

// tie records what a request is tested and lands together with.
func tie(m *mergequeue.Request, s *refinery.Stack) {
	m.Stack, m.StackTip = nil, ""
	if s.Len() > 1 {
		m.Stack, m.StackTip = s.Requests(), s.Top()
	}
}

// startTest runs the test command on the top of a stack, or on the bare tip.
func (r *refineryRole) startTest(q *mergequeue.Request, a refinery.RunTest) (refinery.Result, error) {
	w, tip := r.w, a.Tip
	r.stopTest()
	err := r.advance(q, mergequeue.StageTest, func(m *mergequeue.Request) {
		m.Onto, m.Candidate, m.Tested = a.Onto, a.Candidate, false
		if a.Stack.Len() > 0 {
			m.Candidate = a.Stack.Layers()[0].Candidate
		}
		tie(m, a.Stack)
	})
	if err != nil {
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
	switch {
	case w.noTests:
		takes = min(takes, time.Second)
		run.result = refinery.Result{Kind: refinery.Red, Failure: mergequeue.FailCouldNotRun, Text: "exit status 127"}
	case takes >= testTimeout:
		takes = testTimeout
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
		w.refinery.wake()
	})
	return refinery.Result{}, nil
}

func (r *refineryRole) stopTest() {
	if r.run != nil && !r.run.ended {
		r.w.tally.testLost(r.w.now - r.run.began)
	}
	r.run = nil
}

// landing advances the target from the tip that was tested: first every request of
// the stack says so, then all beads and the target move in one step, then the
// requests are merged. A kill in between leaves what the next process finishes.
type landing struct {
	refinery.Land
	r *refineryRole
	// done counts the steps: one for each layer, one for the target, one for each
	// layer.
	done  int
	stack []refinery.Layer
}

func (l *landing) end(res refinery.Result) (bool, error) {
	l.r.got = res
	return true, nil
}

func (l *landing) step() (bool, error) {
	n := len(l.stack)
	var err error
	switch at := l.done; {
	case at < n:
		err = l.announce(at)
	case at == n:
		if res := l.move(); res.Kind != refinery.None {
			return l.end(res)
		}
	default:
		err = l.r.merged(l.stack[at-n-1].Request)
	}
	l.done++
	switch {
	case errors.Is(err, state.ErrConflict):
		return l.end(refinery.Result{Kind: refinery.Taken, Request: l.stack[l.done-1].Request})
	case err != nil:
		return l.end(refinery.Result{Kind: refinery.Trouble, Text: err.Error()})
	case l.done == 2*n+1:
		return l.end(refinery.Result{Kind: refinery.Landed})
	}
	return false, nil
}

// announce records in a request what is about to land.
func (l *landing) announce(i int) error {
	w, onto := l.r.w, l.Onto
	if i > 0 {
		onto = l.stack[i-1].Candidate
	}
	return w.updateRequest(l.stack[i].Request, func(m *mergequeue.Request) error {
		if m.Status != mergequeue.Merging {
			if err := m.Become(mergequeue.Merging, w.clock()); err != nil {
				return err
			}
			m.Attempts++
		}
		m.ResetCandidate()
		m.Stage, m.Waiting, m.Failure, m.Reason, m.UpdatedAt = mergequeue.StageMerge, "", "", "", w.clock()
		m.Onto, m.Candidate, m.Tested = onto, l.stack[i].Candidate, l.Tested
		tie(m, l.Stack)
		return nil
	})
}

// move makes the target hold the stack, and its beads merged, in one step.
func (l *landing) move() refinery.Result {
	w := l.r.w
	switch {
	case w.full:
		return refinery.Result{Kind: refinery.Trouble, Text: errDiskFull.Error()}
	case w.onto != l.Onto:
		return refinery.Result{Kind: refinery.Moved}
	}
	for _, layer := range l.stack {
		if q := w.requests[layer.Request]; w.backlog.Get(q.BeadID).CheckAssignment(q.AssignmentID, bead.Done) != nil {
			return refinery.Result{Kind: refinery.Taken, Request: q.ID}
		}
	}
	for _, layer := range l.stack {
		q := w.requests[layer.Request]
		if err := w.updateBead(q.BeadID, func(b *bead.Bead) error { return b.Become(bead.Merged, "", w.clock()) }); err != nil {
			w.fail("%s can't land: %v", q.BeadID, err)
		}
		w.commits++
		w.landed[layer.Candidate] = true
		w.judge.lands(w, q)
	}
	w.onto = l.stack[len(l.stack)-1].Candidate
	return refinery.Result{}
}

func (r *refineryRole) merged(id state.MergeID) error {
	w := r.w
	return w.updateRequest(id, func(m *mergequeue.Request) error {
		if m.Status == mergequeue.Merged {
			return state.ErrUnchanged
		}
		m.MergedSHA, m.Waiting, m.Reason = m.Candidate, "", ""
		m.NoticeName, m.Notified = w.newSerial("notice-"), false
		return m.Become(mergequeue.Merged, w.clock())
	})
}
