// Package retire stores the ends of attempts: state/retire/{assignment}.json. A record
// is published once, and the first one wins. It is the point of no return: its stage
// advances with every step of the done pipeline, and after a crash the next start
// continues from the stage.
package retire

import (
	"fmt"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/fault"
)

// Outcome is how an attempt ended.
type Outcome string

const (
	// Done: the work is finished and shall land.
	Done Outcome = "done"
	// Fail: this attempt is over without a result.
	Fail Outcome = "fail"
	// Block: a person must decide.
	Block Outcome = "block"
)

// Stage is how far the done pipeline has come.
type Stage string

// Stages, in order. Each says what is durable.
const (
	// Published: the outcome is fixed; the worker may still run.
	Published Stage = "published"
	// Committed: the worker has ended; Head is durable on the branch (done), or
	// the work is saved on the salvage ref (fail, block).
	Committed Stage = "committed"
	// Recorded: the bead is done, failed or closed.
	Recorded Stage = "recorded"
	// Submitted: the merge request exists (done with something to land).
	Submitted Stage = "submitted"
	// Reported: completion_report and the note to the witness are sent.
	Reported Stage = "reported"
	// Completed: the hook is completed.
	Completed Stage = "completed"
	// Released: the worktree is free for the next bead. Final.
	Released Stage = "released"
	// Stale: the bead was reassigned or cancelled before it could be recorded; the
	// work is salvaged, nothing lands. Final.
	Stale Stage = "stale"
)

// Rank orders the stages; unknown ones are -1.
func (s Stage) Rank() int {
	for i, known := range []Stage{Published, Committed, Recorded, Submitted, Reported, Completed, Released, Stale} {
		if s == known {
			return i
		}
	}
	return -1
}

// Final reports whether the pipeline has ended.
func (s Stage) Final() bool { return s == Released || s == Stale }

// Record is the end of one attempt.
type Record struct {
	AssignmentID state.AssignmentID `json:"assignment_id"`
	AgentID      state.AgentID      `json:"agent_id"`
	BeadID       state.BeadID       `json:"bead_id"`
	Session      state.SessionID    `json:"session,omitempty"`
	Outcome      Outcome            `json:"outcome"`
	Reason       string             `json:"reason,omitempty"`
	Summary      string             `json:"summary,omitempty"`
	Branch       string             `json:"branch,omitempty"`
	Base         string             `json:"base,omitempty"`
	Head         string             `json:"head,omitempty"`
	// Salvage is the ref that holds unfinished work, if any was saved.
	Salvage string `json:"salvage,omitempty"`
	// Settled means that the worktree was durable after the worker had ended. Finished
	// work lands only if this, or the exit record of its supervisor, says so.
	Settled bool `json:"settled,omitempty"`
	// Lost means that a crash may have damaged the worktree. The attempt failed only for
	// that reason: it is not charged, and the work is done again.
	Lost bool `json:"lost,omitempty"`
	// Fault is the cause of the end, if it is known; Reason then says the same in more
	// words. The zero Fault means that the end is the work's own.
	Fault fault.Fault `json:"fault,omitzero"`
	// Empty is true when there was nothing to land and the bead allows that.
	Empty bool          `json:"empty,omitempty"`
	Stage Stage         `json:"stage"`
	MR    state.MergeID `json:"mr,omitempty"`
	// ReportName and NoteName fix the names of the mails to mayor and witness.
	ReportName string     `json:"report_name,omitempty"`
	NoteName   string     `json:"note_name,omitempty"`
	CreatedAt  state.Time `json:"created_at"`
	UpdatedAt  state.Time `json:"updated_at"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (r *Record) UnmarshalJSON(b []byte) error {
	type plain Record
	return state.UnmarshalWithExtra(b, (*plain)(r), &r.Extra)
}

// MarshalJSON writes unknown fields back.
func (r Record) MarshalJSON() ([]byte, error) {
	type plain Record
	return state.MarshalWithExtra(plain(r), r.Extra)
}

// Dir is the folder of the records.
const Dir = state.StateDir + "/retire"

// Store is state/retire/.
type Store struct {
	*state.Store[Record]
	log *event.Log
}

// NewStore opens the records of a tree. It logs every stage that a record reaches; log
// may be nil.
func NewStore(t *state.Tree, log *event.Log) Store {
	records := state.NewStore(t, Dir, "retire record", state.LockRecord, check)
	return Store{records.WithSummaries("1", func(*Record) []string { return nil }), log}
}

// Publish stores the end of an attempt; the first one wins. Durable when it
// returns nil. Errors: state.ErrExists.
func (s Store) Publish(r Record) error {
	if err := s.Create(string(r.AssignmentID), r); err != nil {
		return err
	}
	text := string(r.Outcome)
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	s.log.Tell(event.RetireReached(r.AgentID, r.Work(), string(r.Stage), text))
	return nil
}

// Reach stores a record that has reached its stage. Durable when it returns nil.
func (s Store) Reach(r Record) error {
	err := s.Put(string(r.AssignmentID), r)
	if err == nil {
		s.log.Tell(event.RetireReached(r.AgentID, r.Work(), string(r.Stage), ""))
	}
	return err
}

// Work identifies the attempt in events.
func (r *Record) Work() event.Work {
	return event.Work{Bead: r.BeadID, Assignment: r.AssignmentID, Session: r.Session}
}

func check(name string, r *Record) error {
	switch {
	case string(r.AssignmentID) != name:
		return fmt.Errorf("assignment_id %q contradicts the file's name", r.AssignmentID)
	case r.Outcome != Done && r.Outcome != Fail && r.Outcome != Block:
		return fmt.Errorf("unknown outcome %q", r.Outcome)
	case r.Stage.Rank() < 0:
		return fmt.Errorf("unknown stage %q", r.Stage)
	case r.BeadID == "" || r.AgentID == "":
		return fmt.Errorf("no bead_id or agent_id")
	case r.Outcome == Done && !r.Fault.IsZero():
		return fmt.Errorf("done, but with a fault of the kind %q", r.Fault.Kind)
	}
	return r.Fault.Check()
}
