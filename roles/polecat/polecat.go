// Package polecat decides what a polecat does: it executes one bead at a time,
// and never coordinates, never looks at other polecats, never merges.
//
//	state       meaning                                    leaves when
//	idle        hook empty                                 hook pending
//	preparing   hook active, worktree being made           the worker is started
//	executing   the worker runs in the worktree            it exits, is aborted, or its work is taken away
//	waiting     its worker asked, and ended its turn       the answer has come
//	held        what its worker needs is paused            the pause admits the bead, or is over
//	lent        somebody has taken the session over        that one has left, or is dead
//	retiring    the done pipeline                          the retire record is final
//	terminated  this session is over: done means gone      the next bead begins a new one
//
// Everything that matters is on the disk; State only spares repetition. A
// process that has forgotten it all decides the same from the facts.
//
// The worker may be a person's own session (Facts.Beside). Then nobody starts, watches,
// continues or stops a worker: the session has the worktree from its making to the retire
// record, or until its work is taken away, whatever becomes of processes meanwhile.
package polecat

import (
	"cmp"
	"fmt"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/retire"
)

// Phase is where the polecat stands.
type Phase string

const (
	// Idle: the hook is empty; ends when work is put there.
	Idle Phase = "idle"
	// Preparing: the hook is active and no worker runs yet; ends when one does.
	Preparing Phase = "preparing"
	// Executing: the worker runs; ends with its exit, an abort, or when the hook names something else.
	Executing Phase = "executing"
	// Waiting: the worker asked the person or the mayor and ended its turn; ends with the answer.
	Waiting Phase = "waiting"
	// Held: what the worker needs is paused. Its session, if there is one, is kept. Ends when the pause admits the bead, or is over.
	Held Phase = "held"
	// Lent: somebody has taken the session over. Nothing is begun, saved or retired. Ends when that one has left, or is dead.
	Lent Phase = "lent"
	// Retiring: the end of the attempt is fixed; ends when the pipeline is through.
	Retiring Phase = "retiring"
	// Terminated: the session is over; ends when the next bead begins a new one.
	Terminated Phase = "terminated"
)

// State is what a polecat remembers between two ticks.
type State struct {
	Phase Phase
	// Session is the worker session that this process began; a hook that names
	// another one was left by an earlier process.
	Session state.SessionID
	// Retiring is the assignment whose retire record is not final yet.
	Retiring state.AssignmentID
	// Stopping is true once the present worker was told to end; GaveUp is true when that was because its client tried in
	// vain, Unanswered when it waited in vain.
	Stopping, GaveUp, Unanswered bool
	// LastTurn is since when the present worker has to end because its budget is used up, zero while it need not, and
	// TurnsBefore how many turns it had then.
	LastTurn    state.Time
	TurnsBefore int
	// Lost counts the workers of this assignment that somebody else ended.
	Lost int
	// TouchedAt is when progress was last written.
	TouchedAt state.Time
	// HookProblem is what was last kept of a hook that can't be read.
	HookProblem string
	// ShuttingDown: no more work is taken.
	ShuttingDown bool
}

// maxLost is how many workers of one assignment may be ended by somebody else
// before that counts as a failure of the attempt.
const maxLost = 3

// Decide is the whole behaviour of a polecat. It is pure: same facts, same
// decision.
func Decide(s State, f Facts) roles.Decision[State] {
	d := &decision{s: s, f: f}
	if d.s.Phase == "" {
		d.s.Phase = Idle
	}
	d.heedShutdown()
	d.heedNudges()
	d.tellIdle()
	d.decideWork()
	d.retireMail()
	d.endIfAsked()
	d.status()
	return roles.Decision[State]{Groups: d.groups, Work: d.work, Next: d.s, Again: d.again}
}

type decision struct {
	s      State
	f      Facts
	groups []roles.Group
	work   roles.Group
	// again is true when the work leads to the next decision.
	again bool
	// published is set once this tick has fixed the end of the attempt, finished
	// once nothing is in hand any more and the process may end.
	published, finished bool
}

// do adds a group of actions that stand alone.
func (d *decision) do(actions ...roles.Action) { d.groups = append(d.groups, actions) }

// workOn adds actions to the work.
func (d *decision) workOn(actions ...roles.Action) { d.work = append(d.work, actions...) }

// step adds an action to the work after which the next decision should follow at
// once.
func (d *decision) step(a roles.Action) {
	d.workOn(a)
	d.again = true
}

func (d *decision) become(p Phase) { d.s.Phase = p }

