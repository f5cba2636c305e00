// Package mayor decides how work is coordinated. The mayor dispatches, reworks,
// restarts and asks a person; it never edits code, runs tests, merges, or
// measures health itself.
package mayor

import (
	"fmt"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/wording"
)

// State is what the mayor is doing. Everything it needs is on disk, so the
// state is only a name for what the facts show.
type State string

const (
	// Idle: nothing is open. Ends when a bead is added or reopened.
	Idle State = "idle"
	// Dispatching: there is ready work and a free polecat. Ends when either runs out.
	Dispatching State = "dispatching"
	// Monitoring: all ready work is out. Ends when work becomes ready or all has landed.
	Monitoring State = "monitoring"
	// Saturated: ready work, but no free polecat, or max_parallel is reached.
	Saturated State = "saturated"
	// Paused: there is ready work, and what it needs is paused.
	Paused State = "paused"
	// Closing: asked to end; no more is dispatched.
	Closing State = "closing"
)

// decision is one tick's work in progress: what was decided for a bead or a
// hook once is not decided again.
type decision struct {
	Facts
	touched map[state.BeadID]bool
	// taken are the hooks that an unfinished dispatch is about to use, cleared those
	// that this decision clears.
	taken, cleared map[state.AgentID]bool
	// hanging counts the beads that hang where they say, beside those of them that sessions of a person hold.
	hanging, beside int
	// gates are the pauses in force, clients the scopes of workers that were asked for.
	gates   []*gate
	clients map[string]pause.Scope
	groups  []roles.Group
}

// do adds a group of actions.
func (d *decision) do(actions ...roles.Action) { d.groups = append(d.groups, actions) }

// Decide is the mayor's whole behaviour.
func Decide(s State, f Facts) roles.Decision[State] {
	d := &decision{Facts: f, touched: map[state.BeadID]bool{}, taken: map[state.AgentID]bool{}, cleared: map[state.AgentID]bool{}, clients: map[string]pause.Scope{}}
	d.readGates()
	closing := s == Closing
	for _, r := range f.Unconfirmed { // first: what was begun must not be begun twice
		d.do(HealDispatch{r.BeadID})
		d.touched[r.BeadID], d.taken[r.AgentID] = true, true
	}
	closing = d.mail() || closing
	d.nudges()
	d.retiredAgents()
	d.hooks()
	d.lost()
	d.failures()
	d.queue()
	d.batch()
	next := Closing
	if !closing {
		d.waiting()
		next = d.dispatch()
	}
	d.convoys()
	return roles.Decision[State]{Groups: d.groups, Next: next}
}

func (d *decision) reopen(b *bead.Bead, note string, c Charge, readyAt state.Time, mr state.MergeID) roles.Action {
	d.touched[b.ID] = true
	return Reopen{Bead: b.ID, Assignment: b.AssignmentID, From: b.Status, Note: note, Charge: c, ReadyAt: readyAt, MR: mr}
}

func (d *decision) block(b *bead.Bead, c Charge, reason, causes string) Block {
	d.touched[b.ID] = true
	subject, body := plea(charged(*b, c), reason, causes)
	return Block{Bead: b.ID, Assignment: b.AssignmentID, From: b.Status, Reason: reason, Charge: c, Subject: subject, Body: body}
}

// retiredAgents takes work away from agents that the definition no longer
// names.
func (d *decision) retiredAgents() {
	for i := range d.Polecats {
		p := &d.Polecats[i]
		if !p.Retired || p.Live || p.Corrupt || p.Hook.Status != hook.Pending && p.Hook.Status != hook.Active {
			continue
		}
		if rec, retiring := d.Retired[p.Hook.Assignment()]; retiring && !rec.Stage.Final() {
			if id := p.Hook.WorkItem.BeadID; !d.touched[id] { // nobody else will: it is not started any more
				d.do(d.finishFor(p.ID, id))
			}
			continue
		}
		b := d.Backlog.Get(p.Hook.WorkItem.BeadID)
		if b != nil && b.CheckAssignment(p.Hook.Assignment(), bead.Hooked, bead.InProgress) == nil && !d.touched[b.ID] {
			d.do(d.reopen(b, string(p.ID)+" was taken out of the rig", ChargeNothing, state.Time{}, ""))
		}
	}
}

