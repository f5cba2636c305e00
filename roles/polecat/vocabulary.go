package polecat

import (
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/retire"
)

// Policy is what the definition says about a polecat's timing.
type Policy struct {
	// Touch is how often progress is written to the hook at most.
	Touch time.Duration
	// StopDelay is how long a worker that has reported its end may take
	// to end by itself.
	StopDelay time.Duration
	// Silence is how long a client may wait for its service without a sign of life.
	Silence time.Duration
	// Patience is how long a client may try to reach its service; what goes on longer is
	// the rig's to wait for. It is also how long a worker has for its last turn when its budget is used up.
	Patience time.Duration
}

// Patience is the Patience of a rig with this stall threshold: it ends before a client
// that waits looks stalled.
func Patience(stall time.Duration) time.Duration {
	const most = 2 * time.Minute
	return min(most, stall/2)
}

// Silence is the Silence of a rig with this stall threshold: longer than a model takes for a long answer, shorter
// than the witness waits before it has a worker replaced that stalls.
func Silence(stall time.Duration) time.Duration { return stall + stall/2 }

// TouchInterval is the Touch of a rig with this stall threshold: short enough
// that a throttled touch never looks like a stall.
func TouchInterval(stall time.Duration) time.Duration {
	return min(hook.TouchInterval, stall/4)
}

// WorkerStatus is what is known of the worker's process.
type WorkerStatus string

const (
	// WorkerNone: this process has started none, or has retired it.
	WorkerNone WorkerStatus = "none"
	// WorkerRunning: it, or something it started, is alive.
	WorkerRunning WorkerStatus = "running"
	// WorkerExited: nothing of it is left; Exit says how it went.
	WorkerExited WorkerStatus = "exited"
	// WorkerBeside: a person's own session has the worktree. No process of it is known.
	WorkerBeside WorkerStatus = "beside"
)

// Worker is the worker of this process.
type Worker struct {
	Status     WorkerStatus
	Assignment state.AssignmentID
	Bead       state.BeadID
	Session    state.SessionID
	StartedAt  state.Time
	// LastProgress is when its output or its processor time last grew.
	LastProgress state.Time
	CPU          time.Duration
	// Turns counts the answers of its model, as far as its client says.
	Turns int
	// Trying is the fault of a service that its client tries to overcome, since when is in
	// TryingSince; zero while it works.
	Trying      fault.Fault
	TryingSince state.Time
	// Quiet is for how long its client has waited for its service without a sign of life, 0 while it works.
	Quiet time.Duration
	// Resumes is how often its session may still be continued.
	Resumes int
	// Loadable is when its client can load the session again, zero for at once.
	Loadable state.Time
	// Inherited: an earlier process of this polecat started it, and did not retire it.
	Inherited bool
	// Exit is meant only when the worker has exited.
	Exit Exit
}

// loading reports whether its session can't be loaded yet. A clock that was set back
// since it started is no reason to wait longer.
func (w *Worker) loading(now state.Time) bool {
	return now.Before(w.Loadable.Time) && !now.Before(w.StartedAt.Time)
}

// Exit is how a worker ended.
type Exit struct {
	Code   int
	Signal string
	// TimedOut: its time was up, or it used up something else, which Exceeded names. Ran is how long it ran.
	TimedOut bool
	Exceeded string
	Ran      time.Duration
	// Lost: it did not end by itself, somebody ended it or its supervisor.
	Lost bool
	// Attended: it ended for a person who took the session over and has left it since. It is Lost, too.
	Attended bool
	// NotStarted says why it could not be executed at all, with its path.
	NotStarted string
	// Tail is the end of its transcript.
	Tail string
	// Ending is what its client says, and Why the reason it gives.
	Ending Ending
	Why    string
	// Fault is what ended it where that is known.
	Fault fault.Fault
	// Resumable: the client can continue the session. Changed: the worktree holds
	// something that its base does not, committed or not; meant only where the
	// client says how it ended. Untouched: it is known to hold nothing of the kind.
	Resumable, Changed, Untouched bool
	// Script: the worker executes the bead's description, and so fails by it.
	Script bool
}

// Lease says in whose hands the session is.
type Lease string

const (
	// NoLease: the polecat's own.
	NoLease Lease = ""
	// LeaseHeld: somebody's else. Until that one leaves or dies, worktree and session are left alone.
	LeaseHeld Lease = "held"
	// LeaseLeft: who had it is gone, and it is not taken back yet.
	LeaseLeft Lease = "left"
)

