package simulate

import (
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/incident"
)

// life is what a bead went through, on the true time of the simulation.
type life struct {
	opened, hooked, done, landed, changed time.Duration
	landings                              int
	// base is how many commits the target had when the worker began, luck decides
	// over conflicts, broken is work that breaks the tests.
	base   int
	luck   float64
	broken bool
	// worked is the worker's time of the attempt that waits to land.
	worked time.Duration
}

// tally counts what a run comes to.
type tally struct {
	Dispatch, Start, Landing waits
	Stalls                   Stalls
	found                    waits
	Mails, Nudges            map[string]int
	NudgesLost               int
	Incidents, Alerts        map[string]int
	Reopened                 int
	Faults                   map[string]int
	Attempts                 int
	useful                   time.Duration
	Wasted                   map[string]time.Duration
	Tests                    Tests
	// occupied counts the hooks that are not empty; the sums are over time.
	occupied     int
	occupiedFrom map[int]time.Duration
	occupiedFor  time.Duration
	workedFor    time.Duration
	running      map[*worker]bool
	series       []Sample
	every        time.Duration
}

// Stalls tells how well hanging workers were noticed.
type Stalls struct {
	// Injected workers hung; Found of them were noticed by the witness.
	Injected int `json:"injected"`
	Found    int `json:"found"`
	// FoundAfter is the time from the last sign of life to the incident, in seconds.
	FoundAfter Distribution `json:"found_after"`
	// FalseAlarms are incidents of workers that were only quiet, FalseAlerts those of
	// them that were escalated, FalseRestarts workers that were replaced for it.
	FalseAlarms   int `json:"false_alarms"`
	FalseAlerts   int `json:"false_alerts"`
	FalseRestarts int `json:"false_restarts"`
	Restarts      int `json:"restarts"`
}

// Tests tells what the test command was run for.
type Tests struct {
	Green int `json:"green"`
	Red   int `json:"red"`
	Tip   int `json:"bare_tip"`
	Lost  int `json:"lost"`
	// Took is the time of all of them, in hours, Wasted that of those that landed
	// nothing.
	Took   float64 `json:"hours"`
	Wasted float64 `json:"wasted_hours"`
}

func (t *tally) init() {
	t.Mails, t.Nudges, t.Incidents, t.Alerts, t.Faults = map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	t.Wasted, t.occupiedFrom, t.running = map[string]time.Duration{}, map[int]time.Duration{}, map[*worker]bool{}
	t.every = time.Minute
}

// bead takes note of a bead's move.
func (t *tally) bead(w *world, old, b *bead.Bead) {
	l := w.beads[b.ID]
	if b.Status == old.Status {
		return
	}
	switch b.Status {
	case bead.Open:
		l.opened = w.now
		if b.ReadyAt != nil {
			l.opened += max(0, b.ReadyAt.Sub(w.clock().Time))
		}
	case bead.Hooked:
		since := l.opened
		for _, dep := range b.BlockedBy {
			since = max(since, w.beads[dep].landed)
		}
		l.hooked = w.now
		t.Dispatch.add(w.now - since)
	case bead.Done:
		l.done = w.now
		l.broken = w.chance(w.o.Red)
		l.luck = w.rnd.Float64()
	case bead.Merged:
		l.landed = w.now
		t.Landing.add(w.now - l.done)
		t.useful += l.worked
		l.worked = 0
	case bead.InProgress, bead.Closed, bead.Failed, bead.Blocked, bead.Cancelled:
	}
}

func (t *tally) hook(w *world, i int, old, h *hook.Hook) {
	switch {
	case old.Status == hook.Empty && h.Status != hook.Empty:
		t.occupied++
		t.occupiedFrom[i] = w.now
	case old.Status != hook.Empty && h.Status == hook.Empty:
		t.occupied--
		t.occupiedFor += w.now - t.occupiedFrom[i]
		delete(t.occupiedFrom, i)
	}
}

// reopened tells why finished work is to be done again, or why a worker was replaced.
func (t *tally) reopened(w *world, id state.BeadID, c mayor.Charge, from bead.Status) {
	l, b := w.beads[id], w.backlog.Get(id)
	if from == bead.Done {
		why := "broke the tests"
		if c == mayor.ChargeConflict {
			why = "conflict"
		} else if !l.broken {
			why = "blamed for a flaky test"
		}
		t.Wasted[why] += l.worked
		l.worked = 0
	}
	if c == mayor.ChargeRestart {
		t.Stalls.Restarts++
		if k := w.workerOf(b.Assignee, b.AssignmentID); k != nil && !k.hangs {
			t.Stalls.FalseRestarts++
		}
	}
}

