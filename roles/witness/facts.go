package witness

import (
	"fmt"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles/backlog"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// Policy holds the thresholds of a rig.
type Policy struct {
	// Patrol is the time between two patrols.
	Patrol time.Duration
	// Stall is how long work may show no progress, Nudge how long a nudge may
	// stay unanswered, Restart when a restart is recommended.
	Stall, Nudge, Restart time.Duration
	// SlowStart is added to Stall until a session shows its first progress.
	SlowStart time.Duration
	// TestTimeout is how long the refinery's test command may take.
	TestTimeout time.Duration
	// MaxRestarts bounds the restarts of one bead, MaxParallel the beads that are
	// out at once, MaxWaiting the depth of the merge queue.
	MaxRestarts, MaxParallel, MaxWaiting int
}

const (
	// leastGap keeps the hiccups of a loaded machine from being taken for sleep
	// where patrols follow each other quickly.
	leastGap = 2 * time.Second
	// mostConfirm bounds how long a death waits for its confirmation.
	mostConfirm = 3 * time.Second
)

// gap is the pause between two patrols above which nobody watched.
func (p Policy) gap() time.Duration { return max(3*p.Patrol, leastGap) }

// confirm is how long a process that lived must be missing to be dead: one that
// is replaced at once is not.
func (p Policy) confirm() time.Duration { return min(p.Patrol, mostConfirm) }

// Facts are what one tick fetched.
type Facts struct {
	Now state.Time
	// Self is the witness, Session its incarnation.
	Self    state.AgentID
	Session state.SessionID
	// Mayor and Refinery are the agents with these roles.
	Mayor, Refinery state.AgentID
	Policy          Policy
	// Mail is what the witness has not read, in processing order; Nudges what it
	// has not seen.
	Mail   []mail.Entry
	Nudges []nudge.Nudge
	// Incidents are those that stand open, oldest first.
	Incidents []incident.Incident
	// Scan is nil on a tick that is no patrol.
	Scan *Scan
}

// Scan is what a patrol looks at.
type Scan struct {
	Agents []Agent
	// Backlog is all beads; a decision only reads it.
	Backlog *backlog.Backlog
	Queue   Queue
	// Dispatches are those that somebody began and did not finish.
	Dispatches []dispatch.Record
	// MayorMail is what the mayor has not read.
	MayorMail []mail.Entry
	// Overdue are tasks of mail whose deadline has passed and that are not over.
	Overdue []mail.TaskStatus
	// Reminded names the requests of those whose two sides this process reminded.
	Reminded map[mail.Name]bool
	Disk     Disk
	// Held reports whether a ready bead waits for a pause; nil where nothing is paused.
	Held func(b *bead.Bead) bool
}

// Queue is what a patrol looks at in the merge queue.
type Queue struct {
	// Head is the first request that can land or is in the way, or nil.
	Head *mergequeue.Request
	// Waiting counts the requests that can land.
	Waiting int
}

// QueueOf looks at requests in FIFO order. Those that have landed, whose bead has
// moved on, or that wait for the person's word, count for nothing.
func QueueOf(requests []mergequeue.Request, beads *backlog.Backlog) (q Queue) {
	for i := range requests {
		r := &requests[i]
		b := beads.Get(r.BeadID)
		if !r.Status.Live() || r.IsHeld() || b == nil || b.CheckAssignment(r.AssignmentID, bead.Done) != nil {
			continue
		}
		if q.Head == nil {
			q.Head = r
		}
		if r.Status != mergequeue.Conflicted {
			q.Waiting++
		}
	}
	return q
}

// Agent is one registered agent as a patrol sees it.
type Agent struct {
	ID     state.AgentID
	Role   agent.Role
	Status agent.Status
	// Alive is true while a process speaks for the agent.
	Alive bool
	// Hook is valid unless Corrupt says why it is not.
	Hook    hook.Hook
	Corrupt string
	// Stall is the threshold of the agent's worker, 0 for the rig's own.
	Stall time.Duration
	// Asks is true while its work stands still for an answer of the person or the mayor,
	// or for a pause.
	Asks bool
	// Session is true for a session of a person's own: it may think as long as it likes.
	Session bool
}

// Disk is the file system of the state tree, in bytes; Total 0 is unknown.
type Disk struct{ Free, Total uint64 }

// Low reports whether a person should make room.
func (d Disk) Low() bool { return d.Total > 0 && d.Free < d.low() }

// Critical reports whether writes are about to fail.
func (d Disk) Critical() bool {
	return d.Total > 0 && d.Free < min(criticalBytes, d.Total/criticalShare)
}

// String is how much room there is, for people.
func (d Disk) String() string { return fmt.Sprintf("%d MiB free of %d MiB", d.Free>>20, d.Total>>20) }

func (d Disk) low() uint64 { return min(lowBytes, d.Total/lowShare) }

// State is what the witness remembers between two patrols. When the process ends it is
// lost, which only delays some incidents: what was reported is stored in the incidents.
type State struct {
	// Patrolled is the previous patrol, Since the first of an unbroken row.
	Patrolled, Since state.Time
	// Wake is when the next patrol is due.
	Wake state.Time
	// Watches holds what is on each agent's hook.
	Watches map[state.AgentID]Watch
	// Lasting holds since when each condition was seen on every patrol.
	Lasting map[string]state.Time
	// Lived names the agents that were seen with a process.
	Lived map[state.AgentID]bool
}

// Watch is how long one hook has stood still.
type Watch struct {
	Assignment state.AssignmentID
	Session    state.SessionID
	Status     hook.Status
	Activity   state.Time
	// From is since when nothing moved, as far as this witness patrolled.
	From state.Time
	// Moved is true once the session has shown progress.
	Moved bool
}

// Due reports whether it is time to patrol. A clock that was set back is no
// reason to wait for it.
func (s State) Due(now state.Time) bool {
	return s.Patrolled.IsZero() || !now.Before(s.Wake.Time) || now.Before(s.Patrolled.Time)
}
