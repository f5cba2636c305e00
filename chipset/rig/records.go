package rig

import (
	"context"
	"slices"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
)

// Records are the contents of all stores of a rig. The stores are read one after the
// other, so in a running rig two of them may show two different moments.
type Records struct {
	At        state.Time
	Agents    []agent.Agent
	Hooks     map[state.AgentID]*hook.Hook
	Beads     []bead.Bead
	BeadByID  map[state.BeadID]*bead.Bead
	Convoys   []convoy.Convoy
	Queue     []mergequeue.Request
	Dispatch  []dispatch.Record
	Retire    map[state.AssignmentID]*retire.Record
	Incidents []incident.Incident
	// Pauses are those in force.
	Pauses []pause.Pause
	// Alive are the agents that a process runs.
	Alive map[state.AgentID]Stamp
	// Unreadable are the errors of objects that could not be read.
	Unreadable []error
}

// ReadAll reads all stores. Unreadable objects are in Unreadable; the error is for
// folders.
func (r *Rig) ReadAll(ctx context.Context) (*Records, error) {
	s := &Records{At: r.Clock.Now(), Retire: map[state.AssignmentID]*retire.Record{}}
	var err error
	readStore(s, &err, &s.Beads, r.Beads.All)
	readStore(s, &err, &s.Queue, r.Queue.Queue)
	var ends []retire.Record
	readStore(s, &err, &ends, r.Retire.All)
	if err := s.readRest(r, err); err != nil {
		return nil, err
	}
	for i := range ends {
		s.Retire[ends[i].AssignmentID] = &ends[i]
	}
	return s, ctx.Err()
}

// ReadOutline is ReadAll for an overview: it holds outlines of beads, only live merge
// requests, and no ended attempts (except for unreadable ones). Its cost hardly grows
// with the number of landed beads.
func (r *Rig) ReadOutline(ctx context.Context) (*Records, error) {
	s := &Records{At: r.Clock.Now()}
	var err error
	readStore(s, &err, &s.Beads, r.Beads.Overview)
	readStore(s, &err, &s.Queue, r.Queue.Live)
	var ends []state.Summary
	readStore(s, &err, &ends, r.Retire.Summaries)
	if err := s.readRest(r, err); err != nil {
		return nil, err
	}
	return s, ctx.Err()
}

// readRest reads the stores that are read in one way only, and fills the indexes.
func (s *Records) readRest(r *Rig, err error) error {
	var hooks []hook.Hook
	readStore(s, &err, &s.Agents, r.Agents.All)
	readStore(s, &err, &s.Convoys, r.Convoys.All)
	readStore(s, &err, &s.Dispatch, r.Dispatch.All)
	readStore(s, &err, &s.Incidents, r.Incidents.All)
	readStore(s, &err, &s.Pauses, r.Pauses.All)
	s.Pauses = slices.DeleteFunc(s.Pauses, func(p pause.Pause) bool { return !p.InForce() })
	readStore(s, &err, &hooks, r.Hooks.All)
	s.BeadByID, s.Hooks, s.Alive = bead.Index(s.Beads), map[state.AgentID]*hook.Hook{}, map[state.AgentID]Stamp{}
	for i := range hooks {
		s.Hooks[hooks[i].AgentID] = &hooks[i]
	}
	for _, a := range s.Agents {
		if stamp, yes := r.Alive(a.ID); yes {
			s.Alive[a.ID] = stamp
		}
	}
	return err
}

func readStore[T any](s *Records, failed *error, into *[]T, all func() ([]T, []error, error)) {
	values, bad, err := all()
	*into, s.Unreadable = values, append(s.Unreadable, bad...)
	if *failed == nil {
		*failed = err
	}
}

// IsAlive reports whether a process runs an agent.
func (s *Records) IsAlive(id state.AgentID) bool { _, yes := s.Alive[id]; return yes }

// Agent returns the record of an agent, or nil.
func (s *Records) Agent(id state.AgentID) *agent.Agent {
	for i := range s.Agents {
		if s.Agents[i].ID == id {
			return &s.Agents[i]
		}
	}
	return nil
}

// DispatchOf returns the dispatch record of a bead, or nil.
func (s *Records) DispatchOf(id state.BeadID) *dispatch.Record {
	for i := range s.Dispatch {
		if s.Dispatch[i].BeadID == id {
			return &s.Dispatch[i]
		}
	}
	return nil
}

// RequestOf returns the merge request of an assignment, or nil.
func (s *Records) RequestOf(a state.AssignmentID) *mergequeue.Request {
	return mergequeue.Find(s.Queue, a)
}
