package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/environment"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Waiting is returned by Up when the rig has done all it can, but beads wait
// for a person.
type Waiting struct {
	// Beads holds one line for each reason: the beads that wait for it, and the reason.
	Beads []string
}

func (w *Waiting) Error() string {
	const most = 3
	text := "the rig is idle, but waits for you: " + strings.Join(w.Beads[:min(most, len(w.Beads))], "; ")
	if more := len(w.Beads) - most; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// stillness is how long nothing may have happened in a rig that only waits for a
// person: the rig may retry by itself, and a worker that asked and has ended may
// still be retired for the way it ended.
const stillness = 3 * time.Second

// lookPacing is the least time between two looks at whether the rig is idle.
const lookPacing = 50 * time.Millisecond

// awaitIdle returns errIdle or *Waiting when nothing is left to do.
func (p *Process) awaitIdle(ctx context.Context) error {
	var changed <-chan struct{}
	if p.Watcher != nil {
		// Without notification the tick below finds out.
		changed, _ = p.Watcher.Subscribe(bead.Dir, hook.Dir, mergequeue.Dir, retire.Dir)
	}
	var stuckSince time.Time
	began := p.Rig.Clock.Now()
	for still := true; ; {
		left, err := countUnlessBusy(p.Rig, began, still)
		if still && err == nil {
			err = left.addTarget(ctx, p.Rig)
		}
		switch {
		case err != nil:
			p.Say("warning: %v", err)
		case left.idle() && len(left.Waits) == 0:
			return errIdle
		case left.idle() && len(left.asks) == 0:
			return &Waiting{left.Waits}
		case !left.stuck() && !left.idle():
			stuckSince = time.Time{}
		case stuckSince.IsZero():
			stuckSince = p.Rig.Clock()
		case p.Rig.Clock().Sub(stuckSince) > stillness:
			return &Waiting{left.Waits}
		}
		timer := time.NewTimer(min(p.Rig.Def.Rig.Tick, time.Second))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-changed:
			still = false
			pace(ctx, time.Now(), lookPacing) //nolint:forbidigo // paces real work, decides nothing
		case <-timer.C:
			still = true
		}
		timer.Stop()
	}
}

// remaining is the work that is left in a rig.
type remaining struct {
	// Busy counts what will continue by itself.
	Busy int
	// Waits lists what waits for a person, each with the reason.
	Waits []string
	// Held is true when the head of the merge queue waits for a person.
	Held bool
	// asks are the beads whose workers wait for an answer of the person.
	asks map[state.BeadID]string
	// asking are these workers' polecats.
	asking []state.AgentID
	// pauses are those that only the person can end.
	pauses []pause.Pause
	// nobodyFree is true while every polecat that runs is one of them.
	nobodyFree bool
}

// paused returns the pause for which a bead waits until a person acts, as text, or "".
func (l *remaining) paused(r *rig.Rig, b *bead.Bead) string {
	if len(l.pauses) == 0 {
		return ""
	}
	if p := pause.Holding(l.pauses, policy.Client(r.Def, b.Worker), b); p != nil {
		return p.String()
	}
	return ""
}

// idle reports whether nothing more will happen by itself.
func (l remaining) idle() bool { return l.Busy == 0 }

// stuck reports whether everything that is left waits behind the head of the merge queue.
func (l remaining) stuck() bool { return l.Busy > 0 && l.Held }

// addTarget adds a lost target branch to what waits for a person: nothing continues
// until it is restored.
func (l *remaining) addTarget(ctx context.Context, r *rig.Rig) error {
	err := environment.TargetLost(ctx, r)
	if !errors.Is(err, state.ErrCorrupt) {
		return err
	}
	l.Held = true
	l.Waits = []string{err.Error()}
	lost := environment.Target(ctx, r)
	return lost.Pause(ctx, r)
}

// countUnlessBusy is countRemaining for a rig that may be busy. While changes arrive (still is
// false), a hook in use or a waiting merge request is enough to call it busy; whether a worker
// waits for an answer is only looked up when nothing changes.
func countUnlessBusy(r *rig.Rig, began state.Time, still bool) (remaining, error) {
	if !still {
		hooks, _, err := r.Hooks.All()
		used := func(h hook.Hook) bool { return h.Status != hook.Empty }
		if err != nil || slices.ContainsFunc(hooks, used) {
			return remaining{Busy: 1}, err
		}
		if queue, _, err := r.Queue.Unfinished(); err != nil || len(queue) > 0 {
			return remaining{Busy: 1}, err
		}
	}
	left, err := countHooks(r, began)
	if err == nil && left.idle() {
		left, err = countRemaining(r, began)
	}
	return left, err
}

