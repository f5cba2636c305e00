package bead

import (
	"context"
	"errors"
	"fmt"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Dir is the folder of the beads.
const Dir = state.StateDir + "/work"

// Store is state/work/.
type Store struct{ event.Recorder[Bead] }

// NewStore opens the beads of a tree. New beads and moves of beads are told to
// the log, which may be nil.
func NewStore(t *state.Tree, log *event.Log) Store {
	return Store{event.Record(state.NewStore(t, Dir, "bead", state.LockBead, check).WithSummaries("1", outlineFields), log, tell)}
}

// By returns the store as an agent uses it. why, where it is not "", is what the
// log says of its changes.
func (s Store) By(agent state.AgentID, why string) Store {
	return Store{s.Recorder.By(agent, why)}
}

// tell is what a change of a bead is told as: a new bead and a new status are,
// everything else is the part of a verb that tells more of it.
func tell(before, after *Bead) (event.Event, bool) {
	if before == nil {
		return event.BeadAdded(after.CreatedBy, after.ID, string(after.Status), after.Title), true
	}
	if before.Status == after.Status {
		return event.Event{}, false
	}
	m := event.BeadMove{Bead: after.ID, Assignment: after.AssignmentID, Assignee: after.Assignee,
		From: string(before.Status), To: string(after.Status), Why: after.CloseReason}
	if m.Assignment == "" {
		m.Assignment, m.Assignee = before.AssignmentID, before.Assignee
	}
	if after.Status == Hooked {
		m.Why = after.Title
	}
	return event.BeadMoved(after.Assignee, m), true
}

// Edit changes what a bead says. It is told as an edit, with the store's reason
// for its text, or as a move where it is one. Durable when it returns nil.
func (s Store) Edit(ctx context.Context, id state.BeadID, change func(b *Bead) error) (Bead, error) {
	var before Bead
	b, err := s.Update(ctx, string(id), func(b *Bead) error {
		before = *b
		return change(b)
	})
	if err == nil && b.Status == before.Status && b.Gen != before.Gen {
		s.Author().Tell(event.BeadEdited(b.CreatedBy, b.ID, ""))
	}
	return b, err
}

func outlineFields(b *Bead) []string {
	var reason, ready string
	if b.Status == Blocked {
		reason = b.CloseReason
	}
	if b.Status == Open && b.ReadyAt != nil {
		ready = b.ReadyAt.String()
	}
	fields := []string{string(b.Status), b.Title, reason, ready}
	if b.Status == Open {
		fields = append(fields, wording.Strings(b.BlockedBy)...)
	}
	return fields
}

// Overview returns all beads with a part of their fields, and what could not be read.
// It is faster than All, because it reads only files that changed since the last call
// of any process. Set are ID, status and title; of an open bead BlockedBy and ReadyAt;
// of a blocked one CloseReason.
func (s Store) Overview() ([]Bead, []error, error) {
	briefs, bad, err := s.Summaries()
	all := make([]Bead, 0, len(briefs))
	for _, brief := range briefs {
		if len(brief.Fields) < 4 {
			continue // no outlineFields made that
		}
		b := Bead{ID: state.BeadID(brief.Name), Status: Status(brief.Fields[0]), Title: brief.Fields[1], CloseReason: brief.Fields[2]}
		if brief.Fields[3] != "" {
			var at state.Time
			if err := at.UnmarshalText([]byte(brief.Fields[3])); err == nil {
				b.ReadyAt = &at
			}
		}
		for _, dep := range brief.Fields[4:] {
			b.BlockedBy = append(b.BlockedBy, state.BeadID(dep))
		}
		all = append(all, b)
	}
	return all, bad, err
}

// Add publishes a new open bead under a fresh name and returns it. Unknown
// dependencies and cycles are refused. Durable when it returns nil.
func (s Store) Add(b Bead, prefix string, now state.Time) (Bead, error) {
	if b.Priority == "" {
		b.Priority = P2
	}
	b.Status, b.CreatedAt, b.UpdatedAt, b.Gen = Open, now, now, 1
	if err := s.CheckDependencies(b.ID, b.BlockedBy); err != nil {
		return b, err
	}
	for {
		id, err := NewID(prefix)
		if err != nil {
			return b, err
		}
		b.ID = id
		err = s.Create(string(id), b)
		if errors.Is(err, state.ErrExists) {
			continue
		}
		return b, err
	}
}

// Adopt stores a new open bead under the ID that another program gave it. Durable when
// it returns nil. Errors: ErrExists.
func (s Store) Adopt(b Bead, now state.Time) error {
	b.Priority, b.Status, b.CreatedAt, b.UpdatedAt, b.Gen = P2, Open, now, now, 1
	return s.Create(string(b.ID), b)
}

// CheckDependencies refuses unknown beads and a cycle through id ("" for a
// bead that does not exist yet and so can be in no cycle).
func (s Store) CheckDependencies(id state.BeadID, blockedBy []state.BeadID) error {
	if len(blockedBy) == 0 {
		return nil
	}
	for _, dep := range blockedBy {
		if dep == id {
			return state.Conflictf("bead "+string(id), "can't be blocked by itself")
		}
		if _, err := s.Get(string(dep)); err != nil {
			return err
		}
	}
	if id == "" {
		return nil
	}
	all, bad, err := s.All()
	for _, b := range bad {
		if !errors.Is(b, state.ErrCorrupt) { // one that is damaged has no dependencies
			err = errors.Join(err, b)
		}
	}
	if err != nil {
		return err
	}
	graph := GraphOf(all)
	graph[id] = blockedBy
	if cycle := graph.Cycle(id); cycle != nil {
		return state.Conflictf("bead "+string(id), "dependency cycle: %s", wording.Join(cycle, " → "))
	}
	return nil
}

// Blockers returns those of b's dependencies that have not landed, with their status.
func Blockers(b *Bead, byID map[state.BeadID]*Bead) []string {
	var open []string
	for _, dep := range Unmet(b, byID) {
		status := "missing"
		if d := byID[dep]; d != nil {
			status = string(d.Status)
		}
		open = append(open, fmt.Sprintf("%s (%s)", dep, status))
	}
	return open
}

// Unmet returns those of b's dependencies that have not landed, missing ones among them.
func Unmet(b *Bead, byID map[state.BeadID]*Bead) []state.BeadID {
	var open []state.BeadID
	for _, dep := range b.BlockedBy {
		if d := byID[dep]; d == nil || !d.Status.Landed() {
			open = append(open, dep)
		}
	}
	return open
}

// Index returns a map of the beads by ID.
func Index(all []Bead) map[state.BeadID]*Bead {
	byID := make(map[state.BeadID]*Bead, len(all))
	for i := range all {
		byID[all[i].ID] = &all[i]
	}
	return byID
}
