package refinery

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/rolestest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// TestDecideSafety plays the world against the refinery at random and holds
// every decision against what must never happen.
func TestDecideSafety(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.policy.Remote = rapid.Bool().Draw(t, "remote")
		w.policy.Batch = rapid.IntRange(0, 4).Draw(t, "batch")
		guard := &guard{t: t, w: w}
		requests := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			line := ""
			running := w.state.Work.Running && w.asked == nil
			if w.asked != nil || running && rapid.Bool().Draw(t, "ended") {
				line = drawResult(t, w.asked)
			} else {
				line = drawEvent(t, &requests)
			}
			guard.before(line)
			if err := w.Happen(rolestest.Parse(line)); err != nil {
				t.Fatal(err)
			}
			w.out = nil
			if !w.settle() {
				t.Fatalf("after %q the decisions do not settle: %q", line, w.out)
			}
			guard.after()
			if w.finished {
				return
			}
		}
	})
}

// drawResult draws an end that the step may come to.
func drawResult(t *rapid.T, step roles.Action) string {
	results := []string{"green", "green untested", "red failure=tests_failed | exit status 1", "red failure=could_not_run | why"}
	switch step := step.(type) {
	case CheckOut:
		results = []string{"checked_out onto=t0", "checked_out onto=t1", "refused | why", "taken", "landed"}
	case RebaseOnto:
		results = []string{"rebased candidate=c1", "rebased candidate=c2", "rebased candidate=t0", "conflict | a.txt", "taken", "held hold=h1", "held hold=h2"}
	case Land:
		results = []string{"landed", "moved", "in_the_way | why", "taken"}
		if ids := step.Stack.Requests(); len(ids) > 1 {
			results = append(results, "taken request="+strings.TrimPrefix(string(ids[1]), "mr-gt-"))
		}
	}
	return "result " + rapid.SampledFrom(append(results, "trouble | why")).Draw(t, "result")
}

func drawEvent(t *rapid.T, requests *int) string {
	n := rapid.IntRange(1, max(1, *requests)).Draw(t, "which")
	kind := rapid.SampledFrom([]string{"request", "bead", "tick", "tick", "tip", "retry", "drop", "allow", "nudge", "shutdown"}).Draw(t, "event")
	switch {
	case kind == "request" || *requests == 0:
		*requests++
		return fmt.Sprintf("request mr-gt-%d pending as=as-1", *requests)
	case kind == "bead":
		return fmt.Sprintf("bead gt-%d %s", n, rapid.SampledFrom([]string{"done", "open", "cancelled", "blocked", "corrupt", "gone"}).Draw(t, "bead"))
	case kind == "tick":
		return "after " + rapid.SampledFrom([]string{"1ms", "2s", "1m", "1h"}).Draw(t, "time")
	case kind == "tip":
		return rapid.SampledFrom([]string{"tip t0", "tip t1"}).Draw(t, "tip")
	case kind == "nudge":
		return rapid.SampledFrom([]string{"nudge human abort", "nudge witness health_check"}).Draw(t, "nudge")
	case kind == "shutdown":
		return "mail human shutdown_request session=ses-another"
	}
	return fmt.Sprintf("%s mr-gt-%d", kind, n)
}

// guard remembers what was proven and compares what is asked for with it.
type guard struct {
	t   *rapid.T
	w   *world
	was State
	// green and untested are the candidate of the last rebase, once it may land.
	green, untested string
}

func (g *guard) before(line string) {
	g.was = g.w.state
	w := g.was.Work
	switch {
	case strings.HasPrefix(line, "result rebased"):
		g.green, g.untested = "", ""
	case line == "result green" && w.Blame == "":
		g.green = w.Candidate
	case line == "result green untested" && w.Blame == "":
		g.untested = w.Candidate
	}
}

func (g *guard) after() {
	s := g.w.state
	if land, ok := g.w.asked.(Land); ok {
		switch {
		case land.Candidate == "" || land.Onto == "" || land.Onto != s.Work.Onto:
			g.t.Fatalf("%+v lands something that was not rebased", land)
		case land.Candidate == land.Onto: // nothing to test
		case land.Tested && g.green != land.Candidate || !land.Tested && g.untested != land.Candidate:
			g.t.Fatalf("%+v lands, proven: green %q, untested %q", land, g.green, g.untested)
		}
		g.whole(land)
	}
	if checkout, ok := g.w.asked.(CheckOut); ok && g.was.Work.ID == "" {
		g.fifo(checkout)
	}
	if s.Work.ID == "" && s.Work != (Work{}) {
		g.t.Fatalf("work without a request: %+v", s.Work)
	}
	for _, q := range g.w.queue {
		if s.Work.ID == "" && q.Status == mergequeue.Merging && g.w.asked == nil {
			g.t.Fatalf("%s is being merged, and nobody works on it", q.ID)
		}
	}
	if s.Waiting() && s.Wait.Until.Sub(g.w.now) > mostRetryTip {
		g.t.Fatalf("it waits until %s", s.Wait.Until)
	}
}

// fifo checks that nothing older could land.
func (g *guard) fifo(c CheckOut) {
	chosen := g.w.request(c.Request)
	for _, q := range g.w.queue {
		b := g.w.beads[q.BeadID]
		if q.Seq < chosen.Seq && q.Status.Live() && !q.IsHeld() && !q.Passed(state.At(g.w.now)) && q.Status != mergequeue.Merging && b.CheckAssignment(q.AssignmentID, bead.Done) == nil {
			g.t.Fatalf("%s is begun before %s, which is %s", c.Request, q.ID, q.Status)
		}
	}
}

// whole checks that a stack lands in order and leaves nothing out.
func (g *guard) whole(land Land) {
	ids := land.Stack.Requests()
	if len(ids) == 0 || ids[0] != land.Request || land.Stack.Top() != land.Candidate || len(ids) > max(1, g.w.policy.Batch) {
		g.t.Fatalf("%+v is no stack of %d at most: %q", land, g.w.policy.Batch, ids)
	}
	at := 0
	for _, q := range g.w.queue { // in the order of seq
		if q.IsHeld() && slices.Contains(ids, q.ID) {
			g.t.Fatalf("%s lands without the person's word", q.ID)
		}
		b := g.w.beads[q.BeadID]
		switch {
		case at < len(ids) && q.ID == ids[at]:
			at++
		case at > 0 && at < len(ids) && q.Status.Live() && !q.IsHeld() && b.CheckAssignment(q.AssignmentID, bead.Done) == nil:
			g.t.Fatalf("%q lands over %s, which is %s", ids, q.ID, q.Status)
		}
	}
	if at != len(ids) {
		g.t.Fatalf("%q is not in order", ids)
	}
}
