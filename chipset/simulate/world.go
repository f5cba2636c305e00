package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/btree"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles/backlog"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/roles/witness"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
)

// Names of the agents that are there once.
const (
	mayorID    state.AgentID = "mayor"
	refineryID state.AgentID = "refinery"
	witnessID  state.AgentID = "witness"
)

// workerTimeout ends a worker that does not end by itself.
const workerTimeout = 60 * time.Minute

// world is the rig: what would be on its disk, and who works on it.
type world struct {
	engine
	o Options
	// def is the definition of the rig: the defaults, and what the options change.
	def *definition.Definition
	// client is the scope of the one client that works here.
	client pause.Scope

	mayor, refinery, witness *process
	polecats                 []*polecatRole
	procs                    []*process
	byID                     map[state.AgentID]*process

	backlog *backlog.Backlog
	beads   map[state.BeadID]*life
	// views are the polecats and their hooks as the mayor, sights all agents as the
	// witness sees them; slots say where an agent stands in both.
	views  []mayor.Polecat
	sights []witness.Agent
	slots  map[state.AgentID]int

	requests map[state.MergeID]*mergequeue.Request
	// live are those that the refinery has to do with, in their order.
	live    *btree.BTreeG[*mergequeue.Request]
	byBead  map[state.BeadID][]state.MergeID
	untold  []state.MergeID
	seq     int64
	waiting int // live requests that are not conflicted

	dispatches map[state.BeadID]dispatch.Record // unconfirmed
	records    map[state.AssignmentID]retire.Record
	unfinished map[state.AgentID][]state.AssignmentID
	incidents  []incident.Incident // open, oldest first
	convoys    int

	letters map[state.AgentID][]mayor.Message
	sent    map[string]bool // messages with an id of their sender's
	slotsOf map[state.AgentID][]nudge.Nudge
	seen    map[[2]state.AgentID]state.Time

	// onto is the commit on which work lands, landed the candidates it holds.
	onto    string
	landed  map[string]bool
	commits int
	// low and full: the disk is; noTests: no test can be run; noService: every worker
	// is ended by its service.
	low, full, noTests, noService bool
	// ended are the assignments whose worker the service has ended.
	ended map[state.AssignmentID]bool
	// pauses are those of the rig, by scope.
	pauses map[pause.Scope]*pause.Pause

	serial  int
	arrived int
	tally   tally
	judge   judge
	broken  error
}

func newWorld(o Options) *world {
	w := &world{engine: newEngine(o.Seed), o: o, def: o.definition(), byID: map[state.AgentID]*process{}, backlog: backlog.New(), beads: map[state.BeadID]*life{},
		slots: map[state.AgentID]int{}, requests: map[state.MergeID]*mergequeue.Request{},
		live:   btree.NewBTreeGOptions(func(a, b *mergequeue.Request) bool { return a.Seq < b.Seq }, btree.Options{NoLocks: true}),
		byBead: map[state.BeadID][]state.MergeID{}, dispatches: map[state.BeadID]dispatch.Record{},
		records: map[state.AssignmentID]retire.Record{}, unfinished: map[state.AgentID][]state.AssignmentID{},
		letters: map[state.AgentID][]mayor.Message{}, sent: map[string]bool{}, slotsOf: map[state.AgentID][]nudge.Nudge{},
		seen: map[[2]state.AgentID]state.Time{}, landed: map[string]bool{}, onto: "tip-0", ended: map[state.AssignmentID]bool{}, pauses: map[pause.Scope]*pause.Pause{}}
	w.client = policy.Client(w.def, "")
	w.tally.init()
	w.judge.init()
	for i := range o.Polecats {
		p := &polecatRole{at: i}
		p.process = w.agent(state.AgentID(fmt.Sprintf("polecat-%05d", i)), agent.Polecat, p)
		w.polecats = append(w.polecats, p)
		w.views = append(w.views, mayor.Polecat{ID: p.id, Hook: w.sights[i].Hook})
	}
	m, r, s := &mayorRole{state: mayor.Idle, finished: map[state.AgentID]time.Duration{}}, &refineryRole{beads: map[state.BeadID]bead.Bead{}}, &witnessRole{}
	m.process, r.process, s.process = w.agent(mayorID, agent.Mayor, m), w.agent(refineryID, agent.Refinery, r), w.agent(witnessID, agent.Witness, s)
	w.mayor, w.refinery, w.witness = m.process, r.process, s.process
	return w
}

