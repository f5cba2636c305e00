// Package polecat decides what a polecat does: it executes one bead at a time,
// and never coordinates, never looks at other polecats, never merges.
//
//	state       meaning                                    leaves when
//	idle        hook empty                                 hook pending
//	preparing   hook active, worktree being made           the worker is started
//	executing   the worker runs in the worktree            it exits, is aborted, or its work is taken away
//	waiting     its worker asked, and ended its turn       the answer has come
//	held        what its worker needs is paused            the pause admits the bead, or is over
//	retiring    the done pipeline                          the retire record is final
//	terminated  this session is over: done means gone      the next bead begins a new one
//
// Everything that matters is on the disk; State only spares repetition. A
// process that has forgotten it all decides the same from the facts.
package polecat

import (
	"fmt"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/retire"
)

// Phase is where the polecat stands.
type Phase string

const (
	// Idle: the hook is empty; ends when work hangs there.
	Idle Phase = "idle"
	// Preparing: the hook is active and no worker runs yet; ends when one does.
	Preparing Phase = "preparing"
	// Executing: the worker runs; ends with its exit, an abort, or when the hook names something else.
	Executing Phase = "executing"
	// Waiting: the worker asked the person or the mayor and ended its turn; ends with the answer.
	Waiting Phase = "waiting"
	// Held: what the worker needs is paused. Its session, if there is one, is kept. Ends when the pause admits the bead, or is over.
	Held Phase = "held"
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
	// Stopping is true once the present worker was told to end; GaveUp is true when that
	// was because its client tried in vain.
	Stopping, GaveUp bool
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
// hangs there is begun.
func (d *decision) decideWork() {
	switch f := &d.f; {
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
// session of it. The work is saved, the hook read anew.
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
	if d.s.GaveUp && !exit.Fault.IsZero() {
		exit.Lost = false // its end is that of its client
	}
	if d.f.Worker.Inherited && d.s.Phase == Idle && exit.cutShort() {
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
	case d.s.Phase == Held:
		d.continueSession(Continue{Why: "what you need is there again", Kept: true})
	case d.f.Worker.Resumes > 0 && exit.cutShort():
		d.hold(exit.Fault)
	case d.f.WaitedInVain && exit.Failed() && exit.GoOn(d.f.Worker.Resumes, d.f.Bead) == "":
		d.become(Waiting) // nobody is charged for an answer that did not come
	case exit.CanWait() && (waited || d.f.Answered && exit.GoOn(1, d.f.Bead) != ""):
		d.continueSession(Continue{Why: "what you asked has been answered", Answered: true})
	case waited && (exit.silent() || exit.Failed()):
		d.beginAnew("")
	case exit.Lost && d.s.Lost+1 < maxLost:
		d.endedFromOutside()
	case exit.Lost:
		d.fail(fmt.Sprintf("the worker was ended from outside %d times", maxLost))
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
	case d.s.ShuttingDown, // its successor does
		exit.Resumable && d.f.Now.Before(d.f.Worker.Loadable.Time):
		return
	case exit.Resumable && d.f.Held:
		d.hold(fault.Fault{})
		return
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
	if d.s.ShuttingDown || d.f.Now.Before(d.f.Worker.Loadable.Time) {
		return
	}
	d.become(Executing)
	d.s.Session, d.s.Stopping, d.s.GaveUp, d.s.TouchedAt = d.f.Hook.WorkItem.Session, false, false, d.f.Now
	c.Item = *d.f.Hook.WorkItem
	d.workOn(c)
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
	if since := d.f.Now.Sub(d.s.TouchedAt.Time); d.f.Progress && (since < 0 || since >= d.f.Policy.Touch) {
		d.s.TouchedAt = d.f.Now
		d.workOn(Touch{Assignment: d.f.Worker.Assignment, Session: d.f.Worker.Session})
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
	case len(d.f.Asked) > 0: // of a session that an earlier process saw end
		d.become(Waiting)
	case d.f.Held:
		d.hold(fault.Fault{})
	case d.f.Hook.WorkItem.Session != d.s.Session || d.s.Session == "":
		d.resume("")
	default:
		d.become(Executing)
		d.s.Stopping, d.s.GaveUp, d.s.TouchedAt = false, false, d.f.Now
		d.workOn(Start{Item: *d.f.Hook.WorkItem})
	}
}

func (d *decision) resume(why string) {
	d.become(Preparing)
	d.s.Session, d.s.Stopping, d.s.GaveUp = d.f.Fresh, false, false
	d.step(Resume{Item: *d.f.Hook.WorkItem, Session: d.f.Fresh, Why: why})
}

// pending: GUPP, what hangs on the hook is begun at once, without asking.
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

// becomeFree forgets the assignment that is over.
func (d *decision) becomeFree(p Phase) {
	d.become(p)
	d.s.Session, d.s.Retiring, d.s.Stopping, d.s.GaveUp, d.s.Lost = "", "", false, false, 0
	d.s.HookProblem = ""
}

// heedShutdown: a request for an earlier process is retired unacted, so that
// "down" never ends what was started after it.
func (d *decision) heedShutdown() {
	for _, e := range d.f.Mail {
		if e.RequestsShutdown(d.f.Mayor, d.f.Process) {
			d.s.ShuttingDown = true
		}
	}
}

// heedNudges answers questions and obeys an abort of those who may.
func (d *decision) heedNudges() {
	for _, n := range d.f.Nudges {
		switch {
		case n.Type == nudge.Abort:
			d.heedAbort(n)
		case n.Type != nudge.HealthCheck && n.Type != nudge.SyncRequest:
			d.do(roles.MarkSeen{Nudge: n})
		case d.staleRef(n.Ref):
			d.do(roles.MarkSeen{Nudge: n, Note: "stale: it speaks of another assignment or session"})
		default:
			d.do(roles.Answer(&n, d.report(), d.ref()), roles.MarkSeen{Nudge: n})
		}
	}
}

// ref names what is in hand, or is nil.
func (d *decision) ref() *nudge.Ref {
	if w := &d.f.Worker; w.Status != WorkerNone {
		return &nudge.Ref{BeadID: w.Bead, AssignmentID: w.Assignment, Session: w.Session}
	}
	if d.f.Hook == nil || d.f.Hook.WorkItem == nil {
		return nil
	}
	item := d.f.Hook.WorkItem
	return &nudge.Ref{BeadID: item.BeadID, AssignmentID: item.AssignmentID, Session: item.Session}
}

// staleRef reports whether a nudge was meant for another incarnation.
func (d *decision) staleRef(ref *nudge.Ref) bool {
	if ref == nil {
		return false
	}
	assignment, session := d.f.Worker.Assignment, d.f.Worker.Session
	if d.f.Hook != nil && d.f.Hook.WorkItem != nil {
		assignment, session = d.f.Hook.WorkItem.AssignmentID, d.f.Hook.WorkItem.Session
	}
	if ref.AssignmentID != "" && ref.AssignmentID != assignment {
		return true
	}
	return ref.Session != "" && ref.Session != session && ref.Session != d.f.Process
}

func (d *decision) heedAbort(n nudge.Nudge) {
	h := d.f.Hook
	switch {
	case n.From != d.f.Mayor && n.From != state.Human:
		d.do(roles.MarkSeen{Nudge: n, Note: "refused: only the mayor and human may abort"})
	case h == nil:
		// Nobody knows what it would hit; it is heeded once the hook is whole.
	case d.staleRef(n.Ref) || h.WorkItem != nil && n.Timestamp.Before(h.WorkItem.AssignedAt.Time):
		d.do(roles.MarkSeen{Nudge: n, Note: "stale: it speaks of another assignment or session"})
	case h.Status == hook.Pending && d.ownsBead():
		// It is heeded once the work is activated, by this process or the next.
	case d.published: // by another abort, which comes first
		d.workOn(roles.MarkSeen{Nudge: n, Note: "nothing left to abort"})
	case h.Status != hook.Active || d.f.Record != nil:
		d.do(roles.MarkSeen{Nudge: n, Note: "nothing left to abort"})
	default:
		d.fail("aborted: " + orElse(n.Message, "by "+string(n.From)))
		d.workOn(roles.MarkSeen{Nudge: n, Note: "aborted"})
	}
}

func orElse(s, other string) string {
	if strings.TrimSpace(s) == "" {
		return other
	}
	return s
}

// report is what the polecat knows of its worker, for a health check.
func (d *decision) report() string {
	w := &d.f.Worker
	switch {
	case d.f.Hook == nil:
		return "the hook can't be read: " + d.f.HookProblem
	case w.Status == WorkerRunning:
		return fmt.Sprintf("%s %s (%s): worker running for %s, last progress %s ago, cpu %s", d.s.Phase, w.Bead, w.Assignment,
			elapsed(d.f.Now, w.StartedAt), elapsed(d.f.Now, w.LastProgress), w.CPU.Round(10*time.Millisecond))
	case d.s.Phase == Waiting && d.f.Hook.WorkItem != nil:
		return fmt.Sprintf("waiting %s (%s): for the answer to %d questions", d.f.Hook.WorkItem.BeadID, d.f.Hook.WorkItem.AssignmentID, len(d.f.Asked))
	case d.s.Phase == Held && d.f.Hook.WorkItem != nil:
		return fmt.Sprintf("held %s (%s): what its worker needs is paused", d.f.Hook.WorkItem.BeadID, d.f.Hook.WorkItem.AssignmentID)
	case d.f.Hook.WorkItem != nil:
		return fmt.Sprintf("%s %s (%s): no worker runs", d.s.Phase, d.f.Hook.WorkItem.BeadID, d.f.Hook.WorkItem.AssignmentID)
	}
	return string(d.s.Phase) + ": hook empty"
}

func elapsed(now, since state.Time) time.Duration {
	return max(now.Sub(since.Time), 0).Round(100 * time.Millisecond)
}

// retireMail retires the mail of the machinery; everything else is the
// worker's to read.
func (d *decision) retireMail() {
	for _, e := range d.f.Mail {
		switch {
		case e.Type == mail.ShutdownRequest:
			if !e.RequestsShutdown(d.f.Mayor, d.f.Process) {
				d.do(roles.MarkRead{Entry: e, Note: "stale: it does not name this session, or its sender may not ask"})
			}
		case e.Type == mail.WorkAssignment:
			d.retireAssignment(e)
		case e.Type.RoleOnly():
			// A live worker may still be waiting for the answer.
			if d.f.Worker.Status != WorkerRunning {
				d.do(roles.MarkRead{Entry: e})
			}
		}
	}
}

// retireAssignment: the hook is the truth and the mail about it a hint, read
// once the hook says more than the mail does.
func (d *decision) retireAssignment(e mail.Entry) {
	h := d.f.Hook
	switch {
	case h == nil:
	case e.Ref == nil || e.Ref.AssignmentID != h.Assignment():
		d.do(roles.MarkRead{Entry: e, Note: "stale: the hook names something else"})
	case h.Status != hook.Pending:
		d.do(roles.MarkRead{Entry: e})
	}
}

// status keeps the agent's identity in step.
func (d *decision) status() {
	want := agent.Idle
	switch {
	case d.finished:
		want = agent.Terminated
	case d.f.Worker.Status != WorkerNone, d.s.Phase == Preparing, d.s.Phase == Executing, d.s.Phase == Waiting, d.s.Phase == Held, d.s.Phase == Retiring:
		want = agent.Active
	}
	if d.f.Status != want {
		d.do(SetStatus{Status: want})
	}
}

// endIfAsked: the present bead is finished first, then the request answered.
func (d *decision) endIfAsked() {
	unfinished := d.f.Record != nil && !d.f.Record.Stage.Final()
	if !d.s.ShuttingDown || unfinished || len(d.work) > 0 || d.f.Worker.Status == WorkerRunning {
		return
	}
	d.become(Terminated)
	d.finished = true
	for _, e := range d.f.Mail {
		if e.RequestsShutdown(d.f.Mayor, d.f.Process) {
			d.do(roles.AnswerShutdown(d.f.Self, e, "Nothing is in hand; no more work is taken.\n")...)
		}
	}
}
