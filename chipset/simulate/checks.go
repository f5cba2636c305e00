package simulate

import (
	"fmt"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// Violation is something that must not happen and did. Seed and options play it
// again.
type Violation struct {
	Seed uint64
	// At is the virtual time since the beginning.
	At   time.Duration
	What string
}

func (v *Violation) Error() string {
	return fmt.Sprintf("violated with seed %d after %s of virtual time (%s): %s", v.Seed, v.At, epoch().Add(v.At).Format(time.RFC3339), v.What)
}

// judge holds a run against the rules:
//
//	each change   legal by the rules of the history of its kind (audit verify's)
//	beads         land at most once, in the order of the queue, never more than
//	              max_parallel out at once
//	attempts      one worker a polecat, one end each, whose stages only advance;
//	              none is charged that an outage ended
//	witness       one open incident for each cause, one alert for each severity of it
//	progress      what is on a hook, is ready, or waits in the queue moves on
//	end           every bead is landed or waits for a person, the target holds each
//	              landed one once, hooks and queue are empty
type judge struct {
	alerts  map[string]int
	lastSeq int64
	// moved is when anything last landed or left the queue, slung when a bead was.
	moved, slung time.Duration
	// changed is when any bead was last changed.
	changed time.Duration
}

func (j *judge) init() { j.alerts = map[string]int{} }

func (j *judge) bead(w *world, old, b *bead.Bead) {
	if err := bead.CheckChange(old, b); err != nil {
		w.fail("bead %s: %v", b.ID, err)
	}
	if l := w.def.GUPP.Limits; b.Attempts > l.MaxAttempts || b.Conflicts > l.MaxConflicts+1 || b.Restarts > l.MaxRestarts {
		w.fail("bead %s is charged with %s", b.ID, b.FailureCounts())
	}
	if b.Attempts > old.Attempts && w.ended[old.AssignmentID] {
		w.fail("bead %s is charged for an outage of the service", b.ID)
	}
	w.beads[b.ID].changed, j.changed = w.now, w.now
	if b.Status == bead.Hooked && old.Status != bead.Hooked {
		j.slung = w.now
		if most, out := w.def.Dispatch.MaxParallel, w.backlog.OutCount()+1; out > most {
			w.fail("%d beads are out, and max_parallel is %d", out, most)
		}
	}
}

func (j *judge) hook(w *world, old, h *hook.Hook) {
	if h.Status == old.Status && h.WorkItem == old.WorkItem && h.Status == hook.Active && h.Gen == old.Gen+1 {
		return // a touch
	}
	if err := hook.CheckChange(old, h); err != nil {
		w.fail("hook %s: %v", h.AgentID, err)
	}
}

func (j *judge) request(w *world, old, r *mergequeue.Request) {
	if old != nil && old.Status == r.Status && old.Attempts == r.Attempts && old.MergedSHA == r.MergedSHA && old.Seq == r.Seq {
		return
	}
	j.moved = w.now
	if err := mergequeue.CheckChange(old, r); err != nil {
		w.fail("merge request %s: %v", r.ID, err)
	}
}

func (j *judge) incident(w *world, old, i *incident.Incident) {
	if err := incident.CheckChange(old, i); err != nil {
		w.fail("incident %s: %v", i.ID, err)
	}
}

func (j *judge) record(w *world, old, rec retire.Record, known bool) {
	if known && (rec.Stage.Rank() < old.Stage.Rank() || rec.Outcome != old.Outcome || rec.BeadID != old.BeadID) {
		w.fail("the end of %s changed from %s (%s) to %s (%s)", rec.AssignmentID, old.Outcome, old.Stage, rec.Outcome, rec.Stage)
	}
}

func (j *judge) lands(w *world, q *mergequeue.Request) {
	l := w.beads[q.BeadID]
	if l.landings++; l.landings > 1 {
		w.fail("bead %s landed %d times", q.BeadID, l.landings)
	}
	if q.Seq <= j.lastSeq {
		w.fail("%s (%d) landed after %d", q.ID, q.Seq, j.lastSeq)
	}
	j.lastSeq = q.Seq
}

func (j *judge) alerted(w *world, i *incident.Incident) {
	key := string(i.ID) + " " + string(i.Severity)
	if j.alerts[key]++; j.alerts[key] > 1 {
		w.fail("incident %s was reported %d times as %s", i.ID, j.alerts[key], i.Severity)
	}
}

// patience is how long something that should move may stand still: longer than
// all faults of the usual kinds together.
const patience = 7 * day

// inspect looks at the rig as a whole, once a day.
func (j *judge) inspect(w *world) {
	if w.backlog.Len() != w.arrived {
		w.fail("%d beads arrived, and %d are there", w.arrived, w.backlog.Len())
	}
	for b := range w.backlog.Out() {
		if still := w.now - w.beads[b.ID].changed; still > patience {
			w.fail("bead %s is %s on %s for %s", b.ID, b.Status, b.Assignee, still)
		}
	}
	for b := range w.backlog.Failed() {
		if still := w.now - w.beads[b.ID].changed; still > patience {
			w.fail("bead %s failed, and nobody decides for %s", b.ID, still)
		}
	}
	if w.arrived == w.o.Beads && w.now-j.changed > patience+10*w.o.Person && !w.over() {
		w.fail("nothing has happened for %s, and the rig does not come to its end: %s", w.now-j.changed, w.backlog)
	}
	if w.backlog.Count(bead.Done) > 0 && w.now-j.moved > patience {
		w.fail("nothing in the merge queue moved for %s", w.now-j.moved)
	}
	if out := w.backlog.OutCount(); out == 0 && w.backlog.ReadyCount() > 0 && w.now-j.slung > patience {
		w.fail("%d beads are ready, and none was slung for %s", w.backlog.ReadyCount(), w.now-j.slung)
	}
}

// final looks at a run that has come to its end by itself.
func (j *judge) final(w *world) {
	landed := 0
	for _, b := range w.inOrder() {
		l := w.beads[b.ID]
		switch b.Status {
		case bead.Merged:
			landed++
			if l.landings != 1 {
				w.fail("bead %s is merged, but landed %d times", b.ID, l.landings)
			}
		case bead.Blocked, bead.Cancelled, bead.Closed:
		case bead.Open:
			if len(w.backlog.Blockers(b)) == 0 {
				w.fail("the rig ended, but bead %s is ready", b.ID)
			}
		case bead.Hooked, bead.InProgress, bead.Done, bead.Failed:
			w.fail("the rig ended, but bead %s is %s", b.ID, b.Status)
		}
	}
	if own := w.commits - w.tally.Faults["pushes"]; own != landed {
		w.fail("%d beads are merged, but %d landed", landed, own)
	}
	for i := range w.views {
		if h := &w.views[i].Hook; h.Status != hook.Empty {
			w.fail("the rig ended, but the hook of %s is %s with %s", h.AgentID, h.Status, h.WorkItem.BeadID)
		}
	}
}

// inOrder are all beads in the order of arrival.
func (w *world) inOrder() []*bead.Bead {
	all := make([]*bead.Bead, 0, w.backlog.Len())
	for n := range w.arrived {
		if b := w.backlog.Get(beadName(n)); b != nil {
			all = append(all, b)
		}
	}
	return all
}

func beadName(n int) state.BeadID { return state.BeadID(fmt.Sprintf("sim-%07d", n)) }
