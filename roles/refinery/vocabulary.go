package refinery

import (
	"time"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// Policy is what the definition says.
type Policy struct {
	// MaxWaiting is the depth of the queue above which the mayor is warned.
	MaxWaiting int
	// Mayor is whose abort counts beside the person's.
	Mayor state.AgentID
	// Remote is true when work lands on a remote first.
	Remote bool
	// Block is true when a request that can't land waits for a person instead
	// of being reworked.
	Block bool
	// Batch is how many requests may be rebased and tested as one stack; up to 1
	// each is tested by itself.
	Batch int
}

// Facts is what one tick fetched.
type Facts struct {
	Now     state.Time
	Self    state.AgentID
	Session state.SessionID
	Policy  Policy
	// Queue holds in FIFO order the live requests, and those that came to an end
	// were not reported.
	Queue []mergequeue.Request
	// Beads are those of the queue. One that is in neither map does not exist.
	Beads map[state.BeadID]bead.Bead
	// Unreadable says why a bead of the queue could not be read.
	Unreadable map[state.BeadID]string
	// Tip is the target's present tip; it is only fetched while State.Wait.Tip asks.
	Tip string
	// Foreign is set when the target was moved by somebody unknown.
	Foreign Foreign
	// Deep is true from the warning about the queue's depth until it has shrunk.
	Deep bool
	// Result is what came out of the step that the last decision asked for.
	Result Result
	// Mail is unread, in processing order. Nudges are unseen, oldest first.
	Mail   []mail.Entry
	Nudges []nudge.Nudge
}

// ResultKind is how a step ended.
type ResultKind string

// Results. None means that nothing ended since the last decision.
const (
	None ResultKind = ""
	// CheckedOut: the request is marked as merging; Onto is the tip to rebase on.
	CheckedOut ResultKind = "checked_out"
	// Refused: the branch may not land whatever the tests say; Text is why.
	Refused ResultKind = "refused"
	// Rebased: Candidate stands on Onto.
	Rebased ResultKind = "rebased"
	// Held: the request changes protected files, which the person has not allowed; Hold is the change.
	Held ResultKind = "held"
	// Conflict: the commits do not apply; Text names the paths.
	Conflict ResultKind = "conflict"
	// Green: the test command succeeded, or there is none and that is allowed.
	Green ResultKind = "green"
	// Red: it failed or could not run, as Failure says; Text has its last lines.
	Red ResultKind = "red"
	// Landed: the target holds the candidate durably, bead and request are merged.
	Landed ResultKind = "landed"
	// Moved: the target is no longer at the tip that was tested.
	Moved ResultKind = "moved"
	// InTheWay: a person's checkout of the target has changes that git would overwrite, or can't be moved.
	InTheWay ResultKind = "in_the_way"
	// Taken: the bead is no longer done under the request's assignment.
	Taken ResultKind = "taken"
	// Trouble: git, the network or the disk failed; nobody's work is to blame.
	Trouble ResultKind = "trouble"
)

// Result is the end of one step. Hashes are full names of commits.
type Result struct {
	Kind            ResultKind
	Onto, Candidate string
	Failure         mergequeue.Failure
	// Untested is true for a Green without a test command.
	Untested bool
	Text     string
	// Request is the one of a stack that a Taken refers to, when it is not the first.
	Request state.MergeID
	// Diverged is set when the target here could not follow the remote.
	Diverged Divergence
	Hold     *mergequeue.Hold
	// Whole is true for an InTheWay that keeps every request from landing, and not this one alone.
	Whole bool
}

// Divergence is a target that a person committed to before it could follow what the
// rig pushed. What was pushed has landed, and the queue goes on from what the remote
// holds. It ends when the person brings the two together.
type Divergence struct {
	// Fork is the last commit that both hold. It stays the same until the end.
	Fork string
	// Target is the branch, Remote the name of the remote.
	Target, Remote string
	// Checkout is where the branch is checked out, or "".
	Checkout string
}

// Work is what is being landed: one request, or a stack of them.
type Work struct {
	// ID is the first request. It alone is marked as merging before its work lands.
	ID state.MergeID
	// Onto is the tip of the target that all stands on, Candidate the commit that
	// is tested and landed: the top of the lowest Group layers of Stack.
	Onto, Candidate string
	Stack           *Stack
	// Group is how many layers are tested, and land, together. Once it is less
	// than all of them, the whole stack is known to be red.
	Group int
	// Next is the request that is being rebased on top of the stack.
	Next state.MergeID
	// Tested is true once the test command was green on Candidate.
	Tested bool
	// TipGreen is true once it was green on Onto.
	TipGreen bool
	// Running is true while the test command runs.
	Running bool
	// Blame is the bad end that is told once the bare tip turns out green.
	Blame  mergequeue.Failure
	Reason string
}

// WaitKind is why a request stands still although nobody's work is to blame.
type WaitKind string

// Reasons to wait. All of them end when a person clears the request's Waiting.
const (
	NoWait WaitKind = ""
	// RedTip: the target is red without the request; ends when the tip moves, or is tried again.
	RedTip WaitKind = "red_tip"
	// WaitCheckout: a person's checkout is in the way; tried again every RetryCheckout, and others pass
	// where they may land.
	WaitCheckout WaitKind = "checkout"
	// WaitTrouble: nobody's work is to blame; tried again after a growing time.
	WaitTrouble WaitKind = "trouble"
	// Stopped: mayor or human said abort; ends by a person alone.
	Stopped WaitKind = "stopped"
)

// Wait says what a request waits for. The zero Wait is a request that does not wait.
type Wait struct {
	Kind    WaitKind
	Request state.MergeID
	// Tip is the red tip, where its moving can be seen.
	Tip string
	// Until is when to try again; zero is never by itself.
	Until state.Time
	// Tries counts the failures in a row, also across a retry.
	Tries int
}

// maxID bounds the id of a message to the person, in bytes.
const maxID = 150

// Times between tries.
const (
	RetryCheckout    = 2 * time.Second
	retryTip         = time.Minute
	mostRetryTip     = 15 * time.Minute
	retryTrouble     = 2 * time.Second
	mostRetryTrouble = 5 * time.Minute
)

// State is what the refinery knows between two ticks. All that must survive it
// is in the requests; the zero State is that of a process that just started.
type State struct {
	Phase Phase
	Work  Work
	Wait  Wait
	// Block is the reason that was last logged for the queue being blocked.
	Block string
	// Closing is true once the process was asked to end.
	Closing bool
}

// Waiting reports whether the request in work stands still until WakeAt.
func (s State) Waiting() bool { return s.Wait.Kind != NoWait && !s.Wait.Until.IsZero() }

// WakeAt is when the next decision is due without news; the zero time is never.
func (s State) WakeAt() state.Time {
	if s.Wait.Kind == NoWait {
		return state.Time{}
	}
	return s.Wait.Until
}

// The steps. Each ends in a Result: RunTest when the command has ended, the
// others when they return. A step that can't be carried out is Trouble.
type (
	// CheckOut begins a request: it is marked as merging, attempts+1, with stage
	// checkout; the target's tip is found, the branch examined, the worktree
	// made. A request that an earlier process left in merging is finished when
	// the target holds its candidate.
	CheckOut struct{ Request state.MergeID }
	// RebaseOnto puts the recorded head on a commit, in the refinery's worktree.
	// Stacked is true when that is not the target's tip but the candidate of the
	// request before: then nothing is recorded, and whatever the result is but
	// Rebased, nobody is blamed.
	RebaseOnto struct {
		Request state.MergeID
		Onto    string
		Stacked bool
	}
	// RunTest tests one commit, the top of Stack. Tip is true for the bare target.
	RunTest struct {
		Request         state.MergeID
		Onto, Candidate string
		Stack           *Stack
		Tip             bool
	}
	// Land advances the target from the tip that was tested to Candidate, the top
	// of Stack, in one step and under the locks of all its beads; with Push the
	// remote first. All beads and requests of the stack become merged, or none.
	Land struct {
		Request         state.MergeID
		Onto, Candidate string
		Stack           *Stack
		Tested, Push    bool
	}
)

// What is done at once: there is no result to wait for.
type (
	// StopTest ends a running test command; it has no result.
	StopTest struct{}
	// MarkConflicted records a bad end.
	MarkConflicted struct {
		Request state.MergeID
		Failure mergequeue.Failure
		Reason  string
	}
	// Requeue makes a merging request pending again, with why it waits. Nothing is charged.
	Requeue struct {
		Request state.MergeID
		Waiting string
		// InTheWay lets others pass it for a while.
		InTheWay bool
	}
	// Hold makes a live request wait, pending, for the person's word about a change of protected
	// files. Others pass it. Nothing is charged.
	Hold struct {
		Request state.MergeID
		Change  *mergequeue.Hold
	}
	// LeaveOut records in the event log that a request is not tested together with those
	// before it, and why.
	LeaveOut struct {
		Request state.MergeID
		Reason  string
	}
	// SetWaiting records why a request stands still without leaving merging.
	SetWaiting struct {
		Request state.MergeID
		Waiting string
	}
	// Retire ends a request whose bead is no longer done under its assignment:
	// superseded or dropped. It is looked at again under the bead's lock.
	Retire struct{ Request state.MergeID }
	// Notify tells mayor and witness of a request's end, under its fixed name.
	Notify struct{ Request state.MergeID }
	// RecordDepth remembers, over a restart too, that the mayor was told that the
	// queue has grown too deep. Newest tells one crossing from the next.
	RecordDepth struct {
		Waiting int
		Newest  state.MergeID
	}
	// ForgetDepth ends the crossing.
	ForgetDepth struct{}
	// QueueBlocked records in the event log that a request holds up the others, and why.
	QueueBlocked struct {
		Request state.MergeID
		Reason  string
	}
	// QueueUnblocked tells that none does any more.
	QueueUnblocked struct{}
)

func (CheckOut) IsAction()       {}
func (RebaseOnto) IsAction()     {}
func (RunTest) IsAction()        {}
func (Land) IsAction()           {}
func (StopTest) IsAction()       {}
func (MarkConflicted) IsAction() {}
func (Requeue) IsAction()        {}
func (Hold) IsAction()           {}
func (LeaveOut) IsAction()       {}
func (SetWaiting) IsAction()     {}
func (Retire) IsAction()         {}
func (Notify) IsAction()         {}
func (RecordDepth) IsAction()    {}
func (ForgetDepth) IsAction()    {}
func (QueueBlocked) IsAction()   {}
func (QueueUnblocked) IsAction() {}