func (w *world) workerOf(id state.AgentID, a state.AssignmentID) *worker {
	i, ok := w.slots[id]
	if !ok || i >= len(w.polecats) {
		return nil
	}
	if k := w.polecats[i].worker; k != nil && k.item.AssignmentID == a {
		return k
	}
	return nil
}

// launched takes note of a worker's start.
func (t *tally) launched(w *world, k *worker) {
	l := w.beads[k.item.BeadID]
	t.Attempts++
	t.Start.add(w.now - l.hooked)
	l.base = w.commits
	t.running[k] = true
}

// ended takes note of a worker that ended: what a clean end is worth is seen when
// the work lands.
func (t *tally) ended(w *world, k *worker) {
	t.count(w, k)
	took := k.ended - k.started
	switch exit := k.exit; {
	case k.hangs:
	case exit.Lost:
	case exit.TimedOut:
		t.Wasted["timed out"] += took
	case exit.Code != 0:
		t.Wasted["attempt failed"] += took
	default:
		w.beads[k.item.BeadID].worked = took
	}
}

func (t *tally) count(w *world, k *worker) {
	if !t.running[k] {
		return
	}
	delete(t.running, k)
	if k.ended == 0 {
		k.ended = w.now
	}
	t.workedFor += k.ended - k.started
}

// thrownAway takes note of a worker whose work is lost.
func (t *tally) thrownAway(w *world, k *worker, why string) {
	t.count(w, k)
	if k.counted {
		return
	}
	k.counted = true
	if k.exit != nil && !k.exit.Lost && !k.hangs { // it had come to its own end, which is judged
		if why == "taken away" {
			t.Wasted[why] += w.beads[k.item.BeadID].worked
			w.beads[k.item.BeadID].worked = 0
		}
		return
	}
	t.Wasted[why] += k.ended - k.started
}

func (t *tally) tested(took time.Duration, run *testRun) {
	t.Tests.Took += took.Hours()
	switch {
	case run.tip:
		t.Tests.Tip++
		t.Tests.Wasted += took.Hours()
	case run.result.Failure != "":
		t.Tests.Red++
		t.Tests.Wasted += took.Hours()
	default:
		t.Tests.Green++
	}
}

func (t *tally) testLost(took time.Duration) {
	t.Tests.Lost++
	t.Tests.Took += took.Hours()
	t.Tests.Wasted += took.Hours()
}

// incident takes note of an incident that opens.
func (t *tally) incident(w *world, i *incident.Incident) {
	t.Incidents[string(i.Kind)]++
	if i.Kind != incident.Stalled && i.Kind != incident.Restarts {
		return
	}
	k := w.workerOf(i.AgentID, i.AssignmentID)
	switch {
	case k == nil || k.exit != nil:
	case k.hangs:
		t.Stalls.Found++
		t.found.add(w.now - k.hungAt)
	default:
		t.Stalls.FalseAlarms++
	}
}

func (t *tally) alerted(w *world, i *incident.Incident) {
	t.Alerts[string(i.Kind)+" "+string(i.Severity)]++
	if i.Kind != incident.Stalled {
		return
	}
	if k := w.workerOf(i.AgentID, i.AssignmentID); k != nil && !k.hangs && k.exit == nil {
		t.Stalls.FalseAlerts++
	}
}

// Sample is the rig at an instant.
type Sample struct {
	// Hour is the virtual time since the beginning.
	Hour float64 `json:"hour"`
	// Ready beads could be slung, Out hang on hooks, Queue wait to land, Landed have,
	// Blocked wait for a person.
	Ready   int `json:"ready"`
	Out     int `json:"out"`
	Queue   int `json:"queue"`
	Landed  int `json:"landed"`
	Blocked int `json:"blocked"`
}

// mostSamples bounds the series: past it every second one is dropped, and the time
// between two doubled.
const mostSamples = 240

func (w *world) sample() {
	t := &w.tally
	t.series = append(t.series, Sample{Hour: w.now.Hours(), Ready: w.backlog.ReadyCount(), Out: w.backlog.OutCount(), Queue: w.live.Len(),
		Landed: w.backlog.Count(bead.Merged), Blocked: w.backlog.Count(bead.Blocked)})
	if len(t.series) > mostSamples {
		kept := t.series[:0]
		for i := 0; i < len(t.series); i += 2 {
			kept = append(kept, t.series[i])
		}
		t.series, t.every = slices.Clip(kept), 2*t.every
	}
	w.after(t.every, w.sample)
}