// hooks clears what is over: a completed attempt after verification, and a
// hook that names an assignment its bead no longer has.
func (d *decision) hooks() {
	for i := range d.Polecats {
		p := &d.Polecats[i]
		if p.Corrupt || p.Hook.Status == hook.Empty {
			continue
		}
		if p.Hook.Bare() {
			d.takeOver(p)
			continue
		}
		a := p.Hook.Assignment()
		if p.Hook.Status == hook.Completed {
			rec, ok := d.Retired[a]
			verify := ok && rec.Outcome == retire.Done && !rec.Empty && rec.Stage != retire.Stale
			d.do(ClearHook{Agent: p.ID, Assignment: a, Verify: verify})
			d.cleared[p.ID] = true
			continue
		}
		b := d.Backlog.Get(p.Hook.WorkItem.BeadID)
		if b != nil && b.Assignee == p.ID && b.AssignmentID == a && (b.Status == bead.Hooked || b.Status == bead.InProgress) {
			d.hanging++
			if p.Session {
				d.beside++
			}
			continue
		}
		if d.touched[p.Hook.WorkItem.BeadID] {
			continue
		}
		if b == nil || b.AssignmentID != a || b.Status == bead.Cancelled || b.Status == bead.Blocked {
			if rec, retiring := d.Retired[a]; retiring && !rec.Stage.Final() && p.Live {
				continue // the polecat is in its done pipeline and finds out itself
			}
			d.do(ClearHook{Agent: p.ID, Assignment: a})
		}
	}
}

// takeOver makes an assignment of what another program has hung on a hook.
func (d *decision) takeOver(p *Polecat) {
	w := p.Hook.WorkItem
	if d.touched[w.BeadID] {
		return
	}
	d.do(TakeOver{Agent: p.ID, Bead: w.BeadID, Title: w.Title})
	d.touched[w.BeadID], d.taken[p.ID] = true, true
}

// lost finds beads that are assigned, but are on no hook: somebody cleared or
// completed it by hand. Nobody would ever finish them.
func (d *decision) lost() {
	if d.hanging == d.Backlog.OutCount() {
		return
	}
	polecats := make(map[state.AgentID]*Polecat, len(d.Polecats))
	for i := range d.Polecats {
		polecats[d.Polecats[i].ID] = &d.Polecats[i]
	}
	for b := range d.Backlog.Out() {
		p := polecats[b.Assignee]
		if d.touched[b.ID] || p == nil || p.Corrupt || d.hangs(p) == b.AssignmentID {
			continue
		}
		if rec, retiring := d.Retired[b.AssignmentID]; retiring && !rec.Stage.Final() && p.Live {
			continue // the done pipeline has it, with or without the hook
		}
		d.do(d.takeBack(b))
	}
}

// Beads that are taken back again and again are slung later and later, and then not
// any more: each assignment costs tokens, and is charged with nothing.
const (
	// maxUnended is how many assignments in a row may be over without an end.
	maxUnended = 6
	// firstUnended and mostUnended bound the time to the next one, from the second on.
	firstUnended, mostUnended = time.Second, time.Minute
)

// takeBack makes a lost bead open again, or lets it wait for a person when that
// happened too often.
func (d *decision) takeBack(b *bead.Bead) roles.Action {
	if b.Unended+1 >= maxUnended {
		block := d.block(b, ChargeNothing, fmt.Sprintf("its hook was completed or cleared by hand %d times in a row, and nobody said how the work ended", maxUnended),
			"Likely causes: the worker runs chipset hook complete where chipset done is meant, or another program changes the hooks.")
		block.Unhooked = true
		return block
	}
	d.touched[b.ID] = true
	take := TakeBack{Bead: b.ID, Assignment: b.AssignmentID, Agent: b.Assignee}
	if b.Unended > 0 {
		take.ReadyAt = state.At(d.Now.Add(roles.Backoff(firstUnended, mostUnended, b.Unended)))
	}
	return take
}