func (w *world) agent(id state.AgentID, r agent.Role, does role) *process {
	p := &process{w: w, id: id, role: does}
	w.byID[id] = p
	w.procs = append(w.procs, p)
	w.slots[id] = len(w.sights)
	w.sights = append(w.sights, witness.Agent{ID: id, Role: r, Status: agent.Idle,
		Hook: hook.Hook{AgentID: id, Status: hook.Empty, LastActivity: w.clock()}})
	return p
}

func (w *world) newSerial(prefix string) string {
	w.serial++
	return prefix + strconv.FormatInt(int64(w.serial), 36)
}

func (w *world) newSession() state.SessionID { return state.SessionID(w.newSerial("se-")) }

// lives notes that a process began or ended.
func (w *world) lives(p *process, alive bool) {
	i := w.slots[p.id]
	w.sights[i].Alive = alive
	if alive {
		w.sights[i].Status = agent.Active
		if i < len(w.views) {
			w.sights[i].Status = agent.Idle
		}
	}
	if i < len(w.views) {
		w.views[i].Live = alive
		w.views[i].Stalled = w.sights[i].Status == agent.Stalled
		w.mayor.wake()
	}
}

func (w *world) setStatus(id state.AgentID, to agent.Status) error {
	if w.full {
		return errDiskFull
	}
	i := w.slots[id]
	w.sights[i].Status = to
	if i < len(w.views) {
		w.views[i].Stalled = to == agent.Stalled
	}
	return nil
}

// ---- beads ----------------------------------------------------------------

// addBead is somebody's `work add`.
func (w *world) addBead(b bead.Bead) {
	now := w.clock()
	b.Status, b.CreatedAt, b.UpdatedAt, b.Gen = bead.Open, now, now, 1
	if b.Priority == "" {
		b.Priority = bead.P2
	}
	w.arrived++
	w.beads[b.ID] = &life{opened: w.now}
	w.backlog.Put(b)
	w.mayor.wake()
}

// updateBead is a compare-and-swap: change refuses what is not as it expects.
func (w *world) updateBead(id state.BeadID, change func(b *bead.Bead) error) error {
	if w.full {
		return errDiskFull
	}
	old := w.backlog.Get(id)
	if old == nil {
		return fmt.Errorf("bead %s: %w", id, state.ErrNotFound)
	}
	b := *old
	if err := change(&b); err != nil {
		if err == state.ErrUnchanged { //nolint:errorlint // it is returned as it is
			return nil
		}
		return err
	}
	w.judge.bead(w, old, &b)
	w.backlog.Put(b)
	w.tally.bead(w, old, &b)
	switch {
	case b.Status == old.Status:
	case b.Status == bead.Open, b.Status == bead.Failed, b.Status.Finished(), b.Status == bead.Blocked:
		w.mayor.wake()
	}
	if r := w.requestOf(id, b.AssignmentID); b.Status == bead.Blocked && r != nil && r.Status == mergequeue.Conflicted {
		w.live.Delete(r) // a person's now: it is in nobody's way
	}
	if old.Status == bead.Done && b.Status != bead.Done && b.Status != bead.Merged {
		w.refinery.wake()
	}
	if b.Status == bead.Blocked && w.o.Person > 0 {
		w.after(w.around(w.o.Person, 1), func() { w.reopenByPerson(id) })
	}
	return nil
}

func (w *world) changeBead(e flow.BeadChange) error {
	return w.updateBead(e.Bead(), func(b *bead.Bead) error { return e.Change(b, w.clock()) })
}

func (w *world) changeHook(e flow.HookChange) error {
	return w.updateHook(e.Hook(), func(h *hook.Hook) error { return e.Change(h, w.clock()) })
}

func (w *world) changeRequest(e flow.RequestChange) error {
	return w.updateRequest(e.Request(), func(q *mergequeue.Request) error { return e.Change(q, w.clock()) })
}

// reopenByPerson is `work reopen`: the charges start again.
func (w *world) reopenByPerson(id state.BeadID) {
	if w.full {
		w.after(time.Hour, func() { w.reopenByPerson(id) })
		return
	}
	err := w.intervene(w.atOnce, flow.Reopen(id, w.backlog.Get(id).AssignmentID, "", state.Human))
	switch {
	case errors.Is(err, state.ErrConflict): // it moved on by itself
	case err != nil:
		w.fail("a person can't reopen %s: %v", id, err)
	default:
		w.tally.Reopened++
	}
}