// decideWork is the state machine proper, the strongest claim first: what is fixed
// is finished, what was taken away is given up, what runs is watched, what
// is there is begun.
func (d *decision) decideWork() {
	switch f := &d.f; {
	case f.Lease == LeaseHeld:
		d.lent()
	case f.Lease == LeaseLeft, d.s.Phase == Lent:
		d.takeBack()
	case f.Record != nil && !f.Record.Stage.Final():
		d.retiring()
	case f.Hook == nil:
		d.unreadableHook()
	case f.Worker.Status != WorkerNone && !d.ownsWorker():
		d.abandon()
	case f.Worker.Status == WorkerExited:
		d.exited()
	case f.Worker.Status == WorkerRunning:
		d.executing()
	case f.Hook.Status == hook.Active:
		d.begin()
	case f.Hook.Status == hook.Pending:
		d.pending()
	case f.Hook.Status == hook.Completed:
		d.becomeFree(Terminated)
	default:
		d.idle()
	}
}

// lent: somebody works in the worktree by hand. The worker makes room; everything else waits.
func (d *decision) lent() {
	d.become(Lent)
	if d.f.Worker.Status == WorkerRunning {
		d.stop("its session is taken over", 0)
	}
}

// takeBack: nobody knows what was done there meanwhile, so everything is found out again, as by a process that begins.
func (d *decision) takeBack() {
	d.become(Idle)
	d.newWorker()
	d.step(TakeBack{})
}

// retiring: the record is the point of no return. The worker goes first, so
// that nothing changes under the pipeline.
func (d *decision) retiring() {
	d.become(Retiring)
	d.s.Retiring = d.f.Record.AssignmentID
	if d.f.Worker.Status == WorkerRunning {
		d.stop("the attempt is retired: "+string(d.f.Record.Outcome), d.f.Policy.StopDelay)
		return
	}
	d.step(Retire{Record: *d.f.Record})
}

// unreadableHook: nobody knows whose work it is, so nothing is begun and
// nothing is ended until a person or the mayor has put it right.
func (d *decision) unreadableHook() {
	if d.s.HookProblem != d.f.HookProblem {
		d.s.HookProblem = d.f.HookProblem
		d.workOn(CopyHook{Problem: d.f.HookProblem})
	}
}

// ownsWorker reports whether the hook still names the worker's own session.
func (d *decision) ownsWorker() bool {
	h, w := d.f.Hook, &d.f.Worker
	return h.Status == hook.Active && h.Assignment() == w.Assignment && h.WorkItem.Session == w.Session
}

// abandon: the mayor has taken the work away, or somebody began another
// session of it. The work is saved, the hook read again.
func (d *decision) abandon() {
	if d.published {
		return // what the hook names was aborted in this tick; that goes first
	}
	if d.f.Worker.Status == WorkerRunning {
		d.stop("its work was taken away", 0)
		return
	}
	d.step(Abandon{Assignment: d.f.Worker.Assignment, Bead: d.f.Worker.Bead, Session: d.f.Worker.Session})
	d.becomeFree(Terminated)
}

func (d *decision) stop(why string, delay time.Duration) {
	if d.s.Stopping {
		return
	}
	d.s.Stopping = true
	d.workOn(StopWorker{Why: why, Delay: delay})
}