// Facts are what one tick has fetched.
type Facts struct {
	Now    state.Time
	Self   state.AgentID
	Mayor  state.AgentID
	Policy Policy
	// Process is this process's own session, which a shutdown_request names.
	Process state.SessionID
	// Status is what this process last made the agent's identity say.
	Status agent.Status
	// Beside is true for the agent of a person's own sessions: it is given a worktree, and no worker is started.
	Beside bool
	// Fresh is a name for the session that this decision may begin.
	Fresh state.SessionID
	// Hook is nil when it can't be read; HookProblem says why.
	Hook        *hook.Hook
	HookProblem string
	// Bead is that of the hook, nil when there is none or it can't be read.
	Bead *bead.Bead
	// Record is the retire record of what is in hand: of State.Retiring, else of
	// the worker's assignment, else of the hook's. nil when there is none.
	Record *retire.Record
	Worker Worker
	// Ended are the attempts that this process retired and of whose end the mayor
	// was not told.
	Ended []retire.Record
	// Asked are the unanswered questions of the worker to the person or the mayor;
	// they are looked for while no worker runs.
	Asked []mail.Name
	// WaitedInVain is true when the worker waited for the answer to one of them while it ran.
	WaitedInVain bool
	// Answered is true when an answer came since the worker was started: it may have
	// ended without it. AnsweredLate is true when one came to what the worker waits for
	// after it had ended.
	Answered, AnsweredLate bool
	// Lease is whether somebody has taken the session over.
	Lease Lease
	// Held is true while what the bead of the hook needs is paused, and the bead is not
	// admitted.
	Held bool
	// OutOfBudget is true while that is because a budget is used up.
	OutOfBudget bool
	// Granted says which budget was used up that the person has raised for this bead, "" for none.
	Granted string
	// Unplanned is true while one of them is a plan that must be approved first.
	Unplanned bool
	// Progress is true when output or processor time grew since the last look.
	Progress bool
	// Mail is unread mail in the order of processing, Nudges what is unseen.
	Mail   []mail.Entry
	Nudges []nudge.Nudge
	// Next is the bead to claim in pull mode, "" without one.
	Next state.BeadID
}

// The polecat's own actions.
type (
	// CopyHook keeps a copy of a hook that can't be read in the quarantine and
	// leaves the original, which is never taken for "no work".
	CopyHook struct{ Problem string }
	// Activate is the answer to a pending hook: a new session begins.
	Activate struct {
		Item    hook.WorkItem
		Session state.SessionID
	}
	// Resume saves what an earlier session of the same assignment left and gives
	// the hook a new session. It charges nothing. Why the earlier one can't go on is ""
	// where it ended with its process.
	Resume struct {
		Item    hook.WorkItem
		Session state.SessionID
		Why     string
	}
	// Start moves the bead to in_progress, makes worktree and branch, and starts
	// the worker, or tells the person's session where to work. What can't be made or
	// started ends as a failed attempt.
	Start struct{ Item hook.WorkItem }
	// Continue starts the worker again, in the same worktree and session, and tells
	// it why. It charges nothing. Answered is true when it waited for an answer
	// that has come, Kept when it was held or ended from outside: those are no ends that
	// came too early.
	Continue struct {
		Item           hook.WorkItem
		Why            string
		Answered, Kept bool
	}
	// Hold takes note of the fault that ended the worker, if one did, and that the bead
	// waits for the pause. Its session and its worktree stay as they are.
	Hold struct {
		Item  hook.WorkItem
		Fault fault.Fault
	}
	// TakeBack ends what is left of one who had taken the session over, and makes that session one that has ended.
	TakeBack struct{}
	// Touch records progress of the work on the hook.
	Touch struct {
		Assignment state.AssignmentID
		Session    state.SessionID
	}
	// Publish fixes the end of the attempt, unless it is fixed already.
	Publish struct{ Record retire.Record }
	// StopWorker ends the worker: TERM after the delay, and KILL after the rig's grace.
	// It does not wait.
	StopWorker struct {
		Why   string
		Delay time.Duration
	}
	// Retire runs what is left of the done pipeline. Its record is among
	// Facts.Ended from then on.
	Retire struct{ Record retire.Record }
	// ForgetEnded takes a record out of Facts.Ended: the mayor was told.
	ForgetEnded struct{ Assignment state.AssignmentID }
	// Abandon saves the work of an assignment that was taken away, leaves a
	// hand-off and frees the worktree.
	Abandon struct {
		Assignment state.AssignmentID
		Bead       state.BeadID
		Session    state.SessionID
	}
	// Claim slings a ready bead to this polecat itself.
	Claim struct{ Bead state.BeadID }
	// SetStatus records the agent's life-cycle status.
	SetStatus struct{ Status agent.Status }
)

func (CopyHook) IsAction()    {}
func (Activate) IsAction()    {}
func (Resume) IsAction()      {}
func (Start) IsAction()       {}
func (Continue) IsAction()    {}
func (Hold) IsAction()        {}
func (TakeBack) IsAction()    {}
func (Touch) IsAction()       {}
func (Publish) IsAction()     {}
func (StopWorker) IsAction()  {}
func (Retire) IsAction()      {}
func (ForgetEnded) IsAction() {}
func (Abandon) IsAction()     {}
func (Claim) IsAction()       {}
func (SetStatus) IsAction()   {}