// hangs is the assignment on a hook, once this decision is carried out.
func (d *decision) hangs(p *Polecat) state.AssignmentID {
	if d.cleared[p.ID] {
		return ""
	}
	return p.Hook.Assignment()
}

// finishing reports whether a live polecat still walks through the done pipeline
// of the bead's assignment; its completed hook is the next news.
func (d *decision) finishing(b *bead.Bead) bool {
	rec, ok := d.Retired[b.AssignmentID]
	return ok && !rec.Stage.Final() && slices.ContainsFunc(d.Polecats, func(p Polecat) bool {
		return p.ID == b.Assignee && p.Live && p.Hook.Status == hook.Active && p.Hook.Assignment() == b.AssignmentID
	})
}

// failures decides what comes after an attempt that is over.
func (d *decision) failures() {
	for b := range d.Backlog.Failed() {
		if d.touched[b.ID] || d.finishing(b) {
			continue
		}
		reason := b.CloseReason
		rec, ok := d.Retired[b.AssignmentID]
		if ok && rec.Reason != "" {
			reason = rec.Reason
		}
		switch {
		case ok && rec.Outcome == retire.Block:
			d.do(d.block(b, ChargeNothing, reason, "The worker asked for a person."))
		case ok && rec.Lost:
			d.do(d.reopen(b, reason, ChargeNothing, state.Time{}, ""))
		case ok && d.excused(b, rec.Fault):
			d.do(d.excuse(b, reason, rec.Fault.Class))
		case b.Attempts+1 >= d.Policy.MaxAttempts:
			d.do(d.block(b, ChargeAttempt, fmt.Sprintf("attempt %d of %d failed: %s", b.Attempts+1, d.Policy.MaxAttempts, reason),
				"Likely causes: the task is unclear, its acceptance can't be met, or the worker lacks a permission or a tool."))
		default:
			d.do(d.reopen(b, fmt.Sprintf("attempt %d failed: %s", b.Attempts+1, reason), ChargeAttempt, state.Time{}, ""))
		}
	}
}

// excuse begins a bead again that is charged with nothing. While nobody knows whose
// fault it was, others go first.
func (d *decision) excuse(b *bead.Bead, reason string, c fault.Class) roles.Action {
	if c == fault.Unknown {
		return d.reopen(b, "ended early, and nothing says why: "+reason, ChargeNothing, state.At(d.Now.Add(suspicionCooldown)), "")
	}
	return d.reopen(b, "", ChargeNothing, state.Time{}, "")
}

// suspicionCooldown is how long a bead lets others go first whose failure nothing
// explains.
const suspicionCooldown = 2 * time.Second

// queue reworks what could not land. The bead is reopened before its request
// is superseded: a crash between the two leaves a request that the next tick
// recognises as over.
func (d *decision) queue() {
	for i := range d.Queue {
		r := &d.Queue[i]
		if r.Status != mergequeue.Conflicted {
			continue
		}
		b := d.Backlog.Get(r.BeadID)
		switch {
		case b == nil || d.touched[b.ID] || d.finishing(b):
		case b.CheckAssignment(r.AssignmentID, bead.Done) == nil:
			if d.Policy.ReworkConflicts {
				d.do(d.rework(b, r))
			}
		case b.Status != bead.Blocked || b.AssignmentID != r.AssignmentID:
			d.do(Supersede{MR: r.ID, Bead: b.ID})
		}
	}
}

