// Package handoff stores notes of sessions to their successors:
// state/handoff/{agent}/{timestamp}.json, write-once.
package handoff

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// Handoff is one note of a session to its successor.
type Handoff struct {
	AgentID      state.AgentID      `json:"agent_id"`
	BeadID       state.BeadID       `json:"bead_id,omitempty"`
	AssignmentID state.AssignmentID `json:"assignment_id,omitempty"`
	Session      state.SessionID    `json:"session,omitempty"`
	Summary      string             `json:"summary"`
	Remaining    []string           `json:"remaining,omitempty"`
	// Salvage is the ref that holds the session's unfinished work.
	Salvage   string     `json:"salvage,omitempty"`
	Timestamp state.Time `json:"timestamp"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (h *Handoff) UnmarshalJSON(b []byte) error {
	type plain Handoff
	return state.UnmarshalWithExtra(b, (*plain)(h), &h.Extra)
}

// MarshalJSON writes unknown fields back.
func (h Handoff) MarshalJSON() ([]byte, error) {
	type plain Handoff
	return state.MarshalWithExtra(plain(h), h.Extra)
}

// Dir is the folder above the agents' folders.
const Dir = state.StateDir + "/handoff"

// Store is state/handoff/.
type Store struct {
	tree *state.Tree
	log  *event.Log
}

// NewStore opens the hand-offs of a tree. It logs each new one; log may be nil.
func NewStore(t *state.Tree, log *event.Log) Store { return Store{t, log} }

// Write publishes a hand-off under the next free nanosecond. Durable when it
// returns nil.
func (s Store) Write(h Handoff) (Handoff, error) {
	if err := state.CheckID(string(h.AgentID)); err != nil {
		return h, fmt.Errorf("hand-off: %w", err)
	}
	for {
		data, err := state.Encode(h)
		if err != nil {
			return h, err
		}
		if len(data) > state.MaxFile {
			return h, fmt.Errorf("hand-off: %w: %d bytes, at most %d", state.ErrTooLarge, len(data), state.MaxFile)
		}
		err = s.tree.WriteNew(Dir.Join(string(h.AgentID), h.Timestamp.Stamp()+".json"), data)
		if err == nil {
			s.log.Tell(event.HandoffWritten(h.AgentID, event.Work{Bead: h.BeadID, Assignment: h.AssignmentID, Session: h.Session},
				h.Timestamp.Stamp(), h.Summary))
		}
		if !errors.Is(err, state.ErrExists) {
			return h, err
		}
		h.Timestamp = state.At(h.Timestamp.Add(1))
	}
}

// List returns an agent's hand-offs, oldest first, and an error for each file that could
// not be read.
func (s Store) List(id state.AgentID) ([]Handoff, []error, error) {
	dir := Dir.Join(string(id))
	entries, err := s.tree.List(dir)
	if err != nil {
		return nil, nil, err
	}
	var all []Handoff
	var bad []error
	for _, e := range entries {
		p := dir.Join(e.Name())
		var h Handoff
		err := s.tree.ReadJSON(p, &h)
		if err == nil && (h.AgentID != id || !strings.HasSuffix(e.Name(), ".json")) {
			err = &state.Corruption{Path: string(p), Reason: fmt.Sprintf("agent_id %q contradicts its folder", h.AgentID)}
		}
		if err != nil {
			bad = append(bad, err)
			continue
		}
		all = append(all, h)
	}
	slices.SortStableFunc(all, func(a, b Handoff) int { return a.Timestamp.Compare(b.Timestamp.Time) })
	return all, bad, nil
}

// Latest returns the agent's newest hand-off about a bead, or about any bead if bead is
// "". It returns nil if there is none.
func (s Store) Latest(id state.AgentID, bead state.BeadID) (*Handoff, error) {
	all, _, err := s.List(id)
	if err != nil {
		return nil, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		if bead == "" || all[i].BeadID == bead {
			return &all[i], nil
		}
	}
	return nil, nil
}
