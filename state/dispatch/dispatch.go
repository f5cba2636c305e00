// Package dispatch stores the write-ahead records of the sling pipeline:
// state/dispatch/{bead}.json. After a crash, a dispatch is finished or undone according
// to its record.
package dispatch

import (
	"fmt"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// Stage is how far a dispatch came.
type Stage string

const (
	// Stored: the intent is durable; bead and hook may not be changed yet.
	Stored Stage = "stored"
	// Launched: the bead is hooked, the hook is pending; the mail may not be sent yet.
	Launched Stage = "launched"
	// Confirmed: all of it is durable. Final.
	Confirmed Stage = "confirmed"
)

// Record is one dispatch.
type Record struct {
	BeadID       state.BeadID       `json:"bead_id"`
	AgentID      state.AgentID      `json:"agent_id"`
	AssignmentID state.AssignmentID `json:"assignment_id"`
	// By is the agent that slung it: the mayor, human, or in pull mode the polecat.
	By     state.AgentID `json:"by"`
	Branch string        `json:"branch"`
	Stage  Stage         `json:"stage"`
	// MailName fixes the name of the work_assignment, so that a retry publishes
	// the same message again.
	MailName  string     `json:"mail_name"`
	CreatedAt state.Time `json:"created_at"`

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
const Dir = state.StateDir + "/dispatch"

// Store is state/dispatch/.
type Store struct {
	*state.Store[Record]
	log *event.Log
}

// NewStore opens the records of a tree. It logs dispatches that are stored, confirmed and
// undone; log may be nil.
func NewStore(t *state.Tree, log *event.Log) Store {
	return Store{state.NewStore(t, Dir, "dispatch record", state.LockRecord, check), log}
}

// Reach stores a record that has reached its stage. Durable when it returns nil.
func (s Store) Reach(r Record) error {
	if err := s.Put(string(r.BeadID), r); err != nil {
		return err
	}
	switch r.Stage {
	case Stored:
		s.log.Tell(event.DispatchStored(r.By, r.AgentID, r.work()))
	case Confirmed:
		s.log.Tell(event.DispatchConfirmed(r.By, r.AgentID, r.work()))
	case Launched:
	}
	return nil
}

// Undo removes the record of a dispatch that was undone. Durable when it returns nil.
func (s Store) Undo(r Record, why string) error {
	err := s.Remove(string(r.BeadID))
	if err == nil {
		s.log.Tell(event.DispatchUndone(r.By, r.AgentID, r.work(), why))
	}
	return err
}

func (r *Record) work() event.Work {
	return event.Work{Bead: r.BeadID, Assignment: r.AssignmentID}
}

func check(name string, r *Record) error {
	switch {
	case string(r.BeadID) != name:
		return fmt.Errorf("bead_id %q contradicts the file's name", r.BeadID)
	case r.AgentID == "" || r.AssignmentID == "":
		return fmt.Errorf("no agent_id or assignment_id")
	case r.Stage != Stored && r.Stage != Launched && r.Stage != Confirmed:
		return fmt.Errorf("unknown stage %q", r.Stage)
	}
	return nil
}