// atOnce carries a sequence out in no time, as a person's command.
func (w *world) atOnce(s flow.Sequence, read func(), more func(flow.Effect) error) error {
	return w.sequence(s, read, more, func() {})
}

// sequence carries a durable sequence out: read its records, carry out the next effect, and
// again, until nothing is left. before is called before each effect, more carries out what
// is modelled: git.
func (w *world) sequence(s flow.Sequence, read func(), more func(flow.Effect) error, before func()) error {
	for {
		read()
		e := s.Next()
		if e == (flow.Done{}) {
			return nil
		}
		before()
		err := w.do(e, more)
		if err != nil && !flow.Decides(e, err) {
			return err
		}
		s.Answer(e, err)
	}
}

// ---- hooks ----------------------------------------------------------------

func (w *world) hookOf(id state.AgentID) *hook.Hook { return &w.sights[w.slots[id]].Hook }

func (w *world) updateHook(id state.AgentID, change func(h *hook.Hook) error) error {
	if w.full {
		return errDiskFull
	}
	i := w.slots[id]
	old := w.sights[i].Hook
	h := old
	if err := change(&h); err != nil {
		if err == state.ErrUnchanged { //nolint:errorlint // it is returned as it is
			return nil
		}
		return err
	}
	w.judge.hook(w, &old, &h)
	w.sights[i].Hook, w.views[i].Hook = h, h
	w.tally.hook(w, i, &old, &h)
	if h.Status != old.Status || h.Assignment() != old.Assignment() {
		w.polecats[i].wake()
		if h.Status == hook.Completed {
			w.mayor.wake()
		}
	}
	return nil
}

// ---- merge requests -------------------------------------------------------

// requestOf is the request of an assignment, or nil.
func (w *world) requestOf(b state.BeadID, a state.AssignmentID) *mergequeue.Request {
	for _, id := range w.byBead[b] {
		if r := w.requests[id]; r.AssignmentID == a {
			return r
		}
	}
	return nil
}

// submit publishes the request of an assignment, unless it is there.
func (w *world) submit(q mergequeue.Request) state.MergeID {
	if r := w.requestOf(q.BeadID, q.AssignmentID); r != nil {
		return r.ID
	}
	w.seq++
	q.ID, q.Seq, q.Status, q.SubmittedAt, q.UpdatedAt = state.MergeID("mr-"+string(q.BeadID)), w.seq, mergequeue.Pending, w.clock(), w.clock()
	if n := len(w.byBead[q.BeadID]); n > 0 {
		q.ID = state.MergeID(fmt.Sprintf("%s-%d", q.ID, n+1))
	}
	r := &q
	w.judge.request(w, nil, r)
	w.requests[r.ID] = r
	w.byBead[r.BeadID] = append(w.byBead[r.BeadID], r.ID)
	w.live.Set(r)
	w.waiting++
	w.refinery.wake()
	return r.ID
}

func (w *world) updateRequest(id state.MergeID, change func(r *mergequeue.Request) error) error {
	if w.full {
		return errDiskFull
	}
	old := w.requests[id]
	r := *old
	if err := change(&r); err != nil {
		if err == state.ErrUnchanged { //nolint:errorlint // it is returned as it is
			return nil
		}
		return err
	}
	w.judge.request(w, old, &r)
	w.requests[id] = &r
	if old.Status.Live() && old.Status != mergequeue.Conflicted {
		w.waiting--
	}
	parked := r.Status == mergequeue.Conflicted && w.backlog.Get(r.BeadID).Status == bead.Blocked
	switch {
	case !r.Status.Live() || parked:
		w.live.Delete(&r)
	default:
		w.live.Set(&r)
	}
	if r.Status.Live() && r.Status != mergequeue.Conflicted {
		w.waiting++
	}
	if r.Unannounced() && !old.Unannounced() {
		w.untold = append(w.untold, id)
	} else if old.Unannounced() && !r.Unannounced() {
		w.untold = slices.DeleteFunc(w.untold, func(u state.MergeID) bool { return u == id })
	}
	if r.Status == mergequeue.Conflicted && old.Status != mergequeue.Conflicted {
		w.mayor.wake()
	}
	w.refinery.wake()
	return nil
}

// fail ends the run: something happened that must not.
func (w *world) fail(format string, args ...any) {
	if w.broken == nil {
		w.broken = &Violation{Seed: w.o.Seed, At: w.now, What: fmt.Sprintf(format, args...)}
	}
}