// countHooks counts the hooks in use, without those whose worker waits for an answer, or for a pause
// that has met its fault again since the rig began.
func countHooks(r *rig.Rig, began state.Time) (remaining, error) {
	var left remaining
	pauses, err := r.Pauses.InForce()
	if err != nil {
		return left, err
	}
	left.pauses = slices.DeleteFunc(pauses, func(p pause.Pause) bool { return !p.NeedsPerson(began) })
	hooks, bad, err := r.Hooks.All()
	for i := range hooks {
		h := &hooks[i]
		if h.Status == hook.Empty {
			continue
		}
		if b, err := r.Beads.Get(string(h.WorkItem.BeadID)); err == nil {
			if why := left.paused(r, &b); why != "" {
				left.asksFor(b.ID, why)
				left.asking = append(left.asking, h.AgentID)
				continue
			}
		}
		if heldBySession(r, h) {
			left.asksFor(h.WorkItem.BeadID, fmt.Sprintf("held by your session %s", h.AgentID))
			continue
		}
		switch open, asksErr := actor.AwaitedAnswers(r, h); {
		case asksErr == nil && len(open) > 0:
			left.asksFor(h.WorkItem.BeadID, fmt.Sprintf("%s asks: chipset inbox", h.AgentID))
			left.asking = append(left.asking, h.AgentID)
		default:
			left.Busy++
		}
	}
	left.unreadable(bad)
	return left, err
}

// heldBySession reports whether the person's own session is working on what is on the hook, and has not reported an end:
// nothing continues it by itself.
func heldBySession(r *rig.Rig, h *hook.Hook) bool {
	a, err := r.Agents.Get(string(h.AgentID))
	if err != nil || !a.IsSession() || !carry.IsGiven(r, h) {
		return false
	}
	_, err = r.Retire.Get(string(h.Assignment()))
	return errors.Is(err, state.ErrNotFound)
}

func (l *remaining) asksFor(id state.BeadID, what string) {
	if l.asks == nil {
		l.asks = map[state.BeadID]string{}
	}
	l.asks[id] = what
}

// unreadable adds unreadable files to what waits for a person.
func (l *remaining) unreadable(bad []error) {
	for _, err := range bad {
		l.Waits = append(l.Waits, "unreadable: "+err.Error())
	}
}

// countRemaining counts the work that is left.
func countRemaining(r *rig.Rig, began state.Time) (remaining, error) {
	left, err := countHooks(r, began)
	if err != nil {
		return left, err
	}
	active := left.Busy
	beads, bad, err := r.Beads.All()
	if err != nil {
		return left, err
	}
	left.unreadable(bad)
	queue, bad, err := r.Queue.Queue()
	if err != nil {
		return left, err
	}
	left.unreadable(bad)
	records, err := unfinished(r)
	if err != nil {
		return left, err
	}
	convoys, err := behind(r, beads)
	if err != nil {
		return left, err
	}
	left.Busy += records + convoys
	if left.nobodyFree, err = left.allAsk(r); err != nil {
		return left, err
	}
	left.countBeads(r, beads, queue, r.Def.Merge.OnConflict == definition.OnConflictBlock)
	left.countQueue(queue, bead.Index(beads), r.Def.Merge.OnConflict == definition.OnConflictBlock)
	left.Held = left.Held && active == 0
	return left, nil
}

// allAsk reports whether nobody is left to do work, because all running polecats wait for
// an answer of the person.
func (l *remaining) allAsk(r *rig.Rig) (bool, error) {
	if len(l.asking) == 0 {
		return false, nil
	}
	agents, _, err := r.Agents.All()
	return err == nil && !slices.ContainsFunc(agents, func(a agent.Agent) bool {
		_, alive := r.Alive(a.ID)
		return a.Role == agent.Polecat && alive && !slices.Contains(l.asking, a.ID)
	}), err
}

// unfinished counts dispatches and retirements that are not complete.
func unfinished(r *rig.Rig) (int, error) {
	dispatches, _, err := r.Dispatch.Select(func(d *dispatch.Record) bool { return d.Stage != dispatch.Confirmed })
	if err != nil {
		return 0, err
	}
	ends, _, err := r.Retire.Select(func(rec *retire.Record) bool { return !rec.Stage.Final() })
	return len(dispatches) + len(ends), err
}

