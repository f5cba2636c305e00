package polecat

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

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
		case d.f.Beside: // they are the session's to see
		case n.Type != nudge.HealthCheck && n.Type != nudge.SyncRequest:
			d.do(roles.MarkSeen{Nudge: n})
		case d.staleRef(n.Ref):
			d.do(roles.MarkSeen{Nudge: n, Note: "stale: about another assignment or session"})
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
		d.do(roles.MarkSeen{Nudge: n, Note: "stale: about another assignment or session"})
	case h.Status == hook.Pending && d.ownsBead():
		// It is heeded once the work is activated, by this process or the next.
	case d.published: // by another abort, which comes first
		d.workOn(roles.MarkSeen{Nudge: n, Note: "nothing left to abort"})
	case h.Status != hook.Active || d.f.Record != nil:
		d.do(roles.MarkSeen{Nudge: n, Note: "nothing left to abort"})
	default:
		d.fail("aborted: " + cmp.Or(strings.TrimSpace(n.Message), "by "+string(n.From)))
		d.workOn(roles.MarkSeen{Nudge: n, Note: "aborted"})
	}
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
	case d.s.Phase == Lent && d.f.Hook.WorkItem != nil:
		return fmt.Sprintf("lent %s (%s): somebody has taken its session over", d.f.Hook.WorkItem.BeadID, d.f.Hook.WorkItem.AssignmentID)
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

// retireMail retires the mail that roles send to roles. Everything else is for the
// worker.
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
			// A live worker, or a person's session, may still be waiting for the answer.
			if d.f.Worker.Status != WorkerRunning && !d.f.Beside {
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

// status keeps the agent's identity in step. That of a person's session says whether there is one.
func (d *decision) status() {
	if d.f.Beside {
		return
	}
	want := agent.Idle
	switch {
	case d.finished:
		want = agent.Terminated
	case d.f.Worker.Status != WorkerNone, d.s.Phase == Preparing, d.s.Phase == Executing, d.s.Phase == Waiting, d.s.Phase == Held, d.s.Phase == Lent, d.s.Phase == Retiring:
		want = agent.Active
	}
	if d.f.Status != want {
		d.do(SetStatus{Status: want})
	}
}

// endIfAsked: the present bead is finished first, then the request answered.
func (d *decision) endIfAsked() {
	unfinished := d.f.Record != nil && !d.f.Record.Stage.Final() && d.f.Lease != LeaseHeld
	if !d.s.ShuttingDown || unfinished || len(d.work) > 0 || d.f.Worker.Status == WorkerRunning {
		return
	}
	d.become(Terminated)
	d.finished = true
	for _, e := range d.f.Mail {
		if e.RequestsShutdown(d.f.Mayor, d.f.Process) {
			d.do(roles.AnswerShutdown(d.f.Self, e, "There is no work in hand, and no more is taken.\n")...)
		}
	}
}
