package refinery

import (
	"slices"
	"testing"

	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// queued is a decision about requests gt-1, gt-2 … for main, all pending and fit to land, but for what change does.
func queued(change ...func(r *mergequeue.Request)) *decision {
	d := &decision{Facts: Facts{Beads: map[state.BeadID]bead.Bead{}, Unreadable: map[state.BeadID]string{}, Policy: Policy{MaxWaiting: 1, Mayor: "mayor"}}}
	for i, do := range change {
		n := string(rune('1' + i))
		r := mergequeue.Request{ID: state.MergeID("mr-gt-" + n), BeadID: state.BeadID("gt-" + n), AssignmentID: "as-1", Seq: int64(i + 1), Status: mergequeue.Pending, TargetBranch: "main"}
		d.Beads[r.BeadID] = bead.Bead{ID: r.BeadID, Status: bead.Done, AssignmentID: "as-1"}
		if do != nil {
			do(&r)
		}
		d.Queue = append(d.Queue, r)
	}
	return d
}

func merging(r *mergequeue.Request) { r.Status = mergequeue.Merging }

// What is stacked lands on the same branch, right behind what it stands on.
func TestFollowers(t *testing.T) {
	held := func(r *mergequeue.Request) { r.Held = &mergequeue.Hold{Change: "h"} }
	for name, c := range map[string]struct {
		second func(r *mergequeue.Request)
		facts  func(d *decision)
		want   state.MergeID
	}{
		"the next":           {want: "mr-gt-2"},
		"of another branch":  {second: func(r *mergequeue.Request) { r.TargetBranch = "release" }},
		"conflicted":         {second: func(r *mergequeue.Request) { r.Status = mergequeue.Conflicted }},
		"waiting":            {second: func(r *mergequeue.Request) { r.Waiting = "a red tip" }},
		"of an unknown bead": {facts: func(d *decision) { d.Unreadable["gt-2"] = "torn" }},
		"held":               {second: held, want: "mr-gt-3"},
		"taken away":         {facts: func(d *decision) { delete(d.Beads, "gt-2") }, want: "mr-gt-3"},
		"over":               {second: func(r *mergequeue.Request) { r.Status = mergequeue.Superseded }, want: "mr-gt-3"},
	} {
		d := queued(merging, c.second, nil)
		if c.facts != nil {
			c.facts(d)
		}
		got := state.MergeID("")
		if r := d.follower("mr-gt-1"); r != nil {
			got = r.ID
		}
		if got != c.want {
			t.Errorf("%s: %q follows, want %q", name, got, c.want)
		}
	}
}

// Whatever ends the work on a request, those that were begun with it wait for their turn again, before it is out of their way.
func TestBegunRequestsArePutBack(t *testing.T) {
	for name, end := range map[string]func(d *decision){
		"stopped":    func(d *decision) { d.abort(nudge.Nudge{From: state.Human, Type: nudge.Abort}) },
		"taken away": func(d *decision) { delete(d.Beads, "gt-1"); d.takenAway() },
		"red tip":    func(d *decision) { d.redTip(Result{Kind: Red, Failure: mergequeue.FailTests}) },
		"bad end":    func(d *decision) { d.badEnd(mergequeue.FailTests, "red") },
		"a checkout in the way": func(d *decision) {
			d.s.Wait = Wait{Kind: WaitCheckout, Request: d.s.Work.ID, Tries: 2}
			d.inTheWay(Result{Kind: InTheWay, Text: "t"})
		},
	} {
		d := queued(merging, merging, merging, nil)
		d.s.Work, d.s.Phase = Work{ID: "mr-gt-1", Onto: "t0"}, Test
		end(d)
		if len(d.work) < 3 || !slices.Equal(d.work[:2], []roles.Action{Requeue{Request: "mr-gt-3"}, Requeue{Request: "mr-gt-2"}}) {
			t.Errorf("%s: %+v", name, d.work)
		}
	}
}

// Of a stack that a checkout refuses only for the files that it changes, the lowest is tried alone: it may change others.
func TestLowestOfAStackIsTriedAlone(t *testing.T) {
	for name, c := range map[string]struct {
		tries int
		whole bool
		want  Phase
		group int
	}{
		"at first":                {0, false, Merge, 2},
		"again":                   {1, false, Test, 1},
		"the checkout as a whole": {1, true, Merge, 2},
	} {
		d := queued(merging, merging)
		d.s.Work, d.s.Phase = Work{ID: "mr-gt-1", Onto: "t0", Group: 2, Stack: NewStack(Layer{"mr-gt-1", "c1"}, Layer{"mr-gt-2", "c2"})}, Merge
		d.s.Wait = Wait{Kind: WaitCheckout, Request: "mr-gt-1", Tries: c.tries}
		if d.inTheWay(Result{Kind: InTheWay, Text: "t", Whole: c.whole}); d.s.Phase != c.want || d.s.Work.Group != c.group {
			t.Errorf("%s: %s of %d", name, d.s.Phase, d.s.Work.Group)
		}
	}
}

// Where a person decides about what could not land, they are told once for each tip that it met.
func TestPersonIsToldOfABadEnd(t *testing.T) {
	for _, block := range []bool{false, true} {
		d := queued(merging)
		d.Policy.Block = block
		d.s.Work, d.s.Phase = Work{ID: "mr-gt-1", Onto: "t0"}, Test
		d.badEnd(mergequeue.FailTests, "red")
		told := slices.ContainsFunc(d.work, func(a roles.Action) bool {
			m, ok := a.(roles.Send)
			return ok && m.Message.To == state.Human && m.Message.ID == "conflicted:mr-gt-1:t0"
		})
		if told != block {
			t.Errorf("block %t: told %t: %+v", block, told, d.work)
		}
	}
}

// Only what waits to be merged makes the queue deep.
func TestDepthCountsWhatWaits(t *testing.T) {
	d := queued(nil, func(r *mergequeue.Request) { r.Status = mergequeue.Conflicted }, func(r *mergequeue.Request) { r.Held = &mergequeue.Hold{Change: "h"} })
	if d.depth(); len(d.groups) > 0 {
		t.Errorf("one waits: %+v", d.groups)
	}
	d = queued(merging, nil)
	if d.depth(); len(d.groups) != 1 || d.groups[0][1] != (RecordDepth{Waiting: 2, Newest: "mr-gt-2"}) {
		t.Errorf("two wait: %+v", d.groups)
	}
}

// A mail to the person names the bead that it is about.
func TestPersonIsToldWhichBead(t *testing.T) {
	d := queued(merging)
	d.s.Work.ID = "mr-gt-1"
	d.tellHuman("id", "subject", "body")
	if m := d.work[0].(roles.Send).Message; m.Ref == nil || m.Ref.BeadID != "gt-1" || m.Ref.AssignmentID != "as-1" {
		t.Errorf("%+v", m)
	}
}