// behind counts landed convoys whose completion the mayor has not yet recorded.
func behind(r *rig.Rig, beads []bead.Bead) (int, error) {
	convoys, _, err := r.Convoys.All()
	if err != nil {
		return 0, err
	}
	byID := bead.Index(beads)
	late := 0
	for _, c := range convoys {
		if n := len(c.BeadIDs); c.CompletedAt == nil && n > 0 && c.Landed(byID) == n {
			late++
		}
	}
	return late, nil
}

func (l *remaining) countBeads(r *rig.Rig, beads []bead.Bead, queue []mergequeue.Request, blockOnConflict bool) {
	byID := bead.Index(beads)
	held := map[state.BeadID]string{} // beads that wait for a person, directly or behind another
	for i := range beads {
		b := &beads[i]
		var mr *mergequeue.Request
		if b.Status == bead.Done {
			mr = mergequeue.Find(queue, b.AssignmentID)
		}
		switch {
		case b.Status == bead.Blocked:
			held[b.ID] = b.CloseReason
		case l.asks[b.ID] != "" && !b.Status.Finished():
			held[b.ID] = l.asks[b.ID]
		case b.Status == bead.Open && l.paused(r, b) != "":
			held[b.ID] = l.paused(r, b)
		case b.Status == bead.Open && l.nobodyFree:
			held[b.ID] = "all polecats wait for you"
		case b.Status == bead.Done && mr == nil:
			// The request follows at once; until then its retire record is counted.
			held[b.ID] = "done, but without a merge request"
		case mr != nil && mr.IsHeld():
			held[b.ID] = "it changes " + mr.Held.Summary() + ", which wants your word"
		case b.Status == bead.Done && blockOnConflict && mr != nil && mr.Status == mergequeue.Conflicted:
			held[b.ID] = "its merge request could not land: " + mr.Reason
		}
	}
	for again := true; again; {
		again = false
		for i := range beads {
			b := &beads[i]
			if b.Status != bead.Open || held[b.ID] != "" {
				continue
			}
			for _, dep := range b.BlockedBy {
				d := byID[dep]
				if _, waits := held[dep]; waits || d == nil || d.Status == bead.Cancelled {
					held[b.ID] = fmt.Sprintf("waits for %s", dep)
					again = true
					break
				}
			}
		}
	}
	var reasons []string // in the order of their first beads
	waiting := map[string][]state.BeadID{}
	for i := range beads {
		b := &beads[i]
		if why, waits := held[b.ID]; waits {
			line, _, _ := strings.Cut(why, "\n")
			if waiting[line] == nil {
				reasons = append(reasons, line)
			}
			waiting[line] = append(waiting[line], b.ID)
			continue
		}
		if !b.Status.Finished() {
			l.Busy++
		}
	}
	for _, why := range reasons {
		names := wording.JoinFirst(waiting[why], maxNamed)
		if n := len(waiting[why]); n > maxNamed {
			names = fmt.Sprintf("%d beads: %s", n, names)
		}
		l.Waits = append(l.Waits, fmt.Sprintf("%s (%s)", names, why))
	}
}

// maxNamed is how many beads that wait for the same reason are named.
const maxNamed = 5

// mayLand reports whether a request can land in its turn.
func mayLand(r mergequeue.Request) bool {
	return (r.Status == mergequeue.Pending || r.Status == mergequeue.Merging) && r.Waiting == "" && !r.IsHeld()
}

func (l *remaining) countQueue(queue []mergequeue.Request, byID map[state.BeadID]*bead.Bead, blockOnConflict bool) {
	head := true
	for i := range queue {
		r := &queue[i]
		if r.Unannounced() {
			l.Busy++ // its mail is not yet sent
		}
		switch r.Status {
		case mergequeue.Merging, mergequeue.Pending:
			if r.Status == mergequeue.Merging {
				l.Busy++
			}
			if r.IsHeld() {
				continue // countBeads names it, and others pass it
			}
			if r.InTheWay && slices.ContainsFunc(queue[i+1:], mayLand) {
				continue // others pass it
			}
			if head && r.Waiting != "" {
				l.Held = true
				why, _, _ := strings.Cut(r.Waiting, "\n")
				l.Waits = append(l.Waits, fmt.Sprintf("%s (%s)", r.BeadID, why))
			}
			head = false
		case mergequeue.Conflicted:
			if b := byID[r.BeadID]; head && blockOnConflict && b != nil && b.CheckAssignment(r.AssignmentID, bead.Done) == nil {
				l.Held = true // countBeads names it
				head = false
			}
		case mergequeue.Merged, mergequeue.Superseded, mergequeue.Dropped:
		}
	}
}