func (d *decision) rework(b *bead.Bead, r *mergequeue.Request) roles.Action {
	if r.Failure == mergequeue.FailConflict {
		if b.Conflicts >= d.Policy.MaxConflicts {
			return d.block(b, ChargeConflict, fmt.Sprintf("in conflict again after %s: %s", wording.Count(b.Conflicts, "rework"), r.Reason),
				"Likely cause: several beads change the same lines; make one wait for the other.")
		}
		return d.reopen(b, "merge conflict on the new tip: "+r.Reason, ChargeConflict, state.Time{}, r.ID)
	}
	if b.Attempts+1 >= d.Policy.MaxAttempts {
		return d.block(b, ChargeAttempt, fmt.Sprintf("attempt %d of %d was not merged (%s): %s", b.Attempts+1, d.Policy.MaxAttempts, r.Failure, r.Reason),
			"Likely causes: the work breaks the tests, or the test command does not run in a clean checkout.")
	}
	return d.reopen(b, fmt.Sprintf("attempt %d was not merged (%s): %s", b.Attempts+1, r.Failure, r.Reason), ChargeAttempt, state.Time{}, r.ID)
}

// dispatch slings ready work to free polecats.
func (d *decision) dispatch() State {
	out, open := d.Backlog.OutCount(), d.Backlog.Unfinished() > 0
	room, free := d.Policy.MaxParallel-out+d.beside, []state.AgentID(nil)
	if !d.Policy.AutoClaim {
		free = d.freePolecats()
		room = min(room, len(free))
	}
	slung, waiting, held := 0, false, false
	for _, tried := range d.passes() {
		for b := range d.Backlog.Ready(d.Now) {
			if d.touched[b.ID] || d.failedAt(b) != tried {
				continue
			}
			if waiting = slung >= room || d.Policy.AutoClaim && len(d.gates) == 0; waiting {
				break
			}
			admitted, ok := d.admit(b)
			switch {
			case !ok:
				held = true
			case !d.Policy.AutoClaim:
				d.do(append(admitted, Sling{Bead: b.ID, Agent: free[slung]})...)
				slung++
			case len(admitted) > 0: // a polecat claims it
				d.do(admitted...)
			}
		}
	}
	if !waiting {
		d.lift()
	}
	return named(open, slung > 0 || d.Policy.AutoClaim && waiting && room > 0, waiting, held)
}

func named(open, dispatching, waiting, held bool) State {
	switch {
	case dispatching:
		return Dispatching
	case held:
		return Paused
	case waiting:
		return Saturated
	case open:
		return Monitoring
	}
	return Idle
}

// freePolecats lists those with a process, the stalled ones last. When no
// polecat at all has one, the work is hung on hooks anyway and found at the
// next start; but not before those that start just now had time to be seen.
func (d *decision) freePolecats() []state.AgentID {
	anyLive := d.AnyLive()
	if !anyLive && d.Starting {
		return nil
	}
	var free, stalled []state.AgentID
	for i := range d.Polecats {
		p := &d.Polecats[i]
		switch {
		case !p.free() && !d.cleared[p.ID] || p.Corrupt || p.Retired || p.Session || d.taken[p.ID] || !p.Live && anyLive:
		case p.Stalled:
			stalled = append(stalled, p.ID)
		default:
			free = append(free, p.ID)
		}
	}
	return append(free, stalled...)
}

// maxConvoy bounds a convoy: its file names every bead, and has a largest size.
const maxConvoy = 1000

// batch makes a convoy of what became ready at once, if it is more than the
// threshold and not in one yet. A bead that a convoy lists is in it, also when a
// crash came before the bead could say so.
func (d *decision) batch() {
	if d.Policy.BatchThreshold <= 0 {
		return
	}
	var loose []state.BeadID
	for b := range d.Backlog.Loose(d.Now) {
		if !d.touched[b.ID] {
			loose = append(loose, b.ID)
		}
		if len(loose) == maxConvoy {
			break
		}
	}
	if len(loose) > d.Policy.BatchThreshold {
		d.do(MakeConvoy{Beads: loose})
	}
}

// convoys keeps progress: landed of all.
func (d *decision) convoys() {
	for c := range d.Backlog.Convoys() {
		progress := float64(c.Landed) / float64(len(c.BeadIDs))
		whole := c.Landed == len(c.BeadIDs)
		if progress != c.Progress || whole {
			d.do(UpdateConvoy{ID: c.ID, Progress: progress, Complete: whole})
		}
	}
}
