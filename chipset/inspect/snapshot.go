package inspect

import (
	"context"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// snapshot is one look at all stores of a rig. The stores are read one after
// the other, so in a rig that runs two of them may show two different moments.
type snapshot struct {
	at        state.Time
	agents    []agent.Agent
	hooks     map[state.AgentID]*hook.Hook
	beads     []bead.Bead
	byID      map[state.BeadID]*bead.Bead
	convoys   []convoy.Convoy
	queue     []mergequeue.Request
	dispatch  []dispatch.Record
	retire    map[state.AssignmentID]*retire.Record
	incidents []incident.Incident
	alive     map[state.AgentID]rig.Stamp
	// bad is what could not be read.
	bad []error
}

// glance is look for an overview: of beads it holds outlines, of merge requests
// the live ones, of ended attempts and dispatches nothing. Its cost hardly grows
// with what has landed.
func glance(ctx context.Context, r *rig.Rig) (*snapshot, error) {
	s := &snapshot{at: r.Clock.Now()}
	var err error
	take(&s.bad, &err, &s.agents, r.Agents.All)
	take(&s.bad, &err, &s.beads, r.Beads.Overview)
	take(&s.bad, &err, &s.convoys, r.Convoys.All)
	take(&s.bad, &err, &s.queue, r.Queue.Live)
	take(&s.bad, &err, &s.dispatch, r.Dispatch.All)
	take(&s.bad, &err, &s.incidents, r.Incidents.All)
	var hooks []hook.Hook
	take(&s.bad, &err, &hooks, r.Hooks.All)
	var ends []state.Summary
	take(&s.bad, &err, &ends, r.Retire.Summaries)
	if err != nil {
		return nil, err
	}
	s.index(r, hooks)
	return s, ctx.Err()
}

// index fills what is found by name.
func (s *snapshot) index(r *rig.Rig, hooks []hook.Hook) {
	s.byID, s.hooks, s.alive = bead.Index(s.beads), map[state.AgentID]*hook.Hook{}, map[state.AgentID]rig.Stamp{}
	for i := range hooks {
		s.hooks[hooks[i].AgentID] = &hooks[i]
	}
	for _, a := range s.agents {
		if stamp, yes := r.Alive(a.ID); yes {
			s.alive[a.ID] = stamp
		}
	}
}

// look reads all stores. What can't be read is in bad; the error is for folders.
func look(ctx context.Context, r *rig.Rig) (*snapshot, error) {
	s := &snapshot{at: r.Clock.Now(), retire: map[state.AssignmentID]*retire.Record{}}
	var err error
	take(&s.bad, &err, &s.agents, r.Agents.All)
	take(&s.bad, &err, &s.beads, r.Beads.All)
	take(&s.bad, &err, &s.convoys, r.Convoys.All)
	take(&s.bad, &err, &s.queue, r.Queue.Queue)
	take(&s.bad, &err, &s.dispatch, r.Dispatch.All)
	take(&s.bad, &err, &s.incidents, r.Incidents.All)
	var hooks []hook.Hook
	take(&s.bad, &err, &hooks, r.Hooks.All)
	var ends []retire.Record
	take(&s.bad, &err, &ends, r.Retire.All)
	if err != nil {
		return nil, err
	}
	s.index(r, hooks)
	for i := range ends {
		s.retire[ends[i].AssignmentID] = &ends[i]
	}
	return s, ctx.Err()
}

func take[T any](bad *[]error, failed *error, into *[]T, all func() ([]T, []error, error)) {
	values, broken, err := all()
	*into, *bad = values, append(*bad, broken...)
	if *failed == nil {
		*failed = err
	}
}

// dispatchOf is the dispatch record of a bead, or nil.
func (s *snapshot) dispatchOf(id state.BeadID) *dispatch.Record {
	for i := range s.dispatch {
		if s.dispatch[i].BeadID == id {
			return &s.dispatch[i]
		}
	}
	return nil
}

// requestOf is the merge request of an assignment, or nil.
func (s *snapshot) requestOf(a state.AssignmentID) *mergequeue.Request {
	return mergequeue.Find(s.queue, a)
}

// freePolecats counts polecats with an empty hook, and those of them that live.
func (s *snapshot) freePolecats() (free, live int) {
	for _, a := range s.agents {
		h := s.hooks[a.ID]
		if a.Role != agent.Polecat || a.Status == agent.Retired || h == nil || h.Status != hook.Empty {
			continue
		}
		free++
		if _, yes := s.alive[a.ID]; yes {
			live++
		}
	}
	return free, live
}