// exited: a worker that ended by itself has retired its attempt. One that
// somebody ended gets a successor, because that says nothing of the work.
func (d *decision) exited() {
	exit := &d.f.Worker.Exit
	if d.s.Unanswered && exit.Lost && exit.Fault.IsZero() {
		exit.Fault = d.unanswered()
	}
	if (d.s.GaveUp || d.s.Unanswered) && !exit.Fault.IsZero() {
		exit.Lost = false // its end is that of its client
	}
	inherited := d.f.Worker.Inherited && d.s.Phase == Idle
	if inherited && exit.cutShort() {
		d.become(Held) // as it was for the process that saw it end
	}
	waited := d.s.Phase == Waiting || d.f.AnsweredLate
	switch {
	case d.published:
	case exit.Ending == Gone:
		d.beginAnew(exit.Why)
	case len(d.f.Asked) > 0 && (exit.CanWait() || d.f.Unplanned && exit.silent()):
		d.become(Waiting)
	case d.s.Phase == Held && d.f.Held:
	case d.s.Phase == Held && !exit.Resumable:
		d.beginAnew(cmp.Or(d.f.Granted, "its budget was used up"))
	case d.s.Phase == Held:
		d.continueSession(Continue{Why: d.interruption(), Kept: true})
	case d.f.OutOfBudget && (inherited || !d.s.LastTurn.IsZero()) && !exit.succeeded():
		d.hold(fault.Fault{}) // nobody is charged for work that was not to go on
	case d.f.Worker.Resumes > 0 && exit.cutShort():
		d.hold(exit.Fault)
	case d.f.WaitedInVain && exit.Failed() && exit.GoOn(d.f.Worker.Resumes, d.f.Bead) == "":
		d.become(Waiting) // nobody is charged for an answer that did not come
	case exit.CanWait() && (waited || d.f.Answered && exit.GoOn(1, d.f.Bead) != ""):
		d.continueSession(Continue{Why: "what you asked has been answered", Answered: true})
	case waited && (exit.silent() || exit.Failed()):
		d.beginAnew("")
	case exit.Attended, exit.EndedOutside() && d.s.Lost+1 < maxLost:
		d.endedFromOutside()
	case exit.EndedOutside():
		d.publish(exit.endedTooOften(d.f.Hook.WorkItem, d.f.Self))
	case exit.GoOn(d.f.Worker.Resumes, d.f.Bead) != "":
		d.continueSession(Continue{Why: exit.GoOn(d.f.Worker.Resumes, d.f.Bead)})
	default:
		d.publish(exit.Record(d.f.Hook.WorkItem, d.f.Self))
	}
}

// endedFromOutside continues the session of a worker that somebody ended, where its client can.
func (d *decision) endedFromOutside() {
	why := endedOutside
	switch exit := &d.f.Worker.Exit; {
	case d.s.ShuttingDown: // its successor does
		return
	case exit.Resumable && d.f.Worker.loading(d.f.Now):
		d.touch()
		return
	case exit.Resumable && d.f.Held:
		d.hold(fault.Fault{})
		return
	case exit.Attended:
		why = "your session was taken over by a person, who has left it to you again: the worktree may have changed"
	case d.f.Worker.Inherited && d.f.Granted != "":
		why = d.granted()
	case d.f.Worker.Inherited:
		why = "the rig ended while you worked, and goes on now"
	default:
		d.s.Lost++
	}
	if d.f.Worker.Exit.Resumable {
		d.continueSession(Continue{Why: why, Kept: true})
	} else {
		d.beginAnew("")
	}
}

// beginAnew begins another session of the assignment. A polecat that shuts down leaves it to
// its successor.
func (d *decision) beginAnew(why string) {
	if !d.s.ShuttingDown {
		d.resume(why)
	}
}

// continueSession continues a session that ended before its work was through, once its client can load it. A polecat that
// shuts down leaves it to its successor.
func (d *decision) continueSession(c Continue) {
	if d.s.ShuttingDown {
		return
	}
	if d.f.Worker.loading(d.f.Now) {
		d.touch()
		return
	}
	d.become(Executing)
	d.s.Session, d.s.TouchedAt = d.f.Hook.WorkItem.Session, d.f.Now
	d.newWorker()
	c.Item = *d.f.Hook.WorkItem
	d.workOn(c)
}

// interruption says what kept a session from going on that goes on now.
func (d *decision) interruption() string {
	switch exit := &d.f.Worker.Exit; {
	case d.f.Granted != "":
		return d.granted()
	case !d.s.LastTurn.IsZero():
		return "your budget was used up, and as much again may be used"
	case exit.cutShort():
		return "your turn was cut short: " + exit.Fault.Reason
	}
	return "what you need is there again"
}

// granted says that a budget kept the session from going on.
func (d *decision) granted() string {
	return "your turn was cut short: " + d.f.Granted + "; as much again may be used now"
}

// hold lets the bead wait for a pause, which the fault of its worker may have begun.
func (d *decision) hold(f fault.Fault) {
	if d.s.Phase == Held && f.IsZero() {
		return
	}
	d.become(Held)
	d.step(Hold{Item: *d.f.Hook.WorkItem, Fault: f})
}

func (d *decision) publish(rec retire.Record) {
	d.published = true
	d.become(Retiring)
	d.s.Retiring = rec.AssignmentID
	d.step(Publish{Record: rec})
}

// fail publishes that the attempt on the hook failed.
func (d *decision) fail(reason string) {
	rec := newRecord(d.f.Hook.WorkItem, d.f.Self)
	rec.Outcome, rec.Reason = retire.Fail, reason
	d.publish(rec)
}

