package refinery

import (
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Layer is one request of a stack: Candidate is its work, rebased on the
// candidate of the layer below, or on the target's tip.
type Layer struct {
	Request   state.MergeID
	Candidate string
}

// Stack holds requests that are rebased on each other, the oldest below. It
// never changes, so that states that share one can be compared. A nil Stack is
// empty.
type Stack struct{ layers []Layer }

// NewStack makes a stack of layers, the lowest first.
func NewStack(layers ...Layer) *Stack {
	if len(layers) == 0 {
		return nil
	}
	return &Stack{append([]Layer(nil), layers...)}
}

// Layers are the layers, the lowest first. They must not be changed.
func (s *Stack) Layers() []Layer {
	if s == nil {
		return nil
	}
	return s.layers
}

// Len is the number of layers.
func (s *Stack) Len() int { return len(s.Layers()) }

// Top is the candidate of the topmost layer, which holds all others, or "".
func (s *Stack) Top() string {
	if s.Len() == 0 {
		return ""
	}
	return s.layers[len(s.layers)-1].Candidate
}

// First are the lowest n layers.
func (s *Stack) First(n int) *Stack { return NewStack(s.Layers()[:n]...) }

// Above are the layers above the lowest n.
func (s *Stack) Above(n int) *Stack { return NewStack(s.Layers()[n:]...) }

// Requests are the layers' requests, the lowest first.
func (s *Stack) Requests() []state.MergeID {
	var ids []state.MergeID
	for _, l := range s.Layers() {
		ids = append(ids, l.Request)
	}
	return ids
}

// batch is how many requests may be tested together now. A target that was red
// without any of them is asked about by one request alone.
func (d *decision) batch() int {
	if d.s.Wait.Kind == RedTip {
		return 1
	}
	return max(1, d.Policy.Batch)
}

// follower is the request that lands right after the given one, when it may be
// stacked upon it: what comes before it in the queue must be in the stack, held, or passed.
func (d *decision) follower(last state.MergeID) *mergequeue.Request {
	below := d.request(last)
	for i := range d.Queue {
		r := &d.Queue[i]
		switch {
		case below == nil, r.Seq < below.Seq, r.ID == below.ID, !r.Status.Live():
		case d.Unreadable[r.BeadID] != "":
			return nil
		case !d.owned(r): // its end is on the way
		case r.IsHeld(), r.Passed(d.Now): // the others pass it
		case r.Status == mergequeue.Conflicted, r.Waiting != "", r.TargetBranch != below.TargetBranch:
			return nil
		default:
			return r
		}
	}
	return nil
}

// stacked goes on from a rebase: with the next request on top of it, or to the
// test of what stands there.
func (d *decision) stacked(candidate string) {
	w := &d.s.Work
	id := w.ID
	if w.Next != "" {
		id = w.Next
	}
	w.Stack = NewStack(append(w.Stack.Layers(), Layer{id, candidate})...)
	w.Next = ""
	if w.Stack.Len() < d.batch() {
		if next := d.follower(id); next != nil {
			w.Next = next.ID
			return
		}
	}
	d.test(w.Stack.Len())
}

// leftOut ends the stack below a request that can't stand on it. Nobody is
// blamed for that: what is below it may not land. Its own turn comes.
func (d *decision) leftOut(res Result) {
	w := &d.s.Work
	if res.Kind == Held {
		d.change(Hold{Request: w.Next, Change: res.Hold})
	} else {
		d.do(LeaveOut{Request: w.Next, Reason: wording.Reason(res.Text)})
	}
	w.Next = ""
	d.test(w.Stack.Len())
}

// test goes to the test of the lowest n layers, or right on where they hold
// nothing that the target lacks.
func (d *decision) test(n int) {
	w := &d.s.Work
	w.Group, w.Candidate, w.Tested, d.s.Phase = n, w.Stack.First(n).Top(), false, Test
	if w.Candidate == w.Onto {
		d.s.Phase = d.landing()
	}
}

// split looks for the request to blame in a stack that is red on a green tip:
// in its lower half first.
func (d *decision) split() {
	w := &d.s.Work
	w.Blame, w.Reason = "", ""
	w.Stack = w.Stack.First(w.Group)
	d.test(w.Group / 2)
}

// landed ends the work, or goes on above what landed: the rest of the stack is
// known to be red, and stands on a tip that is green now.
func (d *decision) landed() {
	w := d.s.Work
	d.changed = true
	rest := w.Stack.Above(w.Group)
	d.drop()
	if rest == nil || w.Group == 0 || d.s.Closing { // 0: an earlier process had landed it
		return
	}
	// Something older may have come back meanwhile.
	if next, head := rest.Layers()[0].Request, d.head(); head != nil && head.ID == next {
		green := w.Tested || w.TipGreen && w.Candidate == w.Onto
		d.s.Work, d.s.Phase = Work{ID: next, Onto: w.Candidate, Stack: rest, TipGreen: green}, Checkout
	}
}

// checkedOut goes on with what is known of the rest of a stack, while it still
// stands on the tip, or begins to rebase.
func (d *decision) checkedOut(onto string) {
	w := &d.s.Work
	if w.Stack != nil && w.Onto == onto {
		d.test(max(1, w.Stack.Len()/2))
		return
	}
	*w, d.s.Phase = Work{ID: w.ID, Onto: onto}, Rebase
}

// putBack makes every begun request but the one in work wait for its turn
// again. It comes before anything that takes the first one out of the queue's
// way, and goes from the last to the first: the oldest that is being merged is
// at any time the oldest that may be.
func (d *decision) putBack() {
	for i := len(d.Queue) - 1; i >= 0; i-- {
		if r := &d.Queue[i]; r.Status == mergequeue.Merging && r.ID != d.s.Work.ID {
			d.change(Requeue{Request: r.ID})
		}
	}
}
