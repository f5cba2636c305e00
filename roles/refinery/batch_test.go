package refinery

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/roles/rolestest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// fate is what becomes of a request whatever stands beside it.
type fate string

const (
	lands     fate = "lands"
	isRed     fate = "red"       // tests that hold it are red
	hangs     fate = "hangs"     // tests that hold it do not end
	conflicts fate = "conflicts" // it never applies
	refused   fate = "refused"
	empty     fate = "empty" // nothing of it is left
	dropped   fate = "dropped"
	cancelled fate = "cancelled" // both: while the first test runs that holds it
)

// oracle answers every step from the fates of the requests. A commit is named
// by the requests that it holds.
type oracle struct {
	t        *rapid.T
	w        *world
	fates    []fate // of request 1, 2, …
	tip      string
	tests    int
	landed   []int
	restarts []bool // after which of the first steps the process is killed
}

func number(id state.MergeID) int {
	var n int
	_, _ = fmt.Sscanf(string(id), "mr-gt-%d", &n)
	return n
}

func holds(commit string) []int {
	var all []int
	for part := range strings.SplitSeq(commit, "+") {
		var n int
		if _, err := fmt.Sscanf(part, "%d", &n); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// run plays until nothing is left to do.
func (o *oracle) run() {
	for i := range o.fates {
		o.must(fmt.Sprintf("request mr-gt-%d pending as=as-1", i+1))
	}
	line := "after 0s"
	for step := 0; line != ""; step++ {
		if step > 3000 {
			o.t.Fatal("it does not come to an end")
		}
		o.must(line)
		o.w.out = nil
		if !o.w.settle() {
			o.t.Fatalf("after %q the decisions do not settle: %q", line, o.w.out)
		}
		if step < len(o.restarts) && o.restarts[step] {
			line = "restart"
			continue
		}
		line = o.next()
	}
}

func (o *oracle) must(line string) {
	if err := o.w.Happen(rolestest.Parse(line)); err != nil {
		o.t.Fatal(err)
	}
}

// next is what happens now: the result of the step that was asked for, or the
// mayor's rework of a request that could not land.
func (o *oracle) next() string {
	switch a := o.w.asked.(type) {
	case CheckOut:
		if o.fates[number(a.Request)-1] == refused {
			return "result refused | why"
		}
		return "result checked_out onto=" + o.tip
	case RebaseOnto:
		n := number(a.Request)
		switch o.fates[n-1] {
		case conflicts:
			return "result conflict | a.txt"
		case refused:
			return "result refused | why"
		case empty:
			return "result rebased candidate=" + a.Onto
		}
		return fmt.Sprintf("result rebased candidate=%s+%d", a.Onto, n)
	case Land:
		if a.Onto != o.tip || !strings.HasPrefix(a.Candidate, o.tip) {
			o.t.Fatalf("%+v lands on %s", a, o.tip)
		}
		for _, id := range a.Stack.Requests() {
			o.landed = append(o.landed, number(id))
		}
		o.tip = a.Candidate
		return "result landed"
	}
	if o.w.state.Work.Running {
		return o.verdict()
	}
	for _, q := range o.w.queue {
		if q.Status == mergequeue.Conflicted && o.w.beads[q.BeadID].Status == bead.Done {
			return fmt.Sprintf("bead gt-%d open", number(q.ID))
		}
	}
	return ""
}

// verdict ends the test that runs, unless somebody is quicker.
func (o *oracle) verdict() string {
	work := o.w.state.Work
	commit := work.Candidate
	if work.Blame != "" {
		commit = work.Onto
	}
	for _, n := range holds(commit) {
		q := o.w.request(state.MergeID(fmt.Sprintf("mr-gt-%d", n)))
		switch {
		case o.fates[n-1] == dropped && q.Status.Live():
			return fmt.Sprintf("drop mr-gt-%d", n)
		case o.fates[n-1] == cancelled && q.Status.Live():
			return fmt.Sprintf("bead gt-%d cancelled", n)
		}
	}
	o.tests++
	for _, n := range holds(commit) {
		switch o.fates[n-1] {
		case isRed:
			return "result red failure=tests_failed | exit status 1"
		case hangs:
			return "result red failure=could_not_run | no end"
		}
	}
	return "result green"
}

// ends lists how each request ended.
func (o *oracle) ends() string {
	var all []string
	for _, q := range o.w.queue {
		all = append(all, fmt.Sprintf("%s %s %s", q.ID, q.Status, q.Failure))
	}
	return strings.Join(all, "\n")
}

func play(t *rapid.T, batch int, fates []fate, restarts []bool) *oracle {
	o := &oracle{t: t, w: newWorld(), fates: fates, tip: "t", restarts: restarts}
	o.w.policy.Batch = batch
	o.run()
	return o
}

// TestBatchEndsAsOneByOne holds stacks against the same requests one by one:
// where a request's fate is its own, every one comes to the same end.
func TestBatchEndsAsOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := []fate{lands, lands, lands, isRed, hangs, conflicts, refused, empty, dropped, cancelled}
		fates := rapid.SliceOfN(rapid.SampledFrom(kinds), 1, 20).Draw(t, "fates")
		batch := rapid.IntRange(2, 12).Draw(t, "batch")
		restarts := rapid.SliceOfN(rapid.SampledFrom([]bool{false, false, false, true}), 0, 40).Draw(t, "restarts")
		alone, stacked := play(t, 1, fates, nil), play(t, batch, fates, restarts)
		if alone.ends() != stacked.ends() {
			t.Fatalf("one by one:\n%s\nin stacks of %d:\n%s", alone.ends(), batch, stacked.ends())
		}
		if !slices.Equal(alone.landed, stacked.landed) {
			t.Fatalf("landed %v one by one, %v in stacks", alone.landed, stacked.landed)
		}
	})
}

// TestBatchCostOfOneRed counts the tests that find one red request among n.
func TestBatchCostOfOneRed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 64).Draw(t, "n")
		red := rapid.IntRange(0, n-1).Draw(t, "red")
		fates := slices.Repeat([]fate{lands}, n)
		fates[red] = rapid.SampledFrom([]fate{isRed, hangs}).Draw(t, "how")
		o := play(t, n, fates, nil)
		depth := bits.Len(uint(n - 1)) // log2, rounded up
		// All together, the bare tip, the halves, the one alone, and what waits behind it.
		if most := depth + 4; o.tests > most {
			t.Fatalf("%d of %d is red: %d tests, at most %d", red+1, n, o.tests, most)
		}
		if len(o.landed) != n-1 {
			t.Fatalf("%d of %d landed", len(o.landed), n)
		}
	})
}