// executing: only progress touches the hook, never mere life.
func (d *decision) executing() {
	if d.published {
		return
	}
	d.become(Executing)
	if w := &d.f.Worker; !w.Trying.IsZero() && !d.s.Stopping && d.f.Now.Sub(w.TryingSince.Time) >= d.f.Policy.Patience {
		d.s.GaveUp = true
		d.stop("its client tries in vain: "+w.Trying.Reason, 0)
		return
	}
	if d.f.Worker.Quiet > d.f.Policy.Silence && !d.s.Stopping {
		d.s.Unanswered = true
		d.stop(d.unanswered().Reason, 0)
		return
	}
	d.spendNoMore()
	if d.f.Progress {
		d.touch()
	}
}

// touch shows that the work gets on: its worker does, or its client will soon load the session.
func (d *decision) touch() {
	if since := d.f.Now.Sub(d.s.TouchedAt.Time); since < 0 || since >= d.f.Policy.Touch {
		d.s.TouchedAt = d.f.Now
		d.workOn(Touch{Assignment: d.f.Worker.Assignment, Session: d.f.Worker.Session})
	}
}

// unanswered is the fault of a service that has left a client without an answer for too long.
func (d *decision) unanswered() fault.Fault {
	return fault.New(fault.NoAnswer, fmt.Sprintf("%s: nothing came for %s", fault.NoAnswer.Phrase(), d.f.Policy.Silence))
}

// spendNoMore ends a worker whose budget is used up. It was asked to end by itself, and has one more turn for that: the one
// after that in which it was asked.
func (d *decision) spendNoMore() {
	w := &d.f.Worker
	switch since := d.f.Now.Sub(d.s.LastTurn.Time); {
	case !d.f.OutOfBudget:
		d.s.LastTurn = state.Time{}
	case d.s.LastTurn.IsZero():
		d.s.LastTurn, d.s.TurnsBefore = d.f.Now, w.Turns
	case w.Turns >= d.s.TurnsBefore+2, since < 0, since >= d.f.Policy.Patience:
		d.stop("its budget is used up", 0)
	}
}

// ownsBead reports whether the bead is still this assignment's. The mayor takes
// the bead first and the hook after it: between the two nothing is begun.
func (d *decision) ownsBead() bool {
	b := d.f.Bead
	return b != nil && b.CheckAssignment(d.f.Hook.Assignment(), bead.Hooked, bead.InProgress) == nil
}

// begin: the hook is active and no worker runs, either because it was just
// activated, or because an earlier process died over it.
func (d *decision) begin() {
	switch {
	case d.published:
	case d.f.Record != nil, !d.ownsBead(), d.s.ShuttingDown:
		d.becomeFree(Terminated)
	case d.f.Beside:
		d.become(Executing)
		if d.f.Worker.Status == WorkerNone {
			d.workOn(Start{Item: *d.f.Hook.WorkItem})
		}
	case len(d.f.Asked) > 0: // of a session that an earlier process saw end
		d.become(Waiting)
	case d.f.Held:
		d.hold(fault.Fault{})
	case d.f.Hook.WorkItem.Session != d.s.Session || d.s.Session == "":
		d.resume("")
	default:
		d.become(Executing)
		d.s.TouchedAt = d.f.Now
		d.newWorker()
		d.workOn(Start{Item: *d.f.Hook.WorkItem})
	}
}

func (d *decision) resume(why string) {
	d.become(Preparing)
	d.s.Session = d.f.Fresh
	d.newWorker()
	d.step(Resume{Item: *d.f.Hook.WorkItem, Session: d.f.Fresh, Why: why})
}

// pending: GUPP, what is on the hook is begun at once, without asking.
func (d *decision) pending() {
	d.becomeFree(Idle)
	if d.s.ShuttingDown || !d.ownsBead() {
		return
	}
	d.become(Preparing)
	d.s.Session = d.f.Fresh
	d.step(Activate{Item: *d.f.Hook.WorkItem, Session: d.f.Fresh})
}

func (d *decision) idle() {
	d.becomeFree(Idle)
	if d.f.Next != "" && !d.s.ShuttingDown {
		d.step(Claim{Bead: d.f.Next})
	}
}

// newWorker forgets what was done about the worker before.
func (d *decision) newWorker() {
	d.s.Stopping, d.s.GaveUp, d.s.Unanswered, d.s.LastTurn = false, false, false, state.Time{}
}

// becomeFree forgets the assignment that is over.
func (d *decision) becomeFree(p Phase) {
	d.become(p)
	d.s.Session, d.s.Retiring, d.s.Lost = "", "", 0
	d.newWorker()
	d.s.HookProblem = ""
}
